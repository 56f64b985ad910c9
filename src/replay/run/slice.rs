//! One slice: the records of one transaction, made before it begins, and the ledger's account of them.

use super::moves::{Moves, Sent};
use crate::kafka::ledger::Move;
use crate::kafka::reader::{Fetcher, ReadError};
use crate::kafka::sender::{Acknowledged, Outgoing};
use crate::kafka::{Coordinates, TopicId};
use crate::replay::letter::Letter;
use crate::replay::outgoing::{self, Provenance};
use std::collections::{BTreeMap, BTreeSet};

/// A slice holds at most this many bytes of keys, values and headers.
const MOST_BYTES: usize = 32 << 20;

#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    #[error("the original messages can't be read: {0}")]
    FetchOriginals(#[from] ReadError),
    #[error(
        "{letter}: the message is gone from {original} and the dead letter holds no copy of it, since the preview was taken"
    )]
    MissPayload { letter: Coordinates, original: Coordinates },
    #[error("topic {topic} is not among the topics that were previewed")]
    MeetUnknownTopic { topic: String },
}

/// Where messages go and what the topics were when the replay began.
#[derive(Clone, Debug)]
pub struct Route {
    pub provenance: Provenance,
    /// Another topic than each message's own, if one was asked for.
    pub target: Option<String>,
    /// Whether the dead letters' context headers are sent along.
    pub keep_error_headers: bool,
    /// Ids of all source and target topics, by name.
    pub ids: BTreeMap<String, TopicId>,
    /// Partitions of each target topic.
    pub partitions: BTreeMap<String, i32>,
}

impl Route {
    /// The original's partition, or where the target has fewer, the same one modulo their number: messages that shared
    /// a partition go on sharing one.
    pub fn of(&self, letter: &Letter) -> Result<(String, i32), SliceError> {
        let topic = self.target.as_ref().unwrap_or(&letter.source.topic);
        let unknown = || SliceError::MeetUnknownTopic { topic: topic.clone() };
        let partitions = self.partitions.get(topic).filter(|count| **count > 0).ok_or_else(unknown)?;
        Ok((topic.clone(), letter.source.partition % partitions))
    }
}

/// Records ready to be sent, and their letters in the same order.
pub struct Slice {
    pub letters: Vec<Letter>,
    pub records: Vec<Outgoing>,
}

/// Makes the records of as many of the letters as fit. The original is taken while the source has it, else the copy in
/// the dead letter.
pub async fn prepare(fetcher: &mut Fetcher, route: &Route, letters: Vec<Letter>) -> Result<Slice, SliceError> {
    let wanted: BTreeSet<_> = letters.iter().map(|letter| letter.source.clone()).collect();
    let mut originals = fetcher.fetch(&wanted).await?;
    let here = |letter: &Letter| Coordinates::new(&route.provenance.dead_letter_topic, letter.partition, letter.offset);
    let copied = letters.iter().filter(|letter| letter.has_copy && !originals.contains_key(&letter.source));
    let copied: BTreeSet<_> = copied.map(here).collect();
    let mut copies = if copied.is_empty() { BTreeMap::new() } else { fetcher.fetch(&copied).await? };
    let mut slice = Slice { letters: Vec::new(), records: Vec::new() };
    let mut bytes = 0;
    for letter in letters {
        let at = here(&letter);
        let to = route.of(&letter)?;
        let record = match (originals.remove(&letter.source), copies.remove(&at)) {
            (Some(original), _) => outgoing::of_original(&letter, original, &route.provenance, to),
            (None, Some(copy)) => outgoing::of_copy(&letter, copy, &route.provenance, to),
            (None, None) => return Err(SliceError::MissPayload { letter: at, original: letter.source }),
        };
        bytes += record.size();
        if bytes > MOST_BYTES && !slice.records.is_empty() {
            break;
        }
        slice.letters.push(letter);
        slice.records.push(record);
    }
    Ok(slice)
}

/// The ledger's account of a slice: its letters and where they were acknowledged, in the same order.
pub fn moves(route: &Route, letters: &[Letter], acknowledged: &[Acknowledged]) -> Vec<Move> {
    let mut moves = Moves::new(&route.ids);
    for (letter, acknowledged) in letters.iter().zip(acknowledged) {
        let Acknowledged { topic, partition, offset } = acknowledged;
        moves.add(Sent {
            letter_partition: letter.partition,
            letter_offset: letter.offset,
            source: &letter.source,
            target: Coordinates::new(topic.as_ref(), *partition, *offset),
            attempt: letter.attempt,
        });
    }
    moves.finish()
}
