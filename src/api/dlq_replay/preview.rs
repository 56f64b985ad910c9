//! What a replay would do, as a DLQReplay's preview tells it.

use super::{super::Time, Cause, Problem, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows of a preview's breakdown, and messages in its sample, at most.
pub const KEPT_PREVIEW_ROWS: usize = 20;

/// What a replay would do, as of one moment.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Stands for exactly this set of messages.
    #[schemars(length(min = 1, max = 80))]
    pub token: String,

    /// When the preview was taken.
    #[schemars(with = "schema::DateTime")]
    pub taken_at: Time,

    /// The moment for which times in the selection were judged.
    #[schemars(with = "schema::DateTime")]
    pub evaluation_time: Time,

    /// How far the ledger was read; absent where there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub ledger_as_of: Option<Time>,

    /// The part of the dead-letter topic that was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 10000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["partition"])
    )]
    pub bounds: Vec<Bounds>,

    /// The preview in one line; leads with what would go wrong.
    #[schemars(length(max = 4096))]
    pub summary: String,

    /// Distinct messages selected.
    #[schemars(range(min = 0))]
    pub messages: i64,

    /// Their dead letters: a broker may write more than one for a message.
    #[schemars(range(min = 0))]
    pub entries: i64,

    /// What would go wrong, blocking problems first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub problems: Vec<Problem>,

    /// Where the messages would go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 256),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["topic"])
    )]
    pub targets: Vec<PreviewTarget>,

    /// How many of which kind, most frequent first, 20 rows at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub breakdown: Vec<BreakdownRow>,

    /// Selected messages that were replayed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub already_replayed: Option<AlreadyReplayed>,

    /// Where the records to send would come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,

    /// Some of the messages, 20 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub sample: Vec<SampleMessage>,
}

/// Offsets of one partition of the dead-letter topic that were looked at.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Bounds {
    /// Partition of the dead-letter topic.
    #[schemars(range(min = 0))]
    pub partition: i32,

    /// The first offset.
    #[schemars(range(min = 0))]
    pub from: i64,

    /// The offset after the last.
    #[schemars(range(min = 0))]
    pub until: i64,
}

/// A topic the messages would go to.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PreviewTarget {
    /// Name of the topic.
    #[schemars(length(min = 1, max = 249))]
    pub topic: String,

    /// Whether it is there.
    pub exists: bool,

    /// Whether the credentials of the ShareGroupDLQ may write to it.
    pub authorized: bool,

    /// Messages that would go there.
    #[schemars(range(min = 0))]
    pub messages: i64,

    /// Members of the settling group that read it now.
    #[schemars(range(min = 0))]
    pub live_consumers: i32,

    /// Every group that reads it, or did and kept its offsets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["groupId"])
    )]
    pub groups: Vec<TargetGroup>,
}

/// A group that reads a target.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TargetGroup {
    /// Id of the group.
    #[schemars(length(max = 1024))]
    pub group_id: String,

    /// Kind of group.
    #[serde(rename = "type")]
    pub type_: GroupType,

    /// Members it has now.
    #[schemars(range(min = 0))]
    pub members: i32,

    /// Whether it would receive the messages.
    pub will_receive: bool,
}

/// Kind of group (`group.type` of Kafka's admin tools).
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupType {
    Share,
    Consumer,
    Classic,
    Streams,
    Other,
}

/// Messages of one kind.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BreakdownRow {
    /// Topic they came from.
    #[schemars(length(min = 1, max = 249))]
    pub source_topic: String,

    /// Why they were dead-lettered.
    pub cause: Cause,

    /// In which hour (UTC) they were dead-lettered.
    #[schemars(with = "schema::DateTime")]
    pub hour: Time,

    /// How many.
    #[schemars(range(min = 0))]
    pub count: i64,
}

/// Selected messages that were replayed before.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AlreadyReplayed {
    /// How many.
    #[schemars(range(min = 0))]
    pub messages: i64,

    /// When the last of them was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub last_time: Option<Time>,

    /// By which DLQReplay: namespace/name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub last_replay: Option<String>,
}

/// Where the records to send would come from.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// The source topic still has them, with headers.
    #[schemars(range(min = 0))]
    pub original: i64,

    /// Only the copy in the dead letter is left: without headers.
    #[schemars(range(min = 0))]
    pub copy_only: i64,

    /// Neither is left.
    #[schemars(range(min = 0))]
    pub unavailable: i64,
}

/// One selected message.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SampleMessage {
    /// Partition of its dead letter.
    #[schemars(range(min = 0))]
    pub partition: i32,

    /// Offset of its dead letter.
    #[schemars(range(min = 0))]
    pub offset: i64,

    /// Topic it would go to.
    #[schemars(length(max = 249))]
    pub target: String,

    /// Why it was dead-lettered.
    pub cause: Cause,

    /// The same in the broker's words.
    #[schemars(length(max = 1024))]
    pub message: String,

    /// Deliveries it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub deliveries: Option<i32>,

    /// The attempt this replay would be, counted from 1.
    #[schemars(range(min = 1))]
    pub attempt: i32,

    /// When it was dead-lettered.
    #[schemars(with = "schema::DateTime")]
    pub dead_lettered_at: Time,

    /// When it was last replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub replayed_at: Option<Time>,
}
