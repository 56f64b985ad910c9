//! Single records by their coordinates, as many at a time as are wanted.

use super::PATIENCE;
use super::ReadError;
use super::cursor::{Cursor, Next};
use super::source::{Ahead, Silence, TICK, config};
use crate::kafka::native::consumer::{Consumer, Message, Queue, Topic};
use crate::kafka::record::Record;
use crate::kafka::settings::Settings;
use crate::kafka::{Coordinates, Isolation, Span};
use rdkafka::error::RDKafkaErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What one fetch brings is also what a jump costs at worst.
const AHEAD: Ahead = Ahead { bytes: 256 << 10, records: 2000, fetch: 256 << 10 };
/// As many bytes are read through rather than jumped.
const SKIP_BYTES: usize = 128 << 10;
const CHUNK: usize = 500;
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// Looks up records at exact coordinates, committed or not, whatever their batches' codec.
///
/// It sees aborted records too: a share group that reads uncommitted records may have rejected one.
pub struct Fetcher {
    settings: Settings,
    /// Kept from one look-up to the next. None while it is in use, and after a failure.
    lookup: Option<Lookup>,
}

impl Fetcher {
    pub fn new(settings: &Settings) -> Result<Self, ReadError> {
        Ok(Self { settings: settings.clone(), lookup: Some(Lookup::new(settings)?) })
    }

    /// The records at those coordinates. Where the answer has none there is none: a marker's offset, one that was compacted
    /// or deleted, or one past the end. A topic or partition that does not exist is an error.
    ///
    /// Memory: the records asked for, and a few MiB.
    pub async fn fetch(&mut self, wanted: &BTreeSet<Coordinates>) -> Result<BTreeMap<Coordinates, Record>, ReadError> {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut lookup = self.lookup.take().map_or_else(|| Lookup::new(&self.settings), Ok)?;
        let wanted = by_partition(wanted);
        let work = tokio::task::spawn_blocking(move || lookup.run(wanted).map(|found| (lookup, found)));
        let (lookup, found) = work.await.map_err(|_| ReadError::EndThread)??;
        self.lookup = Some(lookup);
        Ok(found)
    }
}

/// By topic and partition, so that a message finds its place without a new key.
type Wanted = BTreeMap<String, BTreeMap<i32, Cursor>>;

fn by_partition(wanted: &BTreeSet<Coordinates>) -> Wanted {
    let mut spans: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
    for Coordinates { topic, partition, offset } in wanted {
        let span = Span { partition: *partition, from: *offset, until: offset + 1 };
        spans.entry(topic).or_default().push(span);
    }
    spans.into_iter().map(|(topic, spans)| (topic.to_owned(), Cursor::by_partition(spans))).collect()
}

/// One consumer, used for one look-up after the other.
struct Lookup {
    topics: BTreeMap<String, Topic>,
    consumer: Consumer,
    found: BTreeMap<Coordinates, Record>,
    /// Number and bytes of the records that came, wanted or not.
    seen: (usize, usize),
    silence: Silence,
}

