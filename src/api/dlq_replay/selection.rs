//! Which dead letters a replay is about.

use super::{super::Time, schema};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which messages; every part must match. Within a list one match is enough, but for headers, which must all be there.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// Offsets in the dead-letter topic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["partition"])
    )]
    pub offsets: Vec<PartitionRanges>,

    /// Offsets in the dead-letter topic to leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["partition"])
    )]
    pub exclude_offsets: Vec<PartitionRanges>,

    /// Why the messages were dead-lettered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 8), extend("x-kubernetes-list-type" = "set"))]
    pub causes: Vec<Cause>,

    /// Text in the dead letter's header __dlq.errors.message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub message_contains: Option<String>,

    /// Deliveries the message had at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32767))]
    pub min_deliveries: Option<i32>,

    /// Leave out messages that were replayed, and came back, this often or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32767))]
    pub max_attempts: Option<i32>,

    /// Topics the messages came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 256),
        inner(length(min = 1, max = 249)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub source_topics: Vec<String>,

    /// Partitions the messages came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        inner(range(min = 0, max = 1000000)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub source_partitions: Vec<i32>,

    /// When the messages were dead-lettered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_lettered: Option<Period>,

    /// Keys of the messages, as UTF-8 text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        inner(length(max = 1024)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub keys: Vec<String>,

    /// Headers the original records must have, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub headers: Vec<HeaderMatch>,

    /// Also select messages that were replayed or dismissed before.
    #[serde(default)]
    pub include_replayed: bool,

    /// This many at most, the oldest dead letters first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000000))]
    pub limit: Option<i32>,
}

/// Offsets of one partition of the dead-letter topic.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PartitionRanges {
    /// Partition of the dead-letter topic.
    #[schemars(range(min = 0, max = 1000000))]
    pub partition: i32,

    /// Offsets, single or as inclusive ranges, separated by commas: 0-99,120.
    #[schemars(with = "schema::Ranges")]
    pub ranges: String,
}

/// Why a message was dead-lettered.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The consumer rejected it.
    Rejected,
    /// It was delivered as often as the group allows.
    DeliveryLimit,
    /// What the broker says is neither.
    Other,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A stretch of time.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
#[x_kube(validation = Rule::new("!has(self.from) || !has(self.until) || self.from < self.until")
    .message("until must be after from")
    .field_path(".until"))]
pub struct Period {
    /// The first moment. Absent: the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub from: Option<Time>,

    /// The moment after the last. Absent: the time of the preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub until: Option<Time>,
}

/// A header of the original record.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HeaderMatch {
    /// Key of the header.
    #[schemars(length(min = 1, max = 249))]
    pub name: String,

    /// Its value, as UTF-8 text.
    #[schemars(length(max = 1024))]
    pub value: String,
}
