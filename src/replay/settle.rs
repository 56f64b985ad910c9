//! Settled, or not: what the share group's offsets say of the messages that were sent. Pure.
//!
//! The rules and why each is there:
//! - The start offset is one state write behind, so `lag = 0` counts as well as `start > last offset`; the two numbers
//!   are read without one lock, so lag 0 needs two equal samples.
//! - Records below the log start were deleted, perhaps unread: expired, not settled.
//! - Any other change (another topic under the name, another isolation level, dead-letter topic or feature level)
//!   makes the answer undecided: messages may have been skipped or failures lost.
//! - Something held earlier in the partition keeps start offset and lag where they are: that is "blocked at", not
//!   "failed".

use crate::kafka::offset_set::OffsetSet;
use crate::kafka::{TopicId, TopicPartition};
use std::collections::BTreeMap;
use std::fmt;

/// One look at the settling group and the partitions that were sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    pub group: GroupSample,
    pub partitions: BTreeMap<TopicPartition, PartitionSample>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSample {
    pub members: usize,
    pub epoch: i32,
    pub isolation: String,
    pub dead_letter_topic: String,
    pub share_version: i16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSample {
    pub topic_id: TopicId,
    pub log_start: i64,
    pub high_watermark: i64,
    /// The last stable offset: below the high watermark while a transaction is open.
    pub stable: i64,
    pub start: Option<i64>,
    pub lag: Option<i64>,
}

/// Why a message is not known to be settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// The consumers have not got that far, or none is there.
    #[default]
    Waiting,
    /// The group's start offset stays at this offset, which is not one of ours.
    BlockedAt { partition: TopicPartition, offset: i64 },
    /// Records below the group's start offset were deleted, which leaves the lag too large for good.
    LagUnreliable { partition: TopicPartition },
    /// A transaction of some producer is open and holds back read_committed consumers.
    OpenTransaction { partition: TopicPartition },
    /// Something changed under the step that makes its offsets say nothing.
    Changed { what: &'static str },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => write!(f, "the group has not finished them"),
            Self::BlockedAt { partition, offset } => write!(
                f,
                "BlockedAt {offset}: the group's start offset on {partition} stays at {offset}, a record that this replay did not send"
            ),
            Self::LagUnreliable { partition } => write!(
                f,
                "LagUnreliable: records of {partition} below the group's start offset were deleted, so its lag no longer tells what is done"
            ),
            Self::OpenTransaction { partition } => {
                write!(f, "OpenTransaction: an open transaction on {partition} holds the group back")
            }
            Self::Changed { what } => {
                write!(f, "the {what} changed during the step, so the group's offsets do not tell what is done")
            }
        }
    }
}

/// How a set of sent messages stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub settled: u64,
    pub pending: u64,
    /// Deleted from the target before they were known to be settled.
    pub expired: u64,
    /// Nothing of it is done, beyond doubt: neither in order nor out of order.
    pub surely_none: bool,
    /// Why the pending ones are.
    pub cause: Cause,
}

/// Offsets that were sent, by partition of the target.
pub type Offsets = BTreeMap<TopicPartition, OffsetSet>;

/// Messages that are watched until each is settled or expired. What was once known to be settled stays so: later
/// retention of the target cannot undo it.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    open: Offsets,
    settled: u64,
    expired: u64,
    /// What changed while messages were open. For good: a failure in that time may have got lost.
    disturbed: Option<&'static str>,
}

impl Watched {
    pub fn add(&mut self, partition: TopicPartition, offsets: &OffsetSet) {
        self.open.entry(partition).or_default().union_with(offsets);
    }

    pub fn absorb(&mut self, other: Watched) {
        for (partition, offsets) in &other.open {
            self.add(partition.clone(), offsets);
        }
        self.settled += other.settled;
        self.expired += other.expired;
        self.disturbed = self.disturbed.or(other.disturbed);
    }

