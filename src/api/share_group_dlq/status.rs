//! What Redrive last saw of a dead-letter topic, its group and its cluster.

use super::{super::Condition, super::Time, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is so, as Redrive last saw it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::for_kubernetes, extend("default" = {"observedGeneration": -1}))]
pub struct ShareGroupDLQStatus {
    /// metadata.generation of the spec this status speaks about; -1 before the first look.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub observed_generation: Option<i64>,

    /// Supported, TopicReady, GroupConfigured, Ready, Suspended, Degraded, Reconciling, Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::StatusCondition>",
        length(min = 1, max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,

    /// The Kafka cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker: Option<BrokerStatus>,

    /// The dead-letter topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<TopicStatus>,

    /// The group's messages in the dead-letter topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Backlog>,
}

/// The Kafka cluster and its settings for dead letters.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BrokerStatus {
    /// Id of the Kafka cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 249))]
    pub cluster_id: Option<String>,

    /// Finalized level of the feature share.version; dead-letter topics need 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32767))]
    pub share_version: Option<i32>,

    /// What names of dead-letter topics begin with (errors.deadletterqueue.topic.name.prefix, or the operator's own where that is empty).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 249))]
    pub topic_name_prefix: Option<String>,

    /// The brokers' errors.deadletterqueue.auto.create.topics.enable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_create_topics: Option<bool>,

    /// Topic id of the ledger; another one than before means the record of past replays is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub ledger_topic_id: Option<String>,
}

/// The dead-letter topic as it is.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TopicStatus {
    /// Name in use.
    #[schemars(length(min = 1, max = 249))]
    pub name: String,

    /// Kafka's id of the topic: a topic made anew under the same name has another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub id: Option<String>,

    /// Number of partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub partitions: Option<i32>,

    /// Number of replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replication_factor: Option<i32>,

    /// How the topic came to be, as far as Redrive is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<TopicOrigin>,
}

/// Who made the topic. It holds for one topic id.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicOrigin {
    /// Redrive did.
    Created,
    /// Somebody else; Redrive changed it, as topic.adopt allows.
    Adopted,
    /// Somebody else, and Redrive left it as it is.
    Existing,
}

/// The group's messages in the dead-letter topic.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Backlog {
    /// Dead letters kept.
    #[schemars(range(min = 0))]
    pub messages: i64,

    /// Of these, neither replayed nor dismissed yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub not_replayed: Option<i64>,

    /// When the oldest was dead-lettered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub oldest_time: Option<Time>,

    /// When the newest was dead-lettered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub newest_time: Option<Time>,
}
