//! What the ledger can hold: the entries, as they are in memory and in JSON.

use crate::kafka::offset_set::{OffsetSet, PartitionSets};
use crate::kafka::{TopicId, TopicPartition};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One entry about one dead-letter topic. Later entries with the same [key](Entry::key) replace earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Claim(Claim),
    Start(Start),
    Intent(Intent),
    Outcome(Outcome),
    Uncertain(Uncertain),
    Release(Release),
    End(End),
}

/// An operator process has taken over the sending for this dead-letter topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The process.
    pub operator: String,
    /// The installation it belongs to: two of them on one Kafka cluster must not share a ledger unnoticed.
    pub installation: String,
    /// The lease's `leaseTransitions` when it was taken. A claim with a higher one outranks this one.
    pub term: u64,
    /// Milliseconds since the epoch, here and in every entry.
    pub at: i64,
}

/// A replay has frozen its selection; nothing is sent yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub group: String,
    pub token: String,
    pub spec_digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    pub strategy: String,
    /// Offsets in the dead-letter topic.
    pub selected: PartitionSets,
    /// Ids of the source and target topics by name: under another id it is another topic.
    pub topics: BTreeMap<String, TopicId>,
    /// The group whose progress settles a message.
    pub settling_group: String,
    /// Ends of the dead-letter topic before the first send, by partition: what came back lies from there on.
    pub dead_letter_ends: BTreeMap<i32, i64>,
    pub at: i64,
}

/// The next step is about to be sent. Whatever of it has no outcome may be on the target, from the recorded offsets on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub uid: String,
    pub step: u32,
    /// Messages of the whole step; a large one has several intents, one after the other.
    pub size: u64,
    pub letters: PartitionSets,
    pub targets: Vec<IntentTarget>,
    pub at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentTarget {
    pub topic: String,
    pub id: TopicId,
    pub partition: i32,
    /// The high watermark before the step: nothing of the step lies below it.
    pub end_offset: i64,
}

/// A slice of a step was sent. It is in the transaction that sent the slice, so either both are there or neither.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub uid: String,
    pub step: u32,
    pub slice: u32,
    pub moves: Vec<Move>,
    pub at: i64,
}

/// Letters of one dead-letter partition whose originals, of one source partition, went to one target partition.
///
/// Letters and target offsets pair up by rank: within a move records are sent in ascending order of their dead letters.
/// Source offsets are a set only, as dead letters are not in the order of their source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    pub letter_partition: i32,
    pub letters: OffsetSet,
    pub source: TopicPartition,
    pub source_id: TopicId,
    pub source_offsets: OffsetSet,
    pub target: TopicPartition,
    pub target_id: TopicId,
    pub target_offsets: OffsetSet,
    /// 1 for a record never sent by us before, 2 where that copy was dead-lettered and sent again, and so on.
    pub attempt: u32,
}

/// Letters of a step whose slice was cut off: readers of uncommitted records may have seen them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncertain {
    pub uid: String,
    pub step: u32,
    /// Counts the times this replay was cut off, from 0: a step can be cut off more than once.
    pub number: u32,
    /// Found on the target, in an aborted transaction. `target_offsets` is empty where the log was gone.
    pub moves: Vec<Move>,
    /// Letters of which nothing more is known.
    pub unlocated: PartitionSets,
    pub at: i64,
}

/// The owner stopped in good order between two slices: the next one goes on, without an interruption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    pub uid: String,
    pub at: i64,
}

/// The replay is over; nothing of it is ever sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub uid: String,
    pub reason: String,
    pub message: String,
    pub counts: BTreeMap<String, u64>,
    pub at: i64,
}

impl Entry {
    /// The record key in the compacted topic: `<dead-letter topic id>/<kind>` and what tells entries of that kind apart.
    pub fn key(&self, dlq: TopicId) -> String {
        let kind = self.kind();
        match self {
            Self::Claim(_) => format!("{dlq}/{kind}"),
            Self::Start(Start { uid, .. })
            | Self::Intent(Intent { uid, .. })
            | Self::Release(Release { uid, .. })
            | Self::End(End { uid, .. }) => format!("{dlq}/{kind}/{uid}"),
            Self::Outcome(Outcome { uid, step, slice: number, .. })
            | Self::Uncertain(Uncertain { uid, step, number, .. }) => format!("{dlq}/{kind}/{uid}/{step}/{number}"),
        }
    }

    /// The replay that the entry is about; a claim is about none.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Self::Claim(_) => None,
            Self::Start(Start { uid, .. })
            | Self::Intent(Intent { uid, .. })
            | Self::Outcome(Outcome { uid, .. })
            | Self::Uncertain(Uncertain { uid, .. })
            | Self::Release(Release { uid, .. })
            | Self::End(End { uid, .. }) => Some(uid),
        }
    }

    /// The name of the kind in keys and values.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Claim(_) => "claim",
            Self::Start(_) => "start",
            Self::Intent(_) => "intent",
            Self::Outcome(_) => "outcome",
            Self::Uncertain(_) => "uncertain",
            Self::Release(_) => "release",
            Self::End(_) => "end",
        }
    }
}
