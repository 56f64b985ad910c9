//! The oldest record first: a merge of the partitions by their next records' time stamps.

use super::cursor::Cursor;
use super::source::{Over, Source, TICK};
use crate::kafka::native::consumer::Queue;
use crate::kafka::record::Record;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

/// What is taken of one partition at a time, so that all of them together stay within tens of MiB.
const CHUNK_BYTES: usize = 64 << 10;
const CHUNK_RECORDS: usize = 500;

/// One partition on its way into the merge.
struct Lane {
    partition: i32,
    cursor: Cursor,
    queue: Queue,
    records: VecDeque<Record>,
    /// How many records make a chunk, by the size of those seen.
    chunk: usize,
}

pub(super) fn read(mut source: Source, cursors: BTreeMap<i32, Cursor>) {
    let mut lanes: Vec<Lane> =
        cursors.into_iter().map(|(partition, cursor)| Lane::new(&source, partition, cursor)).collect();
    if merge(&mut source, &mut lanes).is_ok() {
        // Whether anyone takes the last batch makes no difference any more.
        source.hand_over().unwrap_or_default();
    }
}

fn merge(source: &mut Source, lanes: &mut [Lane]) -> Result<(), Over> {
    for lane in lanes.iter() {
        source.start(lane.partition, &lane.cursor, &lane.queue).map_err(|error| source.fail(error))?;
    }
    // The order among equal time stamps is that of the partitions, so that reading again gives the same.
    let mut heads = BinaryHeap::new();
    for (index, lane) in lanes.iter_mut().enumerate() {
        heads.extend(lane.head(source)?.map(|timestamp| Reverse((timestamp, index))));
    }
    while let Some(Reverse((_, index))) = heads.pop() {
        let lane = &mut lanes[index];
        if let Some(record) = lane.records.pop_front() {
            source.give(record)?;
        }
        heads.extend(lane.head(source)?.map(|timestamp| Reverse((timestamp, index))));
    }
    Ok(())
}

impl Lane {
    fn new(source: &Source, partition: i32, cursor: Cursor) -> Self {
        Self { partition, cursor, queue: source.queue(), records: VecDeque::new(), chunk: 1 }
    }

    /// The time stamp of the next record, waiting for it; none if there is none.
    fn head(&mut self, source: &mut Source) -> Result<Option<i64>, Over> {
        let mut within = Duration::ZERO;
        while self.records.is_empty() && !self.cursor.is_done() {
            if self.fill(source, within)? == 0 {
                match within {
                    // What is merged already need not wait for this partition.
                    Duration::ZERO => source.hand_over()?,
                    _ => source.idle((self.partition, self.cursor.position()))?,
                }
                within = TICK;
            }
        }
        Ok(self.records.front().map(|record| record.timestamp))
    }

    fn fill(&mut self, source: &mut Source, within: Duration) -> Result<usize, Over> {
        let messages = self.queue.take(self.chunk, within);
        for message in &messages {
            if !self.cursor.is_done() {
                let record = source.take(message, &mut self.cursor);
                self.records.extend(record.map_err(|error| source.fail(error))?);
            }
        }
        let taken = messages.len();
        drop(messages);
        self.adapt();
        Ok(taken)
    }

    fn adapt(&mut self) {
        if !self.records.is_empty() {
            let mean = self.records.iter().map(Record::size).sum::<usize>() / self.records.len();
            self.chunk = (CHUNK_BYTES / (mean + 100)).clamp(1, CHUNK_RECORDS);
        }
    }
}
