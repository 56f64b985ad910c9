//! Sending: whole slices in one transaction each, by a producer of which there is only one at a time.
//!
//! Owning a transactional id cuts off every earlier owner: the brokers refuse whatever of it still arrives, and abort what it
//! had open. That fencing is what keeps a record from being sent twice; everything here serves it:
//!
//! - After any failure the sender is gone. It is never asked to abort (that would be a request of its own, and would let the
//!   producer live on), and no record is ever handed to it again. The next owner's start aborts what is open.
//! - librdkafka does not abort on its own: destroying a producer frees its transaction's state and sends nothing, and an
//!   error in a transaction makes it wait for an abort by the application, which never comes. Nor does it ask for a new
//!   producer id once it is fenced, which would cut off the successor.
//! - Its own retries of a record carry the producer's epoch and sequence numbers, so they can neither double it nor land after
//!   the fencing. They end with the producer.

mod acks;
mod error;
mod transaction;

pub use error::SendError;

use crate::kafka::TopicPartition;
use crate::kafka::record::Header;
use crate::kafka::settings::Settings;
use acks::Acks;
use rdkafka::ClientConfig;
use rdkafka::producer::{Producer, PurgeConfig, ThreadedProducer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A record to be sent to a partition of the sender's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub topic: String,
    pub partition: i32,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<Header>,
}

impl Outgoing {
    pub fn target(&self) -> TopicPartition {
        TopicPartition::new(&self.topic, self.partition)
    }

    /// Bytes of key, value and headers.
    pub fn size(&self) -> usize {
        let bytes = |part: &Option<Vec<u8>>| part.as_ref().map_or(0, Vec::len);
        let headers = self.headers.iter().map(|header| header.key.len() + bytes(&header.value));
        bytes(&self.key) + bytes(&self.value) + headers.sum::<usize>()
    }
}

/// Where the broker put a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    pub topic: Arc<str>,
    pub partition: i32,
    pub offset: i64,
}

/// After this long the broker aborts an open transaction of an owner that went silent.
pub const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the brokers may take to acknowledge a slice. Below the transaction's time, so that there is some left to commit.
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(12);
/// How long `own` and a commit may take.
const COORDINATE_WITHIN: Duration = Duration::from_secs(15);

/// The owner of a transactional id.
pub struct Sender {
    /// None only while it is being dropped.
    producer: Option<ThreadedProducer<Acks>>,
    transactional_id: Arc<str>,
}

impl Sender {
    /// Takes the transactional id over: cuts off whoever had it and aborts its open transaction.
    ///
    /// # Errors
    /// [`SendError::Own`] if the coordinator does not answer in 15 s or refuses.
    pub async fn own(settings: &Settings, transactional_id: &str) -> Result<Self, SendError> {
        let config = config(settings, transactional_id);
        let transactional_id: Arc<str> = transactional_id.into();
        blocking(move |_| {
            let producer = config.create_with_context(Acks::default()).map_err(SendError::CreateProducer)?;
            let sender = Self { producer: Some(producer), transactional_id };
            match sender.init() {
                Ok(()) => Ok(sender),
                Err(error) => Err(sender.end(error)),
            }
        })
        .await
    }

    fn init(&self) -> Result<(), SendError> {
        let producer = self.producer()?;
        let own = |error| SendError::own(&self.transactional_id, error, producer.context().fault());
        producer.init_transactions(COORDINATE_WITHIN).map_err(own)
    }

    /// One transaction: sends `records`, waits for every acknowledgement, gives them to `closing` in the same order, sends the
    /// records it makes of them, and commits.
    ///
    /// Gives the sender back with the acknowledgements of both. After an error it is gone: whether anything was committed is
    /// for the next owner to find out, and the records must not be sent before it has. If the future is dropped, the
    /// transaction is not committed unless the commit is already under way.
    pub async fn transact(
        self,
        records: Vec<Outgoing>,
        closing: impl FnOnce(&[Acknowledged]) -> Vec<Outgoing> + Send + 'static,
    ) -> Result<(Self, Vec<Acknowledged>, Vec<Acknowledged>), SendError> {
        blocking(move |wanted| match transaction::run(self.producer()?, records, closing, &wanted) {
            Ok((sent, closed)) => Ok((self, sent, closed)),
            Err(error) => Err(self.end(error)),
        })
        .await
    }

    fn producer(&self) -> Result<&ThreadedProducer<Acks>, SendError> {
        self.producer.as_ref().ok_or(SendError::EndThread)
    }

    /// Ends the producer before anyone hears of the error, so that nothing of it leaves the process afterwards. Takes up to a
    /// second.
    fn end(mut self, error: SendError) -> SendError {
        let error = self.blame(error);
        drop(self.producer.take());
        error
    }

    /// Once a producer is fenced, that is the cause of all else that fails.
    fn blame(&self, error: SendError) -> SendError {
        let fatal = self.producer.as_ref().and_then(|producer| producer.client().fatal_error());
        match fatal {
            Some((code, reason)) if error::is_fencing(code) => {
                SendError::Fenced { transactional_id: self.transactional_id.to_string(), reason }
            }
            _ => error,
        }
    }
}

impl Drop for Sender {
    /// What is still to be sent is discarded at once. Ending librdkafka's threads can take some hundred milliseconds, so
    /// where an async task might be waiting another thread does it.
    fn drop(&mut self) {
        let Some(producer) = self.producer.take() else { return };
        producer.purge(PurgeConfig::default().queue().inflight().non_blocking());
        if tokio::runtime::Handle::try_current().is_ok() {
            tokio::task::spawn_blocking(move || drop(producer));
        }
    }
}

/// Runs `work` where it may block. It is told when nobody waits for its result any more.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce(Wanted) -> Result<T, SendError> + Send + 'static,
) -> Result<T, SendError> {
    let wanted = Wanted::default();
    let _unwanted_on_drop = Unwanted(wanted.clone());
    tokio::task::spawn_blocking(move || work(wanted)).await.map_err(|_| SendError::EndThread)?
}

/// Whether someone waits for the result.
#[derive(Clone, Default)]
struct Wanted(Arc<AtomicBool>);

impl Wanted {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

struct Unwanted(Wanted);

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Release);
    }
}

fn config(settings: &Settings, transactional_id: &str) -> ClientConfig {
    let mut config = settings.rdkafka();
    config
        .set("transactional.id", transactional_id)
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("transaction.timeout.ms", TRANSACTION_TIMEOUT.as_millis().to_string())
        .set("message.timeout.ms", ACKNOWLEDGE_WITHIN.as_millis().to_string())
        .set("request.timeout.ms", "10000")
        .set("max.in.flight.requests.per.connection", "5")
        .set("linger.ms", "2")
        // A slice is bounded by its maker, not here.
        .set("queue.buffering.max.messages", "0")
        .set("queue.buffering.max.kbytes", (1 << 20).to_string())
        // The broker decides what is too large, up to about its own limit for a request (100 MiB by default).
        .set("message.max.bytes", (96 << 20).to_string())
        // A topic may allow less than a mebibyte, and a batch is refused as a whole: so batches stay well below.
        .set("batch.size", (128 << 10).to_string())
        // The originals' codec is not known to a consumer, and a reader need not have another. `compression.type` of the topic
        // still has its way.
        .set("compression.type", "none");
    config
}
