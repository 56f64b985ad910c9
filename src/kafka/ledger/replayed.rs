//! "Already replayed, when, and by which?", answered for each dead letter from the ledger alone.

use super::entry::Start;
use super::history::{History, ReplayHistory};
use crate::kafka::offset_set::OffsetSet;
use crate::kafka::{Coordinates, TopicId, TopicPartition};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What was sent again for one group.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    sent: Sightings,
    uncertain: Sightings,
    /// By target partition.
    copies: Sightings,
    /// Where copies went, by the attempt they were.
    attempts: HashMap<TopicPartition, BTreeMap<u32, OffsetSet>>,
}

/// The replay that sent a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When that replay last sent something of the same source partition, in milliseconds since the epoch.
    pub at: i64,
    /// `namespace/name` of the replay object.
    pub replay: Arc<str>,
    pub uid: Arc<str>,
}

/// By partition, one set and sighting for each replay.
type Sightings = HashMap<TopicPartition, Vec<(OffsetSet, Sighting)>>;

impl Replayed {
    pub(super) fn of(history: &History, group: &str, counts: impl Fn((&str, TopicId)) -> bool) -> Self {
        let mut index = Self::default();
        let of_group = |replay: &&ReplayHistory| replay.start.as_ref().is_some_and(|start| start.group == group);
        for replay in history.replays.values().filter(of_group) {
            index.add(replay, &counts);
        }
        index
    }

    fn add(&mut self, replay: &ReplayHistory, counts: &impl Fn((&str, TopicId)) -> bool) {
        let Some(start) = &replay.start else { return };
        let by = Sighting { at: 0, replay: format!("{}/{}", start.namespace, start.name).into(), uid: uid(start) };
        for (of, _, at) in replay.sent_moves().filter(|(of, ..)| counts((&of.source.topic, of.source_id))) {
            see(&mut self.sent, (&of.source, &of.source_offsets), at, &by);
        }
        for (of, _, at) in replay.uncertain_moves().filter(|(of, ..)| counts((&of.source.topic, of.source_id))) {
            see(&mut self.uncertain, (&of.source, &of.source_offsets), at, &by);
        }
        for (of, _, at) in replay.sent_moves().chain(replay.uncertain_moves()) {
            if counts((&of.target.topic, of.target_id)) {
                let attempts = self.attempts.entry(of.target.clone()).or_default();
                attempts.entry(of.attempt).or_default().union_with(&of.target_offsets);
                see(&mut self.copies, (&of.target, &of.target_offsets), at, &by);
            }
        }
    }

    /// The latest replay that sent the message that was at `source`.
    pub fn was_sent(&self, source: &Coordinates) -> Option<Sighting> {
        latest(&self.sent, source)
    }

    /// The latest replay that may have shown the message to readers of uncommitted records.
    pub fn was_uncertain(&self, source: &Coordinates) -> Option<Sighting> {
        latest(&self.uncertain, source)
    }

    /// The replay that sent the copy at `target`.
    pub fn came_back_from(&self, target: &Coordinates) -> Option<Sighting> {
        latest(&self.copies, target)
    }

    /// The attempt number of the copy at `target`; 0 if it is none of ours.
    pub fn attempt_of(&self, target: &Coordinates) -> u32 {
        let Some(attempts) = self.attempts.get(&target.topic_partition()) else { return 0 };
        let of = attempts.iter().rev().find(|(_, offsets)| offsets.contains(target.offset));
        of.map_or(0, |(attempt, _)| *attempt)
    }
}

fn uid(start: &Start) -> Arc<str> {
    start.uid.as_str().into()
}

/// A replay's moves follow each other, so its set is the last one, if there is one.
fn see(sightings: &mut Sightings, (at_partition, new): (&TopicPartition, &OffsetSet), at: i64, by: &Sighting) {
    let sets = sightings.entry(at_partition.clone()).or_default();
    match sets.last_mut() {
        Some((offsets, seen)) if seen.uid == by.uid => {
            offsets.union_with(new);
            seen.at = seen.at.max(at);
        }
        _ => sets.push((new.clone(), Sighting { at, ..by.clone() })),
    }
}

fn latest(sightings: &Sightings, source: &Coordinates) -> Option<Sighting> {
    let sets = sightings.get(&source.topic_partition())?;
    let seen = sets.iter().filter(|(offsets, _)| offsets.contains(source.offset));
    seen.map(|(_, sighting)| sighting).max_by_key(|sighting| sighting.at).cloned()
}
