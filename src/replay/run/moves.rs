//! Puts single sends together into the ledger's `Move`s: one for each way from a partition of the dead-letter topic to
//! one of a target.

use crate::kafka::ledger::Move;
use crate::kafka::offset_set::OffsetSet;
use crate::kafka::{Coordinates, TopicId, TopicPartition};
use std::collections::BTreeMap;

/// One message sent (or found) on a target.
pub struct Sent<'a> {
    pub letter_partition: i32,
    pub letter_offset: i64,
    pub source: &'a Coordinates,
    pub target: Coordinates,
    pub attempt: u32,
}

/// Within a way records are sent in ascending order of their dead letters, so that letters and target offsets pair up
/// by rank.
pub struct Moves<'a> {
    ids: &'a BTreeMap<String, TopicId>,
    moves: BTreeMap<(i32, TopicPartition, TopicPartition, u32), Move>,
}

impl<'a> Moves<'a> {
    /// `ids`: of the source and target topics. A topic that is gone has none, and the nil id stands for it.
    pub fn new(ids: &'a BTreeMap<String, TopicId>) -> Self {
        Self { ids, moves: BTreeMap::new() }
    }

    pub fn add(&mut self, sent: Sent<'_>) {
        let id = |topic: &str| self.ids.get(topic).copied().unwrap_or_default();
        let (source, target) = (sent.source.topic_partition(), sent.target.topic_partition());
        let (source_id, target_id) = (id(&source.topic), id(&target.topic));
        let key = (sent.letter_partition, source.clone(), target.clone(), sent.attempt);
        let one = self.moves.entry(key).or_insert_with(|| Move {
            letter_partition: sent.letter_partition,
            letters: OffsetSet::default(),
            source,
            source_id,
            source_offsets: OffsetSet::default(),
            target,
            target_id,
            target_offsets: OffsetSet::default(),
            attempt: sent.attempt,
        });
        one.letters.insert(sent.letter_offset);
        one.source_offsets.insert(sent.source.offset);
        one.target_offsets.insert(sent.target.offset);
    }

    pub fn finish(self) -> Vec<Move> {
        self.moves.into_values().collect()
    }
}
