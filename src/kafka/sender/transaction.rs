//! One transaction from begin to commit, on a thread that may block.

use super::acks::{Acks, Failed, Unacknowledged};
use super::{ACKNOWLEDGE_WITHIN, Acknowledged, COORDINATE_WITHIN, Outgoing, SendError, Wanted};
use crate::kafka::native::producer::{Message, NativeError, commit, produce};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{Producer, ThreadedProducer};
use std::sync::Arc;
use std::time::Instant;

type Done = (Vec<Acknowledged>, Vec<Acknowledged>);

pub(super) fn run(
    producer: &ThreadedProducer<Acks>,
    records: Vec<Outgoing>,
    closing: impl FnOnce(&[Acknowledged]) -> Vec<Outgoing>,
    wanted: &Wanted,
) -> Result<Done, SendError> {
    producer.begin_transaction().map_err(SendError::begin)?;
    // One deadline for both rounds, so that they stay within the transaction's own time.
    let until = Instant::now() + ACKNOWLEDGE_WITHIN;
    let sent = send(producer, records, until, wanted)?;
    let closed = send(producer, closing(&sent), until, wanted)?;
    check(wanted)?;
    commit(producer, COORDINATE_WITHIN).map_err(|error| SendError::commit(error, producer.context().fault()))?;
    Ok((sent, closed))
}

fn check(wanted: &Wanted) -> Result<(), SendError> {
    if wanted.is_over() { Err(SendError::Abandon) } else { Ok(()) }
}

fn send(
    producer: &ThreadedProducer<Acks>,
    records: Vec<Outgoing>,
    until: Instant,
    wanted: &Wanted,
) -> Result<Vec<Acknowledged>, SendError> {
    let acks = producer.context();
    acks.begin(records.len());
    let mut targets = Vec::with_capacity(records.len());
    for (index, record) in records.into_iter().enumerate() {
        enqueue(producer, &record, index, until, wanted)?;
        // Key, value and headers are librdkafka's now; of the record only its target stays.
        targets.push((shared(&targets, record.topic), record.partition));
    }
    let offsets = acks.wait(until).map_err(|error| unacknowledged(acks, &targets, error))?;
    let place = |((topic, partition), offset)| Acknowledged { topic, partition, offset };
    Ok(targets.into_iter().zip(offsets).map(place).collect())
}

/// Neighbours mostly go to the same topic, so its name is shared rather than copied.
fn shared(before: &[(Arc<str>, i32)], topic: String) -> Arc<str> {
    match before.last() {
        Some((last, _)) if **last == topic => last.clone(),
        _ => topic.into(),
    }
}

fn enqueue(
    producer: &ThreadedProducer<Acks>,
    record: &Outgoing,
    index: usize,
    until: Instant,
    wanted: &Wanted,
) -> Result<(), SendError> {
    let Outgoing { topic, partition, key, value, headers } = record;
    let (key, value) = (key.as_deref(), value.as_deref());
    let message = Message { topic, partition: *partition, key, value, headers, index };
    let acks = producer.context();
    loop {
        check(wanted)?;
        match produce(producer, &message) {
            Ok(()) => return Ok(()),
            Err(NativeError { code: RDKafkaErrorCode::QueueFull, .. })
                if acks.failed().is_none() && Instant::now() < until =>
            {
                acks.wait_for_room();
            }
            Err(error) => return Err(refused(acks, record, index, error)),
        }
    }
}

/// An error of librdkafka at a record may only repeat what failed before it.
fn refused(acks: &Acks, record: &Outgoing, index: usize, error: NativeError) -> SendError {
    let code = error.code;
    match acks.failed() {
        Some(failed) if failed.index != index => SendError::Acknowledge { index: failed.index, code: failed.code },
        _ => SendError::Refuse { index, target: record.target(), code, reason: error.message },
    }
}

fn unacknowledged(acks: &Acks, targets: &[(Arc<str>, i32)], error: Unacknowledged) -> SendError {
    match error {
        Unacknowledged::Failed(Failed { index, code }) => match targets.get(index) {
            Some((topic, partition)) => SendError::refuse(index, topic, *partition, code),
            None => SendError::Acknowledge { index, code },
        },
        Unacknowledged::TimedOut { open } => {
            SendError::TimeOut { open, within: ACKNOWLEDGE_WITHIN, fault: acks.fault() }
        }
        Unacknowledged::Unlocated { index } => SendError::Locate { index },
    }
}
