//! The account of one replay: what was sent, what is uncertain, what came back. Everything in it is from the ledger or
//! from the dead-letter topic, so that a new owner comes to the same account.

use super::watch::{Returned, SentIndex};
use crate::kafka::TopicPartition;
use crate::kafka::ledger::{Move, ReplayHistory};
use crate::kafka::offset_set::{OffsetSet, PartitionSets};
use crate::replay::canary::Already;
use std::collections::BTreeSet;

/// This many returned messages are told one by one.
const TOLD: usize = 50;

#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The frozen set, as offsets of the dead-letter topic.
    pub selected: PartitionSets,
    pub sent: PartitionSets,
    pub uncertain: PartitionSets,
    /// Begun, and the broker has not told yet what became of it.
    pub in_doubt: PartitionSets,
    pub index: SentIndex,
    returned: BTreeSet<(i32, i64)>,
    pub told: Vec<Returned>,
}

impl Account {
    pub fn new(selected: PartitionSets) -> Self {
        Self { selected, ..Self::default() }
    }

    /// Takes over what the ledger says and gives the moves that were not known before.
    pub fn learn(&mut self, history: &ReplayHistory) -> Vec<Move> {
        self.in_doubt.clear();
        let known = self.sent.clone();
        let unknown = |one: &&Move| {
            let known = known.get(&one.letter_partition);
            !one.letters.iter().all(|letter| known.is_some_and(|set| set.contains(letter)))
        };
        let moves = history.outcomes.iter().flat_map(|outcome| &outcome.moves);
        let new: Vec<Move> = moves.filter(unknown).cloned().collect();
        new.iter().for_each(|one| self.add_sent(one.clone()));
        self.learn_uncertain(history);
        new
    }

    fn learn_uncertain(&mut self, history: &ReplayHistory) {
        self.uncertain = history.uncertain_letters();
        // A message whose outcome is uncertain is never settled, but it can come back.
        let moves = history.uncertain.iter().flat_map(|uncertain| &uncertain.moves);
        moves.for_each(|one| self.index.add(one.clone()));
    }

    pub fn add_sent(&mut self, one: Move) {
        self.sent.entry(one.letter_partition).or_default().union_with(&one.letters);
        self.index.add(one);
    }

    /// Counts each message once, however many dead letters it has become.
    pub fn add_returned(&mut self, returned: Vec<Returned>) {
        for one in returned {
            if self.returned.insert(one.letter) && self.told.len() < TOLD {
                self.told.push(one);
            }
        }
    }

    pub fn returned(&self) -> u64 {
        self.returned.len() as u64
    }

    /// What is still to be sent.
    pub fn remaining(&self) -> PartitionSets {
        let mut left = self.selected.clone();
        for (partition, set) in self.sent.iter().chain(&self.uncertain).chain(&self.in_doubt) {
            if let Some(left) = left.get_mut(partition) {
                left.subtract(set);
            }
        }
        left.retain(|_, set| !set.is_empty());
        left
    }

    /// Where an earlier owner left off.
    pub fn already(&self, history: &ReplayHistory) -> Already {
        let in_step = history.intent.as_ref().map_or(0, |intent| {
            let of_step = history.outcomes.iter().filter(|outcome| outcome.step == intent.step);
            of_step.flat_map(|outcome| &outcome.moves).map(|one| one.letters.len()).sum()
        });
        Already {
            sent: count(&self.sent),
            skipped: count(&self.uncertain),
            returned: self.returned(),
            last_step: history.intent.as_ref().map(|intent| (intent.step, intent.size)),
            sent_in_last_step: in_step,
        }
    }
}

pub fn count(sets: &PartitionSets) -> u64 {
    sets.values().map(OffsetSet::len).sum()
}

/// The partitions of the targets that moves went to, each with the offsets there.
pub fn targets(moves: &[Move]) -> impl Iterator<Item = (TopicPartition, &OffsetSet)> {
    moves.iter().map(|one| (one.target.clone(), &one.target_offsets))
}
