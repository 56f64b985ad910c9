//! Reading records: whole spans as a stream, or single ones by their coordinates. Never as a member of a group, so nothing
//! is left behind in the cluster.

mod by_partition;
mod by_time;
mod cursor;
mod error;
mod fetcher;
mod source;

pub use error::ReadError;
pub use fetcher::Fetcher;

use crate::kafka::record::Record;
use crate::kafka::settings::Settings;
use crate::kafka::{Isolation, Span};
use cursor::Cursor;
use source::Source;
use std::time::Duration;
use tokio::sync::mpsc;

/// In which order records of several partitions come. Within a partition it is always that of their offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the brokers send them: partitions take turns by the batch. The fastest.
    ByPartition,
    /// By time stamp: of the partitions' next records always the oldest one.
    ByTime,
}

/// How long nothing may come while something is still to come.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Batches read ahead. A batch is about a mebibyte.
const AHEAD: usize = 2;

/// A stream of records in bounded memory: tens of MiB, whatever the length of the spans and the number of partitions.
pub struct Reader {
    batches: mpsc::Receiver<Result<Vec<Record>, ReadError>>,
    failed: bool,
}

impl Reader {
    /// Starts to read `spans` of `topic`. Offsets without a record, as of transaction markers and compacted ones, are
    /// passed over; a span that starts below the log start is an error, as are a topic that vanishes and brokers that send
    /// nothing for [`PATIENCE`].
    ///
    /// A topic that is made anew under its name while it is read is not noticed for sure: whoever has to know compares its id
    /// before and after.
    ///
    /// Under [`Isolation::ReadCommitted`] a span's end waits for transactions that are still open.
    pub fn open(
        settings: &Settings,
        topic: &str,
        spans: Vec<Span>,
        isolation: Isolation,
        order: Order,
    ) -> Result<Self, ReadError> {
        Self::open_patiently(settings, topic, spans, isolation, order, PATIENCE)
    }

    /// The same with another patience.
    pub fn open_patiently(
        settings: &Settings,
        topic: &str,
        spans: Vec<Span>,
        isolation: Isolation,
        order: Order,
        patience: Duration,
    ) -> Result<Self, ReadError> {
        let (sender, batches) = mpsc::channel(AHEAD);
        let cursors = Cursor::by_partition(spans);
        if !cursors.is_empty() {
            let source = Source::open(settings, topic, isolation, cursors.len(), patience, sender)?;
            let read = move || match order {
                Order::ByPartition => by_partition::read(source, cursors),
                Order::ByTime => by_time::read(source, cursors),
            };
            // A thread, not a task: librdkafka's calls block for as long as nothing comes.
            std::thread::Builder::new().name("kafka-reader".into()).spawn(read).map_err(ReadError::StartThread)?;
        }
        Ok(Self { batches, failed: false })
    }

    /// The next records, some at least; none after the last, and after an error.
    pub async fn next_batch(&mut self) -> Option<Result<Vec<Record>, ReadError>> {
        if self.failed {
            return None;
        }
        let batch = self.batches.recv().await;
        self.failed = matches!(batch, Some(Err(_)));
        batch
    }
}
