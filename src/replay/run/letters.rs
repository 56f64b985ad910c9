//! The frozen set's dead letters, read again from the dead-letter topic in the order in which they are sent: oldest
//! first. Only their offsets are held in memory for the whole replay.

use super::Job;
use crate::kafka::dead_letter::{self, NotADeadLetter};
use crate::kafka::ledger::Replayed;
use crate::kafka::offset_set::{OffsetSet, PartitionSets};
use crate::kafka::reader::{Order, ReadError, Reader};
use crate::kafka::{Coordinates, Isolation, Span};
use crate::replay::letter::Letter;
use crate::replay::outgoing::ERRORS;
use std::collections::VecDeque;

#[derive(Debug, thiserror::Error)]
pub enum LettersError {
    #[error("the dead-letter topic can't be read: {0}")]
    ReadTopic(#[from] ReadError),
    #[error("the dead letter {at} is not what it was at the preview: {source}")]
    ParseLetter { at: Coordinates, source: NotADeadLetter },
    #[error("{missing} of the previewed dead letters are gone from {topic}; retention has deleted them")]
    MissLetters { topic: String, missing: u64 },
}

/// Gives the letters in order, a few at a time.
pub struct Letters {
    topic: String,
    reader: Reader,
    wanted: PartitionSets,
    index: Replayed,
    keep_error_headers: bool,
    ready: VecDeque<Letter>,
}

impl Letters {
    /// `wanted`: the dead-letter offsets still to be sent.
    pub fn open(job: &Job, wanted: PartitionSets) -> Result<Self, LettersError> {
        let (settings, topic) = (&job.place.settings, &job.dead_letter_topic);
        let spans = wanted.iter().filter_map(|(partition, set)| span(*partition, set)).collect();
        let reader = Reader::open(settings, topic, spans, Isolation::ReadUncommitted, Order::ByTime)?;
        let (index, keep_error_headers) = (job.index.clone(), job.route.keep_error_headers);
        Ok(Self { topic: topic.clone(), reader, wanted, index, keep_error_headers, ready: VecDeque::new() })
    }

    /// The next letters, `count` unless fewer are left. Cancel-safe: what was read stays ready.
    pub async fn peek(&mut self, count: usize) -> Result<Vec<Letter>, LettersError> {
        while self.ready.len() < count {
            let Some(batch) = self.reader.next_batch().await else {
                self.check_all_seen()?;
                break;
            };
            for record in batch? {
                self.note(record)?;
            }
        }
        Ok(self.ready.iter().take(count).cloned().collect())
    }

    /// Takes the first `count` of the letters that were peeked at.
    pub fn take(&mut self, count: usize) {
        self.ready.drain(..count.min(self.ready.len()));
    }

    fn note(&mut self, record: crate::kafka::record::Record) -> Result<(), LettersError> {
        let Some(wanted) = self.wanted.get_mut(&record.partition) else { return Ok(()) };
        if !wanted.remove(record.offset) {
            return Ok(());
        }
        let at = || Coordinates::new(&self.topic, record.partition, record.offset);
        let letter = dead_letter::read(&record).map_err(|source| LettersError::ParseLetter { at: at(), source })?;
        let attempt = self.index.attempt_of(&letter.source) + 1;
        let mut letter = Letter::new(letter, attempt);
        if self.keep_error_headers {
            letter.error_headers = record.headers.into_iter().filter(|header| header.key.starts_with(ERRORS)).collect();
        }
        self.ready.push_back(letter);
        Ok(())
    }

    fn check_all_seen(&self) -> Result<(), LettersError> {
        match self.wanted.values().map(OffsetSet::len).sum() {
            0 => Ok(()),
            missing => Err(LettersError::MissLetters { topic: self.topic.clone(), missing }),
        }
    }
}

fn span(partition: i32, set: &OffsetSet) -> Option<Span> {
    Some(Span { partition, from: set.first()?, until: set.last()? + 1 })
}
