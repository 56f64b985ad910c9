//! What is in the dead-letter topic, as one pass over it finds: the selected set, and the figures a preview tells. Pure.
//!
//! Memory follows the number of partitions, causes and hours, not the number of dead letters: the sets are compressed.

use super::letter::Letter;
use crate::kafka::TopicPartition;
use crate::kafka::dead_letter::Cause;
use crate::kafka::offset_set::{OffsetSet, PartitionSets};
use std::collections::{BTreeMap, HashMap};

/// A preview shows this many messages.
const SAMPLES: usize = 20;
/// Hours x causes x topics beyond this many are counted together, in the least frequent group.
const GROUPS: usize = 10_000;
const HOUR: i64 = 3_600_000;

/// Where the record of a message is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In the source topic, as it was.
    Original,
    /// Only in the dead letter: key and value, no headers.
    Copy,
    Unavailable,
}

/// An earlier replay of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Milliseconds since the epoch.
    pub at: i64,
    /// `<namespace>/<name>` of the DLQReplay.
    pub replay: String,
}

#[derive(Clone, Debug)]
pub struct Sample {
    pub letter: Letter,
    pub message: String,
    pub earlier: Option<Earlier>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    pub source_topic: String,
    pub cause: Cause,
    /// Start of the hour, in milliseconds since the epoch.
    pub hour: i64,
}

#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Dead letters that match, more than one for a message included.
    pub entries: u64,
    /// Distinct messages that match.
    pub messages: u64,
    /// The offsets, in the dead-letter topic, of what would be sent: one dead letter for each message.
    pub selected: PartitionSets,
    /// Source coordinates of the selected messages.
    pub sources: BTreeMap<TopicPartition, OffsetSet>,
    /// Messages left out because a replay has sent them and they have not come back since.
    pub replayed_before: u64,
    /// The latest replay of any message seen.
    pub last_replay: Option<Earlier>,
    /// Selected messages that a replay has sent before: they came back, or the selection includes them all the same.
    pub selected_again: u64,
    /// Dead letters for offsets that hold no record (transaction markers, compacted records).
    pub phantoms: u64,
    /// Records in the dead-letter topic that are no dead letters, and the reason of the first.
    pub unreadable: u64,
    pub first_unreadable: Option<String>,
    /// Dead letters that name an offset the source topic does not have (yet, or any more since it was made anew).
    pub past_end: u64,
    /// Dead letters of other groups that share the topic.
    pub of_other_groups: u64,
    pub original: u64,
    pub copy_only: u64,
    pub unavailable: PartitionSets,
    groups: HashMap<Group, u64>,
    pub samples: Vec<Sample>,
}

impl Survey {
    /// Counts a dead letter that matches the selection.
    pub fn add(&mut self, letter: Letter, message: &str, payload: Payload, earlier: Option<Earlier>) {
        self.entries += 1;
        if !self.sources.entry(letter.source.topic_partition()).or_default().insert(letter.source.offset) {
            return;
        }
        self.messages += 1;
        self.count_payload(&letter, payload);
        self.note_earlier(earlier.as_ref());
        self.selected_again += u64::from(earlier.is_some());
        self.selected.entry(letter.partition).or_default().insert(letter.offset);
        self.count_group(&letter);
        if self.samples.len() < SAMPLES {
            self.samples.push(Sample { letter, message: message.into(), earlier });
        }
    }

    /// Counts a dead letter that matches but whose message was replayed already.
    pub fn leave_out_replayed(&mut self, earlier: Earlier) {
        self.replayed_before += 1;
        self.note_earlier(Some(&earlier));
    }

    pub fn leave_out_unreadable(&mut self, why: impl ToString) {
        self.unreadable += 1;
        self.first_unreadable.get_or_insert_with(|| why.to_string());
    }

    /// The most frequent groups first.
    pub fn breakdown(&self, most: usize) -> Vec<(Group, u64)> {
        let mut groups: Vec<_> = self.groups.iter().map(|(group, count)| (group.clone(), *count)).collect();
        groups.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
        groups.truncate(most);
        groups
    }

    fn count_payload(&mut self, letter: &Letter, payload: Payload) {
        match payload {
            Payload::Original => self.original += 1,
            Payload::Copy => self.copy_only += 1,
            Payload::Unavailable => {
                self.unavailable.entry(letter.partition).or_default().insert(letter.offset);
            }
        }
    }

    fn note_earlier(&mut self, earlier: Option<&Earlier>) {
        let known = self.last_replay.as_ref().map_or(i64::MIN, |last| last.at);
        if let Some(earlier) = earlier.filter(|earlier| earlier.at > known) {
            self.last_replay = Some(earlier.clone());
        }
    }

    fn count_group(&mut self, letter: &Letter) {
        let hour = letter.timestamp - letter.timestamp.rem_euclid(HOUR);
        let group = Group { source_topic: letter.source.topic.clone(), cause: letter.cause, hour };
        if self.groups.len() < GROUPS || self.groups.contains_key(&group) {
            *self.groups.entry(group).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::Coordinates;

    fn letter(offset: i64, source: i64) -> Letter {
        Letter {
            partition: 0,
            offset,
            timestamp: 2 * HOUR + offset,
            source: Coordinates::new("orders", 0, source),
            cause: Cause::Rejected,
            deliveries: None,
            attempt: 1,
            has_copy: false,
            error_headers: vec![],
        }
    }

    #[test]
    fn two_dead_letters_of_a_message_count_as_two_entries_and_one_message() {
        let mut survey = Survey::default();
        for (offset, source) in [(0, 7), (1, 8), (2, 7)] {
            survey.add(letter(offset, source), "why", Payload::Original, None);
        }
        assert_eq!((survey.entries, survey.messages), (3, 2));
        assert_eq!(survey.selected, BTreeMap::from([(0, [0, 1].into_iter().collect())]));
        assert_eq!(survey.breakdown(20)[0].1, 2);
    }

    #[test]
    fn the_latest_earlier_replay_is_told() {
        let mut survey = Survey::default();
        let earlier = |at, replay: &str| Earlier { at, replay: replay.into() };
        survey.leave_out_replayed(earlier(5, "shop/a"));
        survey.leave_out_replayed(earlier(9, "shop/b"));
        survey.add(letter(0, 1), "", Payload::Copy, Some(earlier(7, "shop/c")));
        assert_eq!(survey.last_replay, Some(earlier(9, "shop/b")));
        assert_eq!((survey.replayed_before, survey.selected_again, survey.copy_only), (2, 1, 1));
    }

    #[test]
    fn what_cannot_be_sent_is_known_by_its_offset() {
        let mut survey = Survey::default();
        survey.add(letter(4, 1), "", Payload::Unavailable, None);
        assert_eq!(survey.unavailable, BTreeMap::from([(0, [4].into_iter().collect())]));
        survey.leave_out_unreadable("first");
        survey.leave_out_unreadable("second");
        assert_eq!((survey.unreadable, survey.first_unreadable.as_deref()), (2, Some("first")));
    }
}
