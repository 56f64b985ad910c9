//! What a DLQReplay's status says, from what its run tells. Pure.

use super::canary::{Step, StepEnd};
use super::run::account::{Account, count};
use super::run::watch::Returned;
use super::run::{Figures, Snapshot};
use super::selection;
use crate::api::outcome::{self, Reason};
use crate::api::{self, DLQReplayStatus, PartitionRanges, Progress, StepVerdict, Time};
use crate::kafka::offset_set::PartitionSets;
use jiff::Timestamp;

/// Lists of offsets in the status are cut at this many bytes, all partitions together, so that it stays below 64 KiB.
const RANGES: usize = 12 * 1024;
/// A list of offsets names at most this many partitions.
const PARTITIONS: usize = 1000;

/// Sets the summary and all that follows from it; the end is noted once.
pub fn tell(status: &mut DLQReplayStatus, reason: Reason, message: &str, generation: Option<i64>, now: Timestamp) {
    let now = whole_second(now);
    status.observed_generation = generation;
    outcome::set(&mut status.conditions, reason, message, generation, &Time(now));
    if reason.is_final() {
        status.completion_time.get_or_insert(Time(now));
    }
}

/// The status with what the run tells.
pub fn with_snapshot(
    mut status: DLQReplayStatus,
    snapshot: &Snapshot,
    generation: Option<i64>,
    now: Timestamp,
) -> DLQReplayStatus {
    let Snapshot { reason, message, account, figures } = snapshot;
    tell(&mut status, *reason, message, generation, now);
    status.start_time.get_or_insert(Time(whole_second(now)));
    let known = status.progress.take().unwrap_or_default();
    status.progress = Some(progress(account, figures.as_ref(), &known));
    if let Some(figures) = figures {
        status.step = figures.step.as_ref().map(step);
        status.steps = figures.steps.iter().map(step).collect();
    }
    let (sent, whole) = ranges(&account.sent);
    status.sent = sent;
    status.sent_truncated = Some(!whole);
    status.uncertain = ranges(&account.uncertain).0;
    status.in_doubt = ranges(&account.in_doubt).0;
    status.returned = account.told.iter().take(api::KEPT_RETURNED).map(returned).collect();
    status
}

/// Times are whole seconds on the wire: others would make a status that was read back differ from itself.
pub fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What is not known now stays as it was told last.
fn progress(account: &Account, figures: Option<&Figures>, known: &Progress) -> Progress {
    Progress {
        selected: signed(count(&account.selected)),
        sent: signed(count(&account.sent)),
        uncertain: signed(count(&account.uncertain)),
        settled: figures.map_or(known.settled, |figures| signed(figures.settled)),
        expired: figures.map_or(known.expired, |figures| signed(figures.expired)),
        returned: signed(account.returned()).max(known.returned),
        skipped: 0,
        in_doubt: signed(count(&account.in_doubt)),
        remaining: signed(count(&account.remaining())),
    }
}

fn step(step: &Step) -> api::Step {
    let time = |millis: i64| Timestamp::from_second(millis.div_euclid(1000)).ok().map(Time);
    api::Step {
        number: i32::try_from(step.number).unwrap_or(i32::MAX),
        size: signed(step.size),
        sent: signed(step.sent),
        settled: signed(step.settled),
        returned: signed(step.returned),
        started_at: time(step.started_at),
        deadline: step.deadline.and_then(time),
        verdict: step.end.map(verdict),
    }
}

fn verdict(end: StepEnd) -> StepVerdict {
    match end {
        StepEnd::Settled => StepVerdict::Settled,
        StepEnd::PartlySettled => StepVerdict::PartlySettled,
        StepEnd::Returned => StepVerdict::Returned,
        StepEnd::NoneSettled => StepVerdict::NoneSettled,
        StepEnd::Cancelled => StepVerdict::Cancelled,
    }
}

fn returned(one: &Returned) -> api::Returned {
    api::Returned {
        partition: one.letter.0,
        offset: one.letter.1,
        dead_letter_partition: one.now.partition,
        dead_letter_offset: one.now.offset,
        cause: selection::cause(one.now.cause),
        message: api::clip(&one.now.message, api::CLIPPED_MESSAGE),
        deliveries: one.now.deliveries,
    }
}

/// The offsets as text, and whether all of them are in it.
fn ranges(sets: &PartitionSets) -> (Vec<PartitionRanges>, bool) {
    let (mut left, mut whole, mut list) = (RANGES, true, Vec::new());
    for (partition, set) in sets.iter().filter(|(_, set)| !set.is_empty()) {
        let (ranges, complete) = set.ranges_within(left);
        whole &= complete && list.len() < PARTITIONS;
        if ranges.is_empty() || list.len() == PARTITIONS {
            continue;
        }
        left -= ranges.len().min(left);
        list.push(PartitionRanges { partition: *partition, ranges });
    }
    (list, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(account: Account) -> Snapshot {
        Snapshot { reason: Reason::Sending, message: "step 1".into(), account, figures: Some(Figures::default()) }
    }

    fn status(account: Account) -> DLQReplayStatus {
        with_snapshot(DLQReplayStatus::default(), &snapshot(account), Some(1), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_sent_list_is_whole_while_it_is_short() {
        let mut account = Account::new(PartitionSets::from([(0, (0..40).collect())]));
        account.sent = PartitionSets::from([(0, (0..10).chain([12]).collect())]);
        let status = status(account);
        assert_eq!(status.sent, [PartitionRanges { partition: 0, ranges: "0-9,12".into() }]);
        assert_eq!(status.sent_truncated, Some(false));
        let progress = status.progress.unwrap_or_default();
        assert_eq!((progress.selected, progress.sent, progress.remaining), (40, 11, 29));
    }

    #[test]
    fn a_long_list_is_cut_and_says_so_and_the_status_stays_small() {
        let scattered =
            || PartitionSets::from_iter((0..50).map(|partition| (partition, (0..20_000).step_by(2).collect())));
        let mut account = Account::new(scattered());
        (account.sent, account.uncertain, account.in_doubt) = (scattered(), scattered(), scattered());
        let status = status(account);
        assert_eq!(status.sent_truncated, Some(true));
        assert_eq!(status.progress.as_ref().map(|progress| progress.sent), Some(500_000));
        let size = serde_json::to_vec(&status).map(|json| json.len()).unwrap_or(usize::MAX);
        assert!(size < 48 * 1024, "{size} bytes");
    }

    #[test]
    fn the_end_is_noted_once() {
        let mut status = DLQReplayStatus::default();
        let at = |second| Timestamp::from_second(second).unwrap_or_default();
        tell(&mut status, Reason::Settling, "", Some(1), at(1));
        assert_eq!(status.completion_time, None);
        tell(&mut status, Reason::AllSettled, "", Some(1), at(2));
        tell(&mut status, Reason::AllSettled, "", Some(1), at(3));
        assert_eq!(status.completion_time, Some(Time(at(2))));
    }
}
