//! All that speaks to Kafka, and nothing that knows Kubernetes.

pub mod admin;
pub mod connection;
pub mod dead_letter;
pub mod ledger;
pub mod native;
pub mod offset_set;
pub mod reader;
pub mod record;
pub mod sender;
pub mod settings;
pub mod share_groups;

use serde::{Deserialize, Serialize};
use std::fmt;

/// The id Kafka gives a topic at its creation: a topic made anew under the same name has another one (KIP-516).
pub type TopicId = uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicPartition {
    pub topic: String,
    pub partition: i32,
}

impl TopicPartition {
    pub fn new(topic: impl Into<String>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// Where one record is: the identity of a message, as a produce acknowledgement and a dead letter's headers both name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Coordinates {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
}

impl Coordinates {
    pub fn new(topic: impl Into<String>, partition: i32, offset: i64) -> Self {
        Self { topic: topic.into(), partition, offset }
    }

    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition::new(&self.topic, self.partition)
    }

    /// Reads what `Display` writes: `<topic>-<partition>@<offset>`. A topic's name may itself contain `-`.
    pub fn parse(text: &str) -> Option<Self> {
        let (place, offset) = text.rsplit_once('@')?;
        let (topic, partition) = place.rsplit_once('-')?;
        Some(Self::new(topic, partition.parse().ok()?, offset.parse().ok()?))
    }
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}@{}", self.topic, self.partition, self.offset)
    }
}

/// Which records of transactions a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
}

/// Offsets `from` to `until` (exclusive) of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub partition: i32,
    pub from: i64,
    pub until: i64,
}
