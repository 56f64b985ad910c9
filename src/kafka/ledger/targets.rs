//! From a place on a target back to the letter that was sent there: what tells that a message has come back.

use super::entry::Move;
use super::history::ReplayHistory;
use crate::kafka::{Coordinates, TopicPartition};
use std::collections::HashMap;

/// The moves of one replay by target partition, ascending by offset.
///
/// One producer sends one slice after the other, and a partition takes them in that order: so on a partition no two moves'
/// ranges overlap unless they are of one slice, and looking back from the last one that starts at or below the place is enough.
pub struct Targets<'h>(HashMap<&'h TopicPartition, Vec<Sent<'h>>>);

struct Sent<'h> {
    first: i64,
    /// The highest offset of this one and all before it.
    reach: i64,
    step: u32,
    of: &'h Move,
}

impl<'h> Targets<'h> {
    pub(super) fn of(replay: &'h ReplayHistory) -> Self {
        let mut by_target: HashMap<_, Vec<Sent<'h>>> = HashMap::new();
        for (of, step, _) in replay.sent_moves().chain(replay.uncertain_moves()) {
            if let (Some(first), Some(reach)) = (of.target_offsets.first(), of.target_offsets.last()) {
                by_target.entry(&of.target).or_default().push(Sent { first, reach, step, of });
            }
        }
        by_target.values_mut().for_each(|sent| order(sent));
        Self(by_target)
    }

    /// The letter whose record we sent to that place: its partition and offset, and the step. None for a place between ours.
    pub fn find(&self, place: &Coordinates) -> Option<(i32, i64, u32)> {
        let sent = self.0.get(&place.topic_partition())?;
        let until = sent.partition_point(|sent| sent.first <= place.offset);
        let near = sent[..until].iter().rev().take_while(|sent| sent.reach >= place.offset);
        near.filter_map(|sent| Some((sent, sent.of.target_offsets.rank_of(place.offset)?)))
            .find_map(|(sent, rank)| Some((sent.of.letter_partition, sent.of.letters.nth(rank)?, sent.step)))
    }
}

fn order(sent: &mut [Sent<'_>]) {
    sent.sort_by_key(|sent| sent.first);
    let mut reach = i64::MIN;
    for sent in sent {
        reach = reach.max(sent.reach);
        sent.reach = reach;
    }
}
