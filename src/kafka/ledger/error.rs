use super::codec::DecodeEntry;
use crate::kafka::admin::{AdminError, Refusal};
use crate::kafka::reader::ReadError;
use crate::kafka::{Coordinates, TopicPartition};
use std::time::Duration;

/// Why the ledger can't be used. Without it nothing may be sent.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("could not look up the ledger topic {topic}: {source}")]
    FindTopic { topic: String, source: AdminError },
    #[error("the operator may not describe the ledger topic {topic}")]
    AuthorizeTopic { topic: String },
    #[error("{topic} is no name a ledger topic can have")]
    NameTopic { topic: String },
    #[error("could not create the ledger topic {topic}: {source}")]
    CreateTopic { topic: String, source: AdminError },
    #[error("the ledger topic {topic} has no leader for all its partitions after {} s", waited.as_secs())]
    AwaitLeaders { topic: String, waited: Duration },
    #[error("could not read the configuration of the ledger topic {topic}: {reason}")]
    ReadConfig { topic: String, reason: String },
    #[error("the ledger topic {topic} can't be relied on: {problem}")]
    TrustTopic { topic: String, problem: String },
    #[error(
        "the ledger topic {topic} was deleted or made anew since it was last used: what was sent is not known any more"
    )]
    KeepTopic { topic: String },
    #[error("could not ask for the offsets of {at}: {refusal}")]
    AskOffsets { at: TopicPartition, refusal: Refusal },
    #[error("could not ask for the offsets of the ledger topic {topic}: {source}")]
    AskBroker { topic: String, source: AdminError },
    #[error("could not read the ledger: {0}")]
    ReadTopic(#[from] ReadError),
    #[error("the ledger's record at {at} can't be read: {source}")]
    DecodeEntry { at: Coordinates, source: DecodeEntry },
}
