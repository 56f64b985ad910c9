//! Fields of the API whose behaviour this version does not have. They are refused by name, never ignored.

use crate::api::{Action, DLQReplaySpec, OnInterruption, OnUnsendable, Partitioning, Strategy, Target};

struct Unimplemented {
    field: &'static str,
    is_used: fn(&DLQReplaySpec) -> bool,
    way_out: &'static str,
}

const FIELDS: [Unimplemented; 7] = [
    Unimplemented {
        field: "spec.action: Dismiss",
        is_used: |spec| spec.action == Action::Dismiss,
        way_out: "leave the messages out with selection.excludeOffsets",
    },
    Unimplemented {
        field: "spec.selection.keys",
        is_used: |spec| spec.selection.as_ref().is_some_and(|selection| !selection.keys.is_empty()),
        way_out: "select by selection.offsets",
    },
    Unimplemented {
        field: "spec.selection.headers",
        is_used: |spec| spec.selection.as_ref().is_some_and(|selection| !selection.headers.is_empty()),
        way_out: "select by selection.offsets",
    },
    Unimplemented {
        field: "spec.strategy: AllAtOnce",
        is_used: |spec| spec.strategy == Strategy::AllAtOnce,
        way_out: "use Canary",
    },
    Unimplemented {
        field: "spec.onUnsendable: Skip",
        is_used: |spec| spec.on_unsendable == OnUnsendable::Skip,
        way_out: "use Fail, and leave the messages out with selection.excludeOffsets",
    },
    Unimplemented {
        field: "spec.onInterruption: Resume",
        is_used: |spec| spec.on_interruption == OnInterruption::Resume,
        way_out: "use Stop, and make a new DLQReplay for the rest",
    },
    Unimplemented {
        field: "spec.target.partitioning: Key",
        is_used: |spec| target(spec).is_some_and(|target| target.partitioning == Partitioning::Key),
        way_out: "use Source",
    },
];

fn target(spec: &DLQReplaySpec) -> Option<&Target> {
    spec.target.as_ref()
}

/// A sentence for the first field in use that this version can't serve.
pub fn refusal(spec: &DLQReplaySpec) -> Option<String> {
    let field = FIELDS.iter().find(|field| (field.is_used)(spec))?;
    Some(format!("NotImplemented: {} is not implemented in this version: {}", field.field, field.way_out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(fields: &Value) -> DLQReplaySpec {
        let mut spec = json!({"dlqRef": {"name": "orders"}});
        for (field, value) in fields.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        serde_json::from_value(spec).expect("a spec")
    }

    #[test]
    fn every_field_that_is_not_served_is_refused_by_name() {
        let uses: [Value; FIELDS.len()] = [
            json!({"action": "Dismiss"}),
            json!({"selection": {"keys": ["a"]}}),
            json!({"selection": {"headers": [{"name": "tenant", "value": "acme"}]}}),
            json!({"strategy": "AllAtOnce"}),
            json!({"onUnsendable": "Skip"}),
            json!({"onInterruption": "Resume"}),
            json!({"target": {"topic": "scratch", "partitioning": "Key"}}),
        ];
        for (field, used) in FIELDS.iter().zip(&uses) {
            let told = refusal(&spec(used)).unwrap_or_default();
            assert!(told.contains(field.field), "{used}: {told}");
        }
    }

    #[test]
    fn what_is_served_is_not_refused() {
        let all = json!({
            "selection": {"causes": ["Rejected"], "limit": 3},
            "target": {"topic": "scratch", "groupId": "testers", "errorHeaders": "Keep"},
            "canary": {"initialStepSize": 5},
        });
        assert_eq!(refusal(&spec(&json!({}))), None);
        assert_eq!(refusal(&spec(&all)), None);
    }
}
