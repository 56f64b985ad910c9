//! Acknowledgements of one batch of records, collected by the records' positions.

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{NoCustomPartitioner, ProducerContext};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Filled by librdkafka's thread.
#[derive(Default)]
pub(super) struct Acks {
    state: Mutex<State>,
    changed: Condvar,
    fault: Mutex<Option<String>>,
}

#[derive(Default)]
struct State {
    /// Of those enqueued, by position; negative while unknown.
    offsets: Vec<i64>,
    open: usize,
    failed: Option<Failed>,
}

/// The first record that failed. Records that failed only because they shared its batch come after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub index: usize,
    pub code: RDKafkaErrorCode,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unacknowledged {
    Failed(Failed),
    /// So many records were not acknowledged in time.
    TimedOut {
        open: usize,
    },
    /// The broker has the record already, but does not say where.
    Unlocated {
        index: usize,
    },
}

impl Acks {
    pub(super) fn begin(&self, records: usize) {
        *lock(&self.state) = State { offsets: vec![-1; records], open: records, failed: None };
    }

    fn note(&self, index: usize, result: Result<i64, RDKafkaErrorCode>) {
        let mut state = lock(&self.state);
        state.open = state.open.saturating_sub(1);
        match result {
            Ok(offset) => {
                if let Some(place) = state.offsets.get_mut(index) {
                    *place = offset;
                }
            }
            Err(code) if replaces(code, state.failed) => state.failed = Some(Failed { index, code }),
            Err(_) => {}
        }
        if state.open == 0 || state.failed.is_some() {
            self.changed.notify_all();
        }
    }

    /// The first failure so far.
    pub(super) fn failed(&self) -> Option<Failed> {
        lock(&self.state).failed
    }

    /// The offsets of all records, or what is wrong as soon as something is.
    pub(super) fn wait(&self, until: Instant) -> Result<Vec<i64>, Unacknowledged> {
        let mut state = lock(&self.state);
        while state.open > 0 && state.failed.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Unacknowledged::TimedOut { open: state.open });
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.result()
    }

    /// Waits a moment for room in librdkafka's queue, which acknowledgements make.
    pub(super) fn wait_for_room(&self) {
        let state = lock(&self.state);
        drop(self.changed.wait_timeout(state, Duration::from_millis(5)));
    }

    /// The last thing that went wrong with the connection.
    pub(super) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }
}

impl State {
    fn result(&mut self) -> Result<Vec<i64>, Unacknowledged> {
        if let Some(failed) = self.failed {
            return Err(Unacknowledged::Failed(failed));
        }
        let offsets = std::mem::take(&mut self.offsets);
        match offsets.iter().position(|&offset| offset < 0) {
            Some(index) => Err(Unacknowledged::Unlocated { index }),
            None => Ok(offsets),
        }
    }
}

/// The record that is to blame is worth more than one that only was in its batch.
fn replaces(code: RDKafkaErrorCode, known: Option<Failed>) -> bool {
    known.is_none_or(|known| is_bystander(known.code) && !is_bystander(code))
}

fn is_bystander(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::InvalidDifferentRecord | RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::PurgeInflight
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientContext for Acks {
    fn error(&self, _: KafkaError, reason: &str) {
        *lock(&self.fault) = Some(reason.to_owned());
    }

    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, "{message}");
    }
}

impl ProducerContext<NoCustomPartitioner> for Acks {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, index: usize) {
        let code = |error: &KafkaError| error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
        self.note(index, result.as_ref().map(Message::offset).map_err(|(error, _)| code(error)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[test]
    fn acknowledgements_keep_the_order_of_the_records() {
        let acks = Acks::default();
        acks.begin(3);
        [(2, 12), (0, 10), (1, 11)].into_iter().for_each(|(index, offset)| acks.note(index, Ok(offset)));
        assert_eq!(acks.wait(soon()), Ok(vec![10, 11, 12]));
    }

    #[test]
    fn a_failure_ends_the_wait_at_once() {
        let acks = Acks::default();
        acks.begin(2);
        acks.note(1, Err(RDKafkaErrorCode::MessageSizeTooLarge));
        let failed = Failed { index: 1, code: RDKafkaErrorCode::MessageSizeTooLarge };
        assert_eq!(acks.wait(soon()), Err(Unacknowledged::Failed(failed)));
    }

    #[test]
    fn the_record_to_blame_is_named() {
        let acks = Acks::default();
        acks.begin(3);
        acks.note(0, Err(RDKafkaErrorCode::InvalidDifferentRecord));
        acks.note(1, Err(RDKafkaErrorCode::InvalidRecord));
        acks.note(2, Err(RDKafkaErrorCode::InvalidDifferentRecord));
        assert_eq!(acks.failed(), Some(Failed { index: 1, code: RDKafkaErrorCode::InvalidRecord }));
    }

    #[test]
    fn an_acknowledgement_without_an_offset_is_none() {
        let acks = Acks::default();
        acks.begin(2);
        acks.note(0, Ok(7));
        acks.note(1, Ok(-1001));
        assert_eq!(acks.wait(soon()), Err(Unacknowledged::Unlocated { index: 1 }));
    }

    #[test]
    fn silence_ends_in_time() {
        let acks = Acks::default();
        acks.begin(2);
        acks.note(0, Ok(7));
        assert_eq!(acks.wait(Instant::now()), Err(Unacknowledged::TimedOut { open: 1 }));
    }
}
