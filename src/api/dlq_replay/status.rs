//! What a DLQReplay has done, as its status tells it.

use super::{super::Condition, super::Time, Cause, PartitionRanges, Preview, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Finished steps kept in status.
pub const KEPT_STEPS: usize = 20;

/// Returned messages kept in status.
pub const KEPT_RETURNED: usize = 50;

/// What is so, as Redrive last saw it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::for_kubernetes, extend("default" = {"observedGeneration": -1}))]
pub struct DLQReplayStatus {
    /// metadata.generation of the spec this status speaks about; -1 before the first look.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub observed_generation: Option<i64>,

    /// Previewed; Succeeded, the summary; Complete, Failed, Finished, Reconciling, Stalled, Suspended, Interrupted, which follow from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::StatusCondition>",
        length(min = 1, max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,

    /// When the replay began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub start_time: Option<Time>,

    /// When it ended, well or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub completion_time: Option<Time>,

    /// The operator process that runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,

    /// What a replay would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,

    /// Messages by what became of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,

    /// The step in hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,

    /// The last 20 steps, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub steps: Vec<Step>,

    /// Dead-letter offsets sent so far, complete unless sentTruncated is true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["partition"])
    )]
    pub sent: Vec<PartitionRanges>,

    /// The list in sent is cut; the ledger has all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_truncated: Option<bool>,

    /// Dead-letter offsets of an aborted slice: readers with read_uncommitted may have seen them. Not sent again unless includeReplayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["partition"])
    )]
    pub uncertain: Vec<PartitionRanges>,

    /// Dead-letter offsets whose sending the broker has not confirmed or denied yet. Never selected again before it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["partition"])
    )]
    pub in_doubt: Vec<PartitionRanges>,

    /// Messages that were sent and dead-lettered again, the first 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub returned: Vec<Returned>,
}

/// The operator process that runs a replay.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Its identity, as in the lease.
    #[schemars(length(min = 1, max = 253))]
    pub identity: String,

    /// Since when it runs this replay.
    #[schemars(with = "schema::DateTime")]
    pub since: Time,
}

/// Messages by what became of them.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// In the frozen selection.
    #[schemars(range(min = 0))]
    pub selected: i64,

    /// Sent and confirmed.
    #[schemars(range(min = 0))]
    pub sent: i64,

    /// In an aborted slice, maybe seen by readers with read_uncommitted.
    #[schemars(range(min = 0))]
    pub uncertain: i64,

    /// Sent, and the group has done with them.
    #[schemars(range(min = 0))]
    pub settled: i64,

    /// Sent, and deleted by retention before the group had done with them.
    #[schemars(range(min = 0))]
    pub expired: i64,

    /// Sent, and dead-lettered again.
    #[schemars(range(min = 0))]
    pub returned: i64,

    /// Left out because they cannot be sent.
    #[schemars(range(min = 0))]
    pub skipped: i64,

    /// Sent, and not confirmed or denied by the broker yet.
    #[schemars(range(min = 0))]
    pub in_doubt: i64,

    /// Not sent.
    #[schemars(range(min = 0))]
    pub remaining: i64,
}

/// One step of a canary.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Counted from 1.
    #[schemars(range(min = 1))]
    pub number: i32,

    /// Messages in the step.
    #[schemars(range(min = 0))]
    pub size: i64,

    /// Of these, sent and confirmed.
    #[schemars(range(min = 0))]
    pub sent: i64,

    /// Of these, done by the group.
    #[schemars(range(min = 0))]
    pub settled: i64,

    /// Of these, dead-lettered again.
    #[schemars(range(min = 0))]
    pub returned: i64,

    /// When the step began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub started_at: Option<Time>,

    /// When the step times out; known once all of it is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub deadline: Option<Time>,

    /// How the step ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<StepVerdict>,
}

/// How a step ended.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepVerdict {
    /// The group has done with all of it.
    Settled,
    /// The group has done with a part of it by the time-out.
    PartlySettled,
    /// A message came back.
    Returned,
    /// The group has done with nothing of it by the time-out.
    NoneSettled,
    /// The replay was cancelled.
    Cancelled,
}

/// A message that was sent and dead-lettered again.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Returned {
    /// Partition of the dead letter that was replayed.
    #[schemars(range(min = 0))]
    pub partition: i32,

    /// Offset of the dead letter that was replayed.
    #[schemars(range(min = 0))]
    pub offset: i64,

    /// Partition of the new dead letter.
    #[schemars(range(min = 0))]
    pub dead_letter_partition: i32,

    /// Offset of the new dead letter.
    #[schemars(range(min = 0))]
    pub dead_letter_offset: i64,

    /// Why it was dead-lettered again.
    pub cause: Cause,

    /// The same in the broker's words.
    #[schemars(length(max = 1024))]
    pub message: String,

    /// Deliveries it had this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub deliveries: Option<i32>,
}
