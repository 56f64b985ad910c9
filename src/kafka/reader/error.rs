use crate::kafka::Coordinates;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::time::Duration;

/// Why records could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("could not set up a consumer: {0}")]
    CreateConsumer(#[source] KafkaError),
    #[error("could not start a thread to read on: {0}")]
    StartThread(#[source] std::io::Error),
    #[error("could not start to read at {at}: {code}")]
    StartPartition { at: Coordinates, code: RDKafkaErrorCode },
    #[error("could not read on at {at}: offset {} is not in the partition, so records were deleted meanwhile", at.offset)]
    FindOffset { at: Coordinates },
    #[error("could not read on at {at}: the topic or partition does not exist any more, or was made anew")]
    FindTopic { at: Coordinates },
    #[error("could not read at {at}: the operator may not read the topic {}", at.topic)]
    Authorize { at: Coordinates },
    #[error("could not read at {at}: {code}")]
    ReadPartition { at: Coordinates, code: RDKafkaErrorCode },
    #[error("the headers of the record at {at} are not in Kafka's format: {code}")]
    ReadHeaders { at: Coordinates, code: RDKafkaErrorCode },
    #[error("could not ask for the first and last offset of {at}: {source}")]
    AskOffsets { at: Coordinates, source: KafkaError },
    #[error("nothing came from {at} on for {} s{}", waited.as_secs(), fault.as_ref().map(|fault| format!(": {fault}")).unwrap_or_default())]
    AwaitRecords { at: Coordinates, waited: Duration, fault: Option<String> },
    #[error("the thread that reads ended too early")]
    EndThread,
}

impl ReadError {
    /// What a message of librdkafka in place of a record means.
    pub(super) fn of(code: RDKafkaErrorCode, at: Coordinates) -> Self {
        match code {
            RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange => Self::FindOffset { at },
            RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownPartition
            | RDKafkaErrorCode::UnknownTopicId => Self::FindTopic { at },
            RDKafkaErrorCode::TopicAuthorizationFailed => Self::Authorize { at },
            _ => Self::ReadPartition { at, code },
        }
    }
}
