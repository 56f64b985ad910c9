//! ShareGroupDLQ: the dead-letter topic of one share group, and the group's settings that send dead letters there (KIP-1191).

mod kafka;
mod reason;
mod status;

pub use kafka::*;
pub use reason::DlqReason;
pub use status::*;

use super::schema;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The dead-letter topic of one share group, and the group settings that send dead letters there.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "redrive.dev",
    version = "v1alpha1",
    kind = "ShareGroupDLQ",
    namespaced,
    doc = "The dead-letter topic of one share group, and the group settings that send dead letters there.",
    status = "ShareGroupDLQStatus",
    derive = "PartialEq",
    shortname = "sgdlq",
    category = "redrive",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Group", "type": "string", "jsonPath": ".spec.groupId"}"#,
    printcolumn = r#"{"name": "Topic", "type": "string", "jsonPath": ".status.topic.name"}"#,
    printcolumn = r#"{"name": "Backlog", "type": "integer", "jsonPath": ".status.backlog.messages"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    validation = Rule::new("has(oldSelf.spec.topic.name) || !has(self.spec.topic.name) || !has(oldSelf.status) || !has(oldSelf.status.topic) || self.spec.topic.name == oldSelf.status.topic.name")
        .message("topic.name can only be set to the name already in use (status.topic.name)")
        .field_path(".spec.topic.name")
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::for_kubernetes)]
pub struct ShareGroupDLQSpec {
    /// How to reach Kafka.
    pub kafka: Kafka,

    /// The share group whose dead letters are kept. Cannot change.
    #[schemars(with = "schema::GroupId")]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("groupId cannot change; make a new ShareGroupDLQ")
        .reason(Reason::FieldValueForbidden))]
    pub group_id: String,

    /// The dead-letter topic.
    #[serde(default)]
    #[x_kube(validation = Rule::new("!has(oldSelf.name) || (has(self.name) && self.name == oldSelf.name)")
        .message("topic.name cannot change; make a new ShareGroupDLQ")
        .field_path(".name")
        .reason(Reason::FieldValueForbidden))]
    pub topic: TopicSpec,

    /// Keep a copy of key and value in the dead letter (errors.deadletterqueue.copy.record.enable of the group).
    #[serde(default)]
    pub copy_records: bool,

    /// Further configs of the share group to enforce, such as share.delivery.count.limit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "schema::Configs")]
    #[x_kube(validation = Rule::new("self.all(name, !name.startsWith('errors.deadletterqueue.'))")
        .message("errors.deadletterqueue.* is set from topic and copyRecords; leave it out"))]
    pub group_config: BTreeMap<String, String>,

    /// What becomes of topic and group configs when this object is deleted. Retain: left as they are. Delete: the group
    /// configs are reset and the topic is deleted, if Redrive created or adopted it.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,

    /// Observe and report, change nothing in Kafka.
    #[serde(default)]
    pub suspend: bool,
}

/// The dead-letter topic.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TopicSpec {
    /// Name of the topic; it has to begin with the brokers' prefix for dead-letter topics. Absent: that prefix followed by
    /// groupId. Cannot change; where it was absent it can be set to the name in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::TopicName>")]
    pub name: Option<String>,

    /// Whether to create the topic. FollowBroker: only while the brokers' own errors.deadletterqueue.auto.create.topics.enable
    /// is true. Always: whatever the brokers say. Never: wait for somebody else to make it.
    #[serde(default)]
    pub create: CreatePolicy,

    /// Whether an existing topic may be changed to serve as the dead-letter topic.
    #[serde(default)]
    pub adopt: bool,

    /// What makes the topic. Admin: Redrive, by Kafka's own API. KafkaTopic: a Strimzi KafkaTopic that Redrive writes.
    #[serde(default)]
    pub provisioner: Provisioner,

    /// Number of partitions, which may only grow. Absent: the brokers' default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100000))]
    pub partitions: Option<i32>,

    /// Number of replicas; checked, never changed. Absent: the brokers' default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32767))]
    pub replication_factor: Option<i32>,

    /// Further configs of the topic to enforce, such as retention.ms.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "schema::Configs")]
    #[x_kube(validation = Rule::new("!('errors.deadletterqueue.group.enable' in self)")
        .message("errors.deadletterqueue.group.enable is set by Redrive; leave it out"))]
    pub config: BTreeMap<String, String>,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CreatePolicy {
    #[default]
    FollowBroker,
    Always,
    Never,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provisioner {
    #[default]
    Admin,
    KafkaTopic,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    #[default]
    Retain,
    Delete,
}
