//! What a user and the ShareGroupDLQ ask of a running replay, from their objects. Pure.

use super::run::{DlqState, Wishes};
use crate::api::{DLQReplaySpec, DlqReason, ShareGroupDLQ, conditions};

pub fn of(spec: &DLQReplaySpec, dlq: Option<&ShareGroupDLQ>) -> Wishes {
    Wishes {
        suspend: spec.suspend,
        cancel: spec.cancel,
        per_second: u64::from(spec.messages_per_second.unsigned_abs()),
        dlq: dlq.map_or(DlqState::Gone, state),
        release: false,
    }
}

/// What deleting a DLQReplay asks for.
pub fn cancel() -> Wishes {
    Wishes { cancel: true, suspend: true, per_second: 1, dlq: DlqState::Unknown, release: false }
}

fn state(dlq: &ShareGroupDLQ) -> DlqState {
    let conditions = dlq.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let losing = |type_: &&str| {
        let found = conditions::find(conditions, type_).filter(|condition| condition.status == "False");
        found.is_some_and(|condition| DlqReason::LOSING.iter().any(|reason| reason.to_string() == condition.reason))
    };
    if conditions::is_true(conditions, conditions::READY) {
        DlqState::Ready
    } else if [conditions::SUPPORTED, conditions::TOPIC_READY].iter().any(losing) {
        DlqState::Losing
    } else {
        DlqState::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Condition, Kafka, ShareGroupDLQSpec, ShareGroupDLQStatus, Time};
    use serde_json::json;

    fn dlq(ready: &str, topic_reason: &str) -> ShareGroupDLQ {
        let kafka = Kafka { bootstrap_servers: Some("kafka:9092".into()), ..Kafka::default() };
        let spec: ShareGroupDLQSpec =
            serde_json::from_value(json!({"kafka": kafka, "groupId": "orders"})).expect("a spec");
        let mut dlq = ShareGroupDLQ::new("orders", spec);
        let condition = |type_: &str, status: &str, reason: &str| Condition {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(Default::default()),
        };
        let conditions = vec![condition("Ready", ready, topic_reason), condition("TopicReady", ready, topic_reason)];
        dlq.status = Some(ShareGroupDLQStatus { conditions, ..Default::default() });
        dlq
    }

    #[test]
    fn only_what_loses_dead_letters_spoils_a_running_step() {
        let rows = [
            ("True", "Exists", DlqState::Ready),
            ("False", "TopicMissing", DlqState::Losing),
            ("False", "NotEnabledForGroups", DlqState::Losing),
            ("False", "Changing", DlqState::Unknown),
            ("Unknown", "KafkaUnreachable", DlqState::Unknown),
        ];
        for (ready, reason, expected) in rows {
            assert_eq!(state(&dlq(ready, reason)), expected, "{reason}");
        }
    }
}