    /// Notes that failures may have got lost: nothing that is open now can be known to be settled any more.
    pub fn disturb(&mut self, what: &'static str) {
        if !self.is_empty() {
            self.disturbed.get_or_insert(what);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.open.values().all(OffsetSet::is_empty)
    }

    pub fn partitions(&self) -> impl Iterator<Item = &TopicPartition> {
        self.open.keys()
    }

    /// Judges what is still open, from the sample taken before its first send and the last two.
    pub fn judge(&mut self, base: &Sample, before: &Sample, now: &Sample) -> Standing {
        let first_look = self.settled == 0 && self.expired == 0;
        let mut standing = Standing { surely_none: first_look, ..Standing::default() };
        if let Some(what) = changed(base, now).or_else(|| changed(base, before)) {
            self.disturb(what);
        }
        let changed = self.disturbed;
        for (partition, open) in self.open.iter_mut().filter(|(_, open)| !open.is_empty()) {
            let seen = [base, before, now].map(|sample| sample.partitions.get(partition));
            let judged = match (changed, seen) {
                (None, [Some(base), Some(before), Some(now)]) => judge_partition(partition, base, before, now, open),
                (Some(what), _) => Judged::undecided(Cause::Changed { what }),
                (None, _) => Judged::undecided(Cause::Waiting),
            };
            self.settled += judged.settled.len();
            self.expired += judged.expired.len();
            open.subtract(&judged.settled);
            open.subtract(&judged.expired);
            standing.pending += open.len();
            standing.surely_none &= judged.surely_none;
            if standing.cause == Cause::Waiting && !open.is_empty() {
                standing.cause = judged.cause;
            }
        }
        Standing { settled: self.settled, expired: self.expired, ..standing }
    }
}

struct Judged {
    settled: OffsetSet,
    expired: OffsetSet,
    surely_none: bool,
    cause: Cause,
}

impl Judged {
    fn undecided(cause: Cause) -> Self {
        Self { settled: OffsetSet::default(), expired: OffsetSet::default(), surely_none: false, cause }
    }
}

/// What of the group and cluster is not as it was, if anything that matters.
fn changed(base: &Sample, now: &Sample) -> Option<&'static str> {
    let (base, now) = (&base.group, &now.group);
    if base.isolation != now.isolation {
        Some("group's share.isolation.level")
    } else if base.dead_letter_topic != now.dead_letter_topic {
        Some("group's dead-letter topic")
    } else if base.share_version != now.share_version {
        Some("cluster's share.version")
    } else {
        None
    }
}

fn judge_partition(
    partition: &TopicPartition,
    base: &PartitionSample,
    before: &PartitionSample,
    now: &PartitionSample,
    open: &OffsetSet,
) -> Judged {
    if base.topic_id != now.topic_id {
        return Judged::undecided(Cause::Changed { what: "topic (made anew under its name)" });
    }
    let cause = why_pending(partition, now, open);
    let (Some(start_before), Some(start)) = (before.start, now.start) else {
        // A start offset that was there and is gone: somebody deleted the group's offsets.
        return match base.start {
            Some(_) => Judged::undecided(Cause::Changed { what: "group's start offset (gone)" }),
            None => Judged { surely_none: true, ..Judged::undecided(cause) },
        };
    };
    if start < start_before || base.start.is_some_and(|first| start < first) {
        return Judged::undecided(Cause::Changed { what: "group's start offset (moved back)" });
    }
    // The broker moves the start offset along with the log start, so only what the earlier sample saw below the start
    // offset and still in the log was surely done rather than deleted.
    let in_order = open.within(before.log_start, start_before);
    let settled = if all_done(before, now, open) { open.clone() } else { in_order };
    let mut expired = open.within(0, now.log_start);
    expired.subtract(&settled);
    let surely_none = settled.is_empty() && nothing_done(base, now, start, open);
    Judged { settled, expired, surely_none, cause }
}

/// Lag 0 twice in a row with nothing moved between, past our last offset, and nothing of ours deleted.
fn all_done(before: &PartitionSample, now: &PartitionSample, open: &OffsetSet) -> bool {
    let (Some(first), Some(last)) = (open.first(), open.last()) else { return true };
    before == now && now.lag == Some(0) && now.high_watermark > last && now.log_start <= first
}

/// The start offset has not reached ours, and nothing beyond it is done out of order: neither at all nor, as the start
/// offset is one write behind, since before our first send. High watermark less lag counts what is done.
fn nothing_done(base: &PartitionSample, now: &PartitionSample, start: i64, open: &OffsetSet) -> bool {
    let done = |sample: &PartitionSample| Some(sample.high_watermark - sample.lag?);
    let not_reached = open.first().is_some_and(|first| start <= first);
    not_reached && done(now).is_some_and(|count| count == start || done(base) == Some(count))
}

