use crate::kafka::TopicPartition;
use crate::kafka::native::producer::NativeError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::time::Duration;

/// Why a transaction did not come to its end. Only the next owner can tell whether anything of it was committed.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("could not set up a producer: {0}")]
    CreateProducer(#[source] KafkaError),
    #[error("could not take over the transactional id {transactional_id}: {reason}")]
    Own { transactional_id: String, code: RDKafkaErrorCode, reason: String },
    #[error("another process has taken over the transactional id {transactional_id}: {reason}")]
    Fenced { transactional_id: String, reason: String },
    #[error("could not begin a transaction: {reason}")]
    Begin { code: RDKafkaErrorCode, reason: String },
    /// A record or its target was refused: sending the same again would be refused again. Brokers refuse whole batches, and do
    /// not always say which record is to blame; then `index` is that of the batch's first. Who has to know looks beforehand
    /// for what brokers refuse: records above the topic's `max.message.bytes`, and null keys in compacted topics.
    #[error("record {index} of the transaction was refused by {target}: {reason}")]
    Refuse { index: usize, target: TopicPartition, code: RDKafkaErrorCode, reason: String },
    #[error("record {index} of the transaction was not acknowledged: {code}")]
    Acknowledge { index: usize, code: RDKafkaErrorCode },
    #[error("the offset of record {index} of the transaction was not acknowledged")]
    Locate { index: usize },
    #[error("{open} records were not acknowledged in {} s{}", within.as_secs(), fault.as_ref().map(|fault| format!(": {fault}")).unwrap_or_default())]
    TimeOut { open: usize, within: Duration, fault: Option<String> },
    #[error("whether the transaction was committed is unknown: {reason}")]
    Commit { code: RDKafkaErrorCode, reason: String },
    #[error("the transaction was left uncommitted, as nobody waited for it any more")]
    Abandon,
    #[error("the thread that sends ended too early")]
    EndThread,
}

impl SendError {
    /// Whether someone else owns the transactional id now.
    pub fn is_fenced(&self) -> bool {
        match self {
            Self::Fenced { .. } => true,
            Self::Own { code, .. }
            | Self::Begin { code, .. }
            | Self::Commit { code, .. }
            | Self::Refuse { code, .. }
            | Self::Acknowledge { code, .. } => is_fencing(*code),
            _ => false,
        }
    }

    /// The record, by its position in what was to be sent, that can never be sent as it is to where it should go, or the first
    /// of a batch that holds one.
    pub fn refused_record(&self) -> Option<usize> {
        match self {
            Self::Refuse { index, .. } => Some(*index),
            _ => None,
        }
    }

    pub(super) fn own(transactional_id: &str, error: KafkaError, fault: Option<String>) -> Self {
        let (code, reason) = describe(&error);
        Self::Own { transactional_id: transactional_id.to_owned(), code, reason: with_fault(reason, fault) }
    }

    pub(super) fn begin(error: KafkaError) -> Self {
        let (code, reason) = describe(&error);
        Self::Begin { code, reason }
    }

    pub(super) fn commit(error: NativeError, fault: Option<String>) -> Self {
        Self::Commit { code: error.code, reason: with_fault(error.message, fault) }
    }

    pub(super) fn refuse(index: usize, topic: &str, partition: i32, code: RDKafkaErrorCode) -> Self {
        if is_refusal(code) {
            Self::Refuse { index, target: TopicPartition::new(topic, partition), code, reason: code.to_string() }
        } else {
            Self::Acknowledge { index, code }
        }
    }
}

/// What librdkafka says of a call is mostly that it took too long; what it says of the connection is why.
fn with_fault(reason: String, fault: Option<String>) -> String {
    match fault {
        Some(fault) => format!("{reason} ({fault})"),
        None => reason,
    }
}

fn describe(error: &KafkaError) -> (RDKafkaErrorCode, String) {
    let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
    let reason = match error {
        KafkaError::Transaction(error) => error.string(),
        _ => error.to_string(),
    };
    (code, reason)
}

pub(super) fn is_fencing(code: RDKafkaErrorCode) -> bool {
    matches!(code, RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced | RDKafkaErrorCode::InvalidProducerEpoch)
}

fn is_refusal(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::MessageSizeTooLarge
            | RDKafkaErrorCode::InvalidRecord
            | RDKafkaErrorCode::InvalidMessage
            | RDKafkaErrorCode::InvalidTimestamp
            | RDKafkaErrorCode::InvalidTopic
            | RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownPartition
            | RDKafkaErrorCode::PolicyViolation
            | RDKafkaErrorCode::TopicAuthorizationFailed
    )
}
