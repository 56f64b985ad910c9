//! Fields of the API whose behaviour this version does not have. They are refused by name, never ignored.

use crate::api::{DeletionPolicy, Provisioner, ShareGroupDLQSpec};

struct Unimplemented {
    field: &'static str,
    is_used: fn(&ShareGroupDLQSpec) -> bool,
    way_out: &'static str,
}

const FIELDS: [Unimplemented; 6] = [
    Unimplemented {
        field: "spec.kafka.tls",
        is_used: |spec| spec.kafka.tls.is_some(),
        way_out: "leave it out and name a plaintext listener in spec.kafka.bootstrapServers",
    },
    Unimplemented {
        field: "spec.kafka.sasl",
        is_used: |spec| spec.kafka.sasl.is_some(),
        way_out: "leave it out and name a listener without authentication in spec.kafka.bootstrapServers",
    },
    Unimplemented {
        field: "spec.kafka.strimziCluster",
        is_used: |spec| spec.kafka.strimzi_cluster.is_some(),
        way_out: "use spec.kafka.bootstrapServers",
    },
    Unimplemented {
        field: "spec.kafka.bindingSecret",
        is_used: |spec| spec.kafka.binding_secret.is_some(),
        way_out: "use spec.kafka.bootstrapServers",
    },
    Unimplemented {
        field: "spec.topic.provisioner: KafkaTopic",
        is_used: |spec| spec.topic.provisioner == Provisioner::KafkaTopic,
        way_out: "use Admin",
    },
    Unimplemented {
        field: "spec.deletionPolicy: Delete",
        is_used: |spec| spec.deletion_policy == DeletionPolicy::Delete,
        way_out: "use Retain",
    },
];

/// A sentence for the first field in use that this version can't serve.
pub fn refusal(spec: &ShareGroupDLQSpec) -> Option<String> {
    let field = FIELDS.iter().find(|field| (field.is_used)(spec))?;
    Some(format!("{} is not implemented in this version: {}", field.field, field.way_out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(change: impl Fn(&mut Value)) -> Result<ShareGroupDLQSpec, serde_json::Error> {
        let mut spec = json!({"kafka": {"bootstrapServers": "kafka:9092"}, "groupId": "orders", "topic": {}});
        change(&mut spec);
        serde_json::from_value(spec)
    }

    #[test]
    fn every_unimplemented_field_is_refused_by_name() -> Result<(), serde_json::Error> {
        let sasl = json!({"mechanism": "PLAIN", "secret": {"name": "user"}});
        let uses: [(&str, Value); FIELDS.len()] = [
            ("/kafka/tls", json!({})),
            ("/kafka/sasl", sasl),
            ("/kafka/strimziCluster", json!({"name": "c"})),
            ("/kafka/bindingSecret", json!({"name": "s"})),
            ("/topic/provisioner", json!("KafkaTopic")),
            ("/deletionPolicy", json!("Delete")),
        ];
        assert_eq!(refusal(&spec(|_| {})?), None);
        for (path, value) in uses {
            let spec = spec(|spec| {
                let (parent, field) = path.rsplit_once('/').unwrap_or_default();
                if let Some(parent) = spec.pointer_mut(parent) {
                    parent[field] = value.clone();
                }
            })?;
            let name = path[1..].replace('/', ".");
            assert!(refusal(&spec).is_some_and(|told| told.starts_with(&format!("spec.{name}"))), "{path}");
        }
        Ok(())
    }
}