fn why_pending(partition: &TopicPartition, now: &PartitionSample, open: &OffsetSet) -> Cause {
    let partition = partition.clone();
    let (Some(start), Some(first)) = (now.start, open.first()) else { return Cause::Waiting };
    if now.log_start > start {
        Cause::LagUnreliable { partition }
    } else if now.stable < now.high_watermark {
        Cause::OpenTransaction { partition }
    } else if start < first {
        Cause::BlockedAt { partition, offset: start }
    } else {
        Cause::Waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: TopicId = TopicId::from_u128(7);

    fn partition() -> TopicPartition {
        TopicPartition::new("orders", 0)
    }

    fn at(log_start: i64, start: Option<i64>, lag: i64, high_watermark: i64) -> Sample {
        let one = PartitionSample {
            topic_id: TOPIC,
            log_start,
            high_watermark,
            stable: high_watermark,
            start,
            lag: Some(lag),
        };
        Sample { group: GroupSample::default(), partitions: BTreeMap::from([(partition(), one)]) }
    }

    fn watched(offsets: std::ops::RangeInclusive<i64>) -> Watched {
        let mut watched = Watched::default();
        watched.add(partition(), &offsets.collect());
        watched
    }

    fn judge(base: &Sample, before: &Sample, now: &Sample) -> Standing {
        watched(100..=109).judge(base, before, now)
    }

    #[test]
    fn lag_zero_seen_twice_settles_although_the_start_offset_is_one_write_behind() {
        let base = at(0, Some(95), 5, 100);
        let done = at(0, Some(105), 0, 111);
        assert_eq!(judge(&base, &done, &done).settled, 10);
        assert_eq!(
            judge(&base, &base, &done).settled,
            0,
            "one sample is not enough: its numbers are read without one lock"
        );
    }

    #[test]
    fn a_start_offset_beyond_settles_under_live_traffic() {
        let base = at(0, Some(100), 0, 100);
        let standing = judge(&base, &at(0, Some(104), 50, 154), &at(0, Some(120), 60, 180));
        assert_eq!((standing.settled, standing.pending), (4, 6));
        assert_eq!(judge(&base, &at(0, Some(110), 50, 160), &at(0, Some(120), 60, 180)).pending, 0);
    }

    #[test]
    fn deleted_records_are_expired_and_not_settled() {
        let base = at(0, Some(100), 0, 100);
        let sent = at(0, Some(100), 11, 111);
        let cut = at(111, Some(111), 0, 111);
        let standing = judge(&base, &sent, &cut);
        assert_eq!((standing.settled, standing.expired, standing.pending), (0, 10, 0));
        assert_eq!(judge(&base, &cut, &cut).settled, 0, "not either when the deletion is seen in both samples");
    }

    #[test]
    fn what_was_settled_stays_so_when_retention_comes_later() {
        let base = at(0, Some(100), 0, 100);
        let done = at(0, Some(110), 0, 111);
        let mut watched = watched(100..=109);
        assert_eq!(watched.judge(&base, &done, &done).settled, 10);
        let standing = watched.judge(&base, &at(111, Some(111), 0, 111), &at(111, Some(111), 0, 111));
        assert_eq!((standing.settled, standing.expired), (10, 0));
    }

    #[test]
    fn nothing_settled_is_told_from_undecided() {
        let base = at(0, Some(100), 0, 100);
        let untouched = at(0, Some(100), 11, 111);
        assert!(judge(&base, &untouched, &untouched).surely_none);
        let some_out_of_order = at(0, Some(100), 8, 111);
        assert!(!judge(&base, &some_out_of_order, &some_out_of_order).surely_none);
    }

    #[test]
    fn a_start_offset_that_is_one_write_behind_does_not_hide_that_nothing_was_done() {
        let base = at(0, Some(90), 0, 100);
        let untouched = at(0, Some(90), 11, 111);
        assert!(judge(&base, &untouched, &untouched).surely_none);
        let one_done = at(0, Some(90), 10, 111);
        assert!(!judge(&base, &one_done, &one_done).surely_none);
    }

    #[test]
    fn a_record_held_earlier_is_named() {
        let base = at(0, Some(97), 1, 100);
        let held = at(0, Some(97), 1, 111);
        let standing = judge(&base, &held, &held);
        assert_eq!(standing.cause, Cause::BlockedAt { partition: partition(), offset: 97 });
        assert!(!standing.surely_none);
    }

    #[test]
    fn a_lag_inflated_by_deletion_is_named() {
        let base = at(0, Some(2), 98, 100);
        let cut = at(50, Some(2), 45, 111);
        assert!(matches!(judge(&base, &cut, &cut).cause, Cause::LagUnreliable { .. }));
    }

    #[test]
    fn an_open_transaction_is_named() {
        let base = at(0, Some(100), 0, 100);
        let mut open = at(0, Some(100), 11, 120);
        open.partitions.values_mut().for_each(|p| p.stable = 111);
        assert!(matches!(judge(&base, &open, &open).cause, Cause::OpenTransaction { .. }));
    }

    #[test]
    fn a_group_that_never_read_settles_nothing() {
        let base = at(0, None, -1, 100);
        let standing = judge(&base, &at(0, None, -1, 111), &at(0, None, -1, 111));
        assert_eq!((standing.settled, standing.surely_none), (0, true));
    }

    #[test]
    fn any_other_change_is_undecided() {
        let base = at(0, Some(100), 0, 100);
        let done = at(0, Some(110), 0, 111);
        let mut other_topic = done.clone();
        other_topic.partitions.values_mut().for_each(|p| p.topic_id = TopicId::from_u128(8));
        let mut other_isolation = done.clone();
        other_isolation.group.isolation = "read_committed".into();
        let mut other_dlq = done.clone();
        other_dlq.group.dead_letter_topic = "dlq.other".into();
        for changed in [other_topic, other_isolation, other_dlq, at(0, Some(90), 0, 111), at(0, None, 0, 111)] {
            let standing = judge(&base, &changed, &changed);
            assert_eq!((standing.settled, standing.pending, standing.surely_none), (0, 10, false));
            assert!(matches!(standing.cause, Cause::Changed { .. }), "{:?}", standing.cause);
        }
    }
}