impl Lookup {
    fn new(settings: &Settings) -> Result<Self, ReadError> {
        let config = config(settings, Isolation::ReadUncommitted, AHEAD);
        let consumer = Consumer::new(&config).map_err(ReadError::CreateConsumer)?;
        let (topics, found) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { topics, consumer, found, seen: (1, 1000), silence: Silence::new(PATIENCE) })
    }

    fn run(&mut self, mut wanted: Wanted) -> Result<BTreeMap<Coordinates, Record>, ReadError> {
        let queue = self.consumer.queue();
        self.silence.end();
        wanted.retain(|_, cursors| !cursors.is_empty());
        self.start(&wanted, &queue)?;
        while !wanted.is_empty() {
            let messages = queue.take(CHUNK, TICK);
            messages.iter().try_for_each(|message| self.pass(&mut wanted, message, &queue))?;
            if messages.is_empty() {
                self.check_silence(&wanted)?;
            }
        }
        Ok(std::mem::take(&mut self.found))
    }

    fn start(&mut self, wanted: &Wanted, queue: &Queue) -> Result<(), ReadError> {
        for (name, cursors) in wanted {
            if !self.topics.contains_key(name) {
                let topic = self.consumer.topic(name).map_err(ReadError::CreateConsumer)?;
                self.topics.insert(name.clone(), topic);
            }
            for (partition, cursor) in cursors {
                self.start_at(Coordinates::new(name, *partition, cursor.position()), queue)?;
            }
        }
        Ok(())
    }

    fn start_at(&mut self, at: Coordinates, queue: &Queue) -> Result<(), ReadError> {
        let Some(topic) = self.topics.get_mut(&at.topic) else { return Ok(()) };
        topic.start(at.partition, at.offset, queue).map_err(|code| ReadError::StartPartition { at, code })
    }

    fn seek(&mut self, at: Coordinates) -> Result<(), ReadError> {
        let Some(topic) = self.topics.get_mut(&at.topic) else { return Ok(()) };
        topic.seek(at.partition, at.offset).map_err(|code| ReadError::StartPartition { at, code })
    }

    fn stop(&mut self, topic: &str, partition: i32) {
        if let Some(topic) = self.topics.get_mut(topic) {
            topic.stop(partition);
        }
    }

    /// To be called when nothing came for a [`TICK`].
    fn check_silence(&mut self, wanted: &Wanted) -> Result<(), ReadError> {
        let Some((topic, cursors)) = wanted.first_key_value() else { return Ok(()) };
        let Some((partition, cursor)) = cursors.first_key_value() else { return Ok(()) };
        self.silence.check(&self.consumer, &Coordinates::new(topic, *partition, cursor.position()))
    }

    fn pass(&mut self, wanted: &mut Wanted, message: &Message<'_>, queue: &Queue) -> Result<(), ReadError> {
        let (topic, partition) = (message.topic(), message.partition());
        // Of a partition that is done some messages may still be in the chunk.
        let Some(cursors) = wanted.get_mut(topic) else { return Ok(()) };
        let Some(cursor) = cursors.get_mut(&partition) else { return Ok(()) };
        let before = cursor.position();
        let reached = self.take(topic, cursor, message)?;
        let next = cursor.reach(reached, self.skip());
        if cursor.position() > before {
            self.silence.end();
        }
        match next {
            // After an offset that is not there librdkafka has stopped fetching, and does not take a jump.
            Next::Seek(to) if is_out_of_range(message) => {
                self.start_at(Coordinates::new(topic, partition, to), queue)?
            }
            Next::Here if is_out_of_range(message) => {
                self.start_at(Coordinates::new(topic, partition, cursor.position()), queue)?;
            }
            Next::Seek(to) => self.seek(Coordinates::new(topic, partition, to))?,
            Next::Here => {}
            Next::Nowhere => {
                self.stop(topic, partition);
                cursors.remove(&partition);
                wanted.retain(|_, cursors| !cursors.is_empty());
            }
        }
        Ok(())
    }

    /// How many offsets to read through rather than to jump.
    fn skip(&self) -> i64 {
        let (records, bytes) = self.seen;
        i64::try_from(SKIP_BYTES * records / bytes.max(1)).unwrap_or(i64::MAX)
    }

    /// Keeps a wanted record. Says up to where the partition is known now.
    fn take(&mut self, topic: &str, cursor: &Cursor, message: &Message<'_>) -> Result<i64, ReadError> {
        let (offset, position) = (message.offset(), cursor.position());
        let at = |offset| Coordinates::new(topic, message.partition(), offset);
        match message.error() {
            None => {
                self.seen = (self.seen.0 + 1, self.seen.1 + message.size());
                if cursor.wants(offset) {
                    let record = message.to_record().map_err(|code| ReadError::ReadHeaders { at: at(offset), code })?;
                    self.found.insert(at(offset), record);
                }
                Ok(offset + 1)
            }
            // A leader that was just elected may not know its end yet, but does not answer this question before it does.
            Some(RDKafkaErrorCode::PartitionEOF) => {
                let (_, end) = self.ends(at(offset))?;
                Ok(if end > offset { offset } else { i64::MAX })
            }
            // Below the log start everything is gone; past the end nothing ever was.
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                let (start, end) = self.ends(at(position))?;
                Ok(if position >= end { i64::MAX } else { position.max(start) })
            }
            Some(code) => Err(ReadError::of(code, at(position))),
        }
    }

    fn ends(&self, at: Coordinates) -> Result<(i64, i64), ReadError> {
        let since = Instant::now();
        loop {
            match self.consumer.watermarks(&at.topic, at.partition, ASK_WITHIN) {
                Ok(ends) => return Ok(ends),
                Err(source) if since.elapsed() >= ASK_WITHIN => return Err(ReadError::AskOffsets { at, source }),
                // Mostly an election; there is nothing to wait on but time.
                Err(_) => std::thread::sleep(TICK),
            }
        }
    }
}

fn is_out_of_range(message: &Message<'_>) -> bool {
    matches!(message.error(), Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange))
}
