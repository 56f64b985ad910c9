//! The ledger: what was sent, kept in a compacted topic of the same Kafka cluster, in the same transactions as the records.
//!
//! It is the truth. Each record is one entry about one dead-letter topic: the key names the topic, the kind of entry and what
//! tells entries of that kind apart, the value is JSON with a format version. `docs/ledger.md` describes both.

mod codec;
mod entry;
mod error;
mod history;
mod replayed;
mod targets;
mod topic;

pub use codec::{DecodeEntry, VERSION};
pub use entry::{Claim, End, Entry, Intent, IntentTarget, Move, Outcome, Release, Start, Uncertain};
pub use error::LedgerError;
pub use history::{History, ReplayHistory};
pub use replayed::{Replayed, Sighting};
pub use targets::Targets;
pub use topic::{Ledger, LedgerSpec, MAX_ENTRY_BYTES};

use crate::kafka::TopicId;
use crate::kafka::sender::Outgoing;

impl Entry {
    /// The record to be sent, in the same transaction as what the entry is about.
    pub fn outgoing(&self, ledger: &Ledger, dlq: TopicId) -> Outgoing {
        Outgoing {
            topic: ledger.topic.clone(),
            partition: ledger.partition_of(dlq),
            key: Some(self.key(dlq).into_bytes()),
            value: Some(codec::encode(self)),
            headers: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
