//! What the ledger's entries say together about one dead-letter topic: the truth about what was sent.

use super::entry::{Claim, End, Entry, Intent, Move, Outcome, Start, Uncertain};
use super::replayed::Replayed;
use super::targets::Targets;
use crate::kafka::offset_set::PartitionSets;
use crate::kafka::{Coordinates, TopicId};
use std::collections::BTreeMap;

/// All entries of one dead-letter topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The last claim; of one installation that of the highest term.
    pub claim: Option<Claim>,
    /// By the replay object's uid.
    pub replays: BTreeMap<String, ReplayHistory>,
    /// How many records were read, entries that replaced each other included.
    pub entries: usize,
}

/// All entries of one replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayHistory {
    pub start: Option<Start>,
    /// The last one.
    pub intent: Option<Intent>,
    /// By step and slice.
    pub outcomes: Vec<Outcome>,
    /// By step and number.
    pub uncertain: Vec<Uncertain>,
    /// Whether the last owner handed it over in good order, and nothing was sent since.
    pub released: bool,
    pub end: Option<End>,
}

impl History {
    /// Takes in one entry, later ones after earlier ones.
    pub fn add(&mut self, entry: Entry) {
        self.entries += 1;
        if let Some(uid) = entry.uid().map(str::to_owned) {
            self.replays.entry(uid).or_default().add(entry);
        } else if let Entry::Claim(claim) = entry {
            self.claim = Some(higher(self.claim.take(), claim));
        }
    }

    /// Whether the topic was ever claimed, or anything was sent.
    pub fn is_empty(&self) -> bool {
        self.claim.is_none() && self.replays.is_empty()
    }

    /// What was sent again for `group`, to be asked for each dead letter.
    pub fn index(&self, group: &str) -> Replayed {
        Replayed::of(self, group, |_| true)
    }

    /// The same, without what was sent to or from topics that were deleted since: a topic made anew under the same name
    /// counts its offsets from 0 again. `current` has the ids of today; topics it lacks are deleted.
    pub fn index_of_current(&self, group: &str, current: &BTreeMap<String, TopicId>) -> Replayed {
        Replayed::of(self, group, |(topic, id)| current.get(topic) == Some(&id))
    }
}

impl ReplayHistory {
    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Claim(_) => {}
            Entry::Start(start) => self.start = Some(start),
            Entry::Intent(intent) => self.intend(intent),
            Entry::Outcome(outcome) => self.conclude(outcome),
            Entry::Uncertain(uncertain) => self.doubt(uncertain),
            Entry::Release(_) => self.released = true,
            Entry::End(end) => self.end = Some(end),
        }
    }

    fn intend(&mut self, intent: Intent) {
        self.released = false;
        self.intent = Some(intent);
    }

    fn conclude(&mut self, outcome: Outcome) {
        self.released = false;
        let at = |other: &Outcome| (other.step, other.slice).cmp(&(outcome.step, outcome.slice));
        match self.outcomes.binary_search_by(at) {
            Ok(place) => self.outcomes[place] = outcome,
            Err(place) => self.outcomes.insert(place, outcome),
        }
    }

    fn doubt(&mut self, uncertain: Uncertain) {
        let key = |entry: &Uncertain| (entry.step, entry.number);
        match self.uncertain.binary_search_by_key(&key(&uncertain), key) {
            Ok(place) => self.uncertain[place] = uncertain,
            Err(place) => self.uncertain.insert(place, uncertain),
        }
    }

    /// The moves that were committed, with their step and time.
    pub fn sent_moves(&self) -> impl Iterator<Item = (&Move, u32, i64)> {
        self.outcomes.iter().flat_map(|outcome| outcome.moves.iter().map(|of| (of, outcome.step, outcome.at)))
    }

    /// The moves found on a target in an aborted transaction, with their step and time.
    pub fn uncertain_moves(&self) -> impl Iterator<Item = (&Move, u32, i64)> {
        self.uncertain.iter().flat_map(|entry| entry.moves.iter().map(|of| (of, entry.step, entry.at)))
    }

    /// Offsets of the dead letters whose records were sent and committed, once each.
    pub fn sent(&self) -> PartitionSets {
        let mut sent = PartitionSets::new();
        self.sent_moves().for_each(|(of, ..)| add(&mut sent, of));
        sent
    }

    /// Offsets of the dead letters whose records only readers of uncommitted records may have seen.
    pub fn uncertain_letters(&self) -> PartitionSets {
        let mut uncertain = PartitionSets::new();
        self.uncertain_moves().for_each(|(of, ..)| add(&mut uncertain, of));
        for (partition, letters) in self.uncertain.iter().flat_map(|entry| &entry.unlocated) {
            uncertain.entry(*partition).or_default().union_with(letters);
        }
        uncertain
    }

    /// Letters of the last intent that are neither sent nor uncertain: to be looked for on their targets by a new owner.
    pub fn open_letters(&self) -> PartitionSets {
        let mut open = self.intent.as_ref().map(|intent| intent.letters.clone()).unwrap_or_default();
        for (partition, known) in self.sent().into_iter().chain(self.uncertain_letters()) {
            open.entry(partition).or_default().subtract(&known);
        }
        open.retain(|_, letters| !letters.is_empty());
        open
    }

    /// Answers [`find_target`](Self::find_target) for many records.
    pub fn targets(&self) -> Targets<'_> {
        Targets::of(self)
    }

    /// The letter whose record we sent to that place: its partition and offset, and the step.
    pub fn find_target(&self, place: &Coordinates) -> Option<(i32, i64, u32)> {
        self.targets().find(place)
    }
}

fn higher(known: Option<Claim>, new: Claim) -> Claim {
    match known {
        Some(known) if known.installation == new.installation && known.term > new.term => known,
        _ => new,
    }
}

fn add(sets: &mut PartitionSets, of: &Move) {
    sets.entry(of.letter_partition).or_default().union_with(&of.letters);
}
