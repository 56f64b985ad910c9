//! What both orders of reading share: the consumer, the batches on their way out, and the patience.

use super::ReadError;
use super::cursor::{Cursor, Next};
use crate::kafka::native::consumer::{Consumer, Message, Queue, Topic};
use crate::kafka::record::Record;
use crate::kafka::settings::Settings;
use crate::kafka::{Coordinates, Isolation};
use rdkafka::ClientConfig;
use rdkafka::error::RDKafkaErrorCode;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long a wait takes before looking whether anyone still wants the records.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// Gaps between spans up to this many offsets are read through rather than jumped.
const SKIP: i64 = 500;
/// How long nothing has come when the brokers are asked whether the partition still exists, and how long that may take.
const LOOK_AFTER: Duration = Duration::from_secs(2);
const LOOK_WITHIN: Duration = Duration::from_secs(3);
const BATCH_BYTES: usize = 1 << 20;
const BATCH_RECORDS: usize = 4096;

/// The reading is over: all is read, it failed, or nobody wants the rest.
#[derive(Debug)]
pub(super) struct Over;

pub(super) struct Source {
    consumer: Consumer,
    topic: Topic,
    name: String,
    batch: Vec<Record>,
    batch_bytes: usize,
    batches: mpsc::Sender<Result<Vec<Record>, ReadError>>,
    silence: Silence,
}

impl Source {
    pub(super) fn open(
        settings: &Settings,
        topic: &str,
        isolation: Isolation,
        partitions: usize,
        patience: Duration,
        batches: mpsc::Sender<Result<Vec<Record>, ReadError>>,
    ) -> Result<Self, ReadError> {
        let ahead = Ahead::of(partitions);
        let consumer = Consumer::new(&config(settings, isolation, ahead)).map_err(ReadError::CreateConsumer)?;
        let handle = consumer.topic(topic).map_err(ReadError::CreateConsumer)?;
        let name = topic.to_owned();
        let (batch, batch_bytes, silence) = (Vec::new(), 0, Silence::new(patience));
        Ok(Self { consumer, topic: handle, name, batch, batch_bytes, batches, silence })
    }

    pub(super) fn queue(&self) -> Queue {
        self.consumer.queue()
    }

    pub(super) fn at(&self, partition: i32, offset: i64) -> Coordinates {
        Coordinates::new(&self.name, partition, offset)
    }

    pub(super) fn start(&mut self, partition: i32, cursor: &Cursor, queue: &Queue) -> Result<(), ReadError> {
        let started = self.topic.start(partition, cursor.position(), queue);
        started.map_err(|code| ReadError::StartPartition { at: self.at(partition, cursor.position()), code })
    }

    /// Moves the cursor on by a message, and the fetching with it. Gives the record if it is wanted.
    pub(super) fn take(&mut self, message: &Message<'_>, cursor: &mut Cursor) -> Result<Option<Record>, ReadError> {
        self.silence.end();
        let (partition, offset) = (message.partition(), message.offset());
        let (record, reached) = match message.error() {
            None if cursor.wants(offset) => (Some(self.record(message)?), offset + 1),
            None => (None, offset + 1),
            // Up to here there is nothing more for now, whatever stands between the last record and here.
            Some(RDKafkaErrorCode::PartitionEOF) => (None, offset),
            Some(code) => return Err(ReadError::of(code, self.at(partition, cursor.position()))),
        };
        match cursor.reach(reached, SKIP) {
            Next::Here => {}
            Next::Seek(to) => {
                let sought = self.topic.seek(partition, to);
                sought.map_err(|code| ReadError::StartPartition { at: self.at(partition, to), code })?;
            }
            Next::Nowhere => self.topic.stop(partition),
        }
        Ok(record)
    }

    fn record(&self, message: &Message<'_>) -> Result<Record, ReadError> {
        let at = || self.at(message.partition(), message.offset());
        message.to_record().map_err(|code| ReadError::ReadHeaders { at: at(), code })
    }

    /// Adds a record to the batch, and hands a full batch over, waiting until it is asked for.
    pub(super) fn give(&mut self, record: Record) -> Result<(), Over> {
        self.batch_bytes += record.size();
        self.batch.push(record);
        let full = self.batch.len() >= BATCH_RECORDS || self.batch_bytes >= BATCH_BYTES;
        if full { self.hand_over() } else { Ok(()) }
    }

    /// Hands over what there is of a batch.
    pub(super) fn hand_over(&mut self) -> Result<(), Over> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.batch_bytes = 0;
        let next = Vec::with_capacity(self.batch.len());
        let sent = self.batches.blocking_send(Ok(std::mem::replace(&mut self.batch, next)));
        // Time spent on waiting for our own reader is not the broker's silence.
        self.silence.end();
        sent.map_err(|_| Over)
    }

    /// Hands over what was read before the error, then the error.
    pub(super) fn fail(&mut self, error: ReadError) -> Over {
        if self.hand_over().is_ok() {
            // An error nobody waits for is of no interest.
            self.batches.blocking_send(Err(error)).unwrap_or_default();
        }
        Over
    }

    /// To be called when nothing came for a [`TICK`]: ends the reading when nobody wants it, the partition that is waited for
    /// is gone, or nothing came for too long. `waiting` is a partition and the offset it is at.
    pub(super) fn idle(&mut self, waiting: (i32, i64)) -> Result<(), Over> {
        if self.batches.is_closed() {
            return Err(Over);
        }
        let at = self.at(waiting.0, waiting.1);
        let silent = self.silence.check(&self.consumer, &at);
        silent.map_err(|error| self.fail(error))
    }
}

/// How long nothing has come, and what is done about it.
pub(super) struct Silence {
    patience: Duration,
    since: Instant,
    looked: Instant,
}

impl Silence {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, since: Instant::now(), looked: Instant::now() }
    }

    pub(super) fn end(&mut self) {
        self.since = Instant::now();
    }

    /// What to make of it that nothing comes from `at`. librdkafka only logs that a topic is gone, and goes on asking for it.
    pub(super) fn check(&mut self, consumer: &Consumer, at: &Coordinates) -> Result<(), ReadError> {
        let (waited, fault) = (self.since.elapsed(), consumer.last_fault());
        if waited >= self.patience {
            return Err(ReadError::AwaitRecords { at: at.clone(), waited, fault });
        }
        if waited >= LOOK_AFTER && self.looked.elapsed() >= LOOK_AFTER {
            let wrong = consumer.partition_error(&at.topic, at.partition, LOOK_WITHIN);
            self.looked = Instant::now();
            // Other errors, such as an election, pass.
            let error = wrong.map(|code| ReadError::of(code, at.clone()));
            if let Some(error @ (ReadError::FindTopic { .. } | ReadError::Authorize { .. })) = error {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// What librdkafka may hold of one partition before it stops fetching more of it; the last fetch may go beyond it.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    pub bytes: usize,
    /// librdkafka's bytes are those of keys and values, which dead letters mostly have none of.
    pub records: usize,
    /// What one fetch may bring of it.
    pub fetch: usize,
}

impl Ahead {
    /// A few MiB and some tens of thousands of records of all partitions together, as long as there are not too many.
    fn of(partitions: usize) -> Self {
        let share = |all: usize, least: usize, most: usize| (all / partitions).clamp(least, most);
        Self {
            bytes: share(8 << 20, 32 << 10, 4 << 20),
            records: share(40_000, 500, 20_000),
            fetch: share(4 << 20, 32 << 10, 1 << 20),
        }
    }
}

/// A consumer that fetches what it is told and nothing else.
pub(super) fn config(settings: &Settings, isolation: Isolation, ahead: Ahead) -> ClientConfig {
    let mut config = settings.rdkafka();
    let isolation = match isolation {
        Isolation::ReadCommitted => "read_committed",
        Isolation::ReadUncommitted => "read_uncommitted",
    };
    config
        .set("isolation.level", isolation)
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.commit.enable", "false")
        // An offset that is gone is an error: the default jumps to the newest record without a word.
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        .set("allow.auto.create.topics", "false")
        .set("check.crcs", "true")
        .set("topic.metadata.propagation.max.ms", "3000")
        .set("queued.max.messages.kbytes", (ahead.bytes >> 10).to_string())
        .set("queued.min.messages", ahead.records.to_string())
        .set("fetch.message.max.bytes", ahead.fetch.to_string())
        // A batch larger than this comes all the same, alone.
        .set("fetch.max.bytes", (4 << 20).to_string())
        // The default waits a second with the next fetch once enough is read ahead, which starves a fast reader.
        .set("fetch.queue.backoff.ms", "2")
        // How long a span's end takes to be known where it is not a record.
        .set("fetch.wait.max.ms", "50");
    config
}
