//! The steps of a running replay: one turn looks, asks the canary what to do, and does it.

use super::account::targets;
use super::letters::Letters;
use super::slice::{self, Slice};
use super::watch::{self, Tail, WatchError};
use super::{DlqState, Job, Run, RunError, Wishes};
use crate::api::outcome::Reason;
use crate::kafka::TopicPartition;
use crate::kafka::admin::TopicLookup;
use crate::kafka::ledger::{Entry, Intent, IntentTarget, Move, Outcome, ReplayHistory};
use crate::kafka::offset_set::PartitionSets;
use crate::kafka::reader::Fetcher;
use crate::replay::canary::{Action, Canary, Millis, Sight, Step, Verdict, Wish};
use crate::replay::letter::Letter;
use crate::replay::now;
use crate::replay::pace::Pacer;
use crate::replay::run::account::Account;
use crate::replay::settle::{Sample, Standing, Watched};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often what was sent is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// The intent of a large step is recorded in parts of this many messages, so that none need be held in memory at once.
const INTENDED: u64 = 10_000;
/// Steps told in the status.
const STEPS: usize = 20;

/// Figures for the status.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub settled: u64,
    pub expired: u64,
    pub skipped: u64,
    pub step: Option<Step>,
    pub steps: Vec<Step>,
}

/// A replay whose selection is frozen.
pub(super) struct Going {
    canary: Canary,
    /// Messages of the open step.
    watched: Watched,
    /// Messages of earlier steps that are not settled yet.
    earlier: Watched,
    standing: Standing,
    earlier_standing: Standing,
    /// What was so before the first send to each partition.
    base: Sample,
    before: Sample,
    tail: Tail,
    letters: Letters,
    fetcher: Fetcher,
    /// Messages whose intent is recorded and which are not sent yet.
    intended: u64,
    slices: u32,
    pacer: Pacer,
    steps: Vec<Step>,
    /// Kafka could not be looked at for some time, which does not count against the step's deadline.
    blind: bool,
}

impl Going {
    pub async fn begin(job: &Job) -> Result<Self, RunError> {
        let tail = Tail::start(&job.place.admin, &job.dead_letter_topic, &job.group).await?;
        let canary = Canary::new(job.policy, super::count(&job.start.selected));
        Self::with(job, canary, tail, job.start.selected.clone()).await
    }

    /// Goes on where another owner left off.
    pub async fn resume(
        job: &Job,
        account: &Account,
        history: &ReplayHistory,
        sent: &[Move],
    ) -> Result<Self, RunError> {
        let positions = history.start.as_ref().map(|start| start.dead_letter_ends.clone()).unwrap_or_default();
        let tail = Tail::from(&job.dead_letter_topic, job.place.dead_letter_topic, &job.group, positions);
        let canary = Canary::resume(job.policy, super::count(&account.selected), account.already(history), now());
        let mut going = Self::with(job, canary, tail, account.remaining()).await?;
        going.slices = history.outcomes.iter().map(|outcome| outcome.slice + 1).max().unwrap_or(0);
        let last = history.intent.as_ref().map(|intent| intent.step);
        let in_last: BTreeSet<_> = history.outcomes.iter().filter(|o| Some(o.step) == last).map(|o| o.slice).collect();
        going
            .base
            .partitions
            .extend(look_at(job, sent.iter().map(|one| one.target.clone()).collect()).await?.partitions);
        for outcome in &history.outcomes {
            let watched = if in_last.contains(&outcome.slice) { &mut going.watched } else { &mut going.earlier };
            targets(&outcome.moves).for_each(|(partition, offsets)| watched.add(partition, offsets));
        }
        Ok(going)
    }

    async fn with(job: &Job, canary: Canary, tail: Tail, wanted: PartitionSets) -> Result<Self, RunError> {
        let base = watch::sample(&job.place.admin, &job.settling_group, &BTreeSet::new()).await?;
        Ok(Self {
            canary,
            watched: Watched::default(),
            earlier: Watched::default(),
            standing: Standing::default(),
            earlier_standing: Standing::default(),
            before: base.clone(),
            base,
            tail,
            letters: open_letters(job, wanted)?,
            fetcher: Fetcher::new(&job.place.settings).map_err(slice::SliceError::from)?,
            intended: 0,
            slices: 0,
            pacer: Pacer::default(),
            steps: Vec::new(),
            blind: false,
        })
    }

    /// Takes up the thread after the producer failed: `sent` is what turned out to be committed all the same, and
    /// `uncertain` how many messages became uncertain.
    pub fn rejoin(&mut self, job: &Job, account: &Account, sent: &[Move], uncertain: u64) -> Result<(), RunError> {
        targets(sent).for_each(|(partition, offsets)| self.watched.add(partition, offsets));
        let count = sent.iter().map(|one| one.letters.len()).sum();
        self.canary.record_slice(count, uncertain, now());
        self.intended = 0;
        self.slices += 1;
        self.letters = open_letters(job, account.remaining())?;
        Ok(())
    }

    pub fn look_away(&mut self) {
        self.blind = true;
    }

    pub fn settled(&self) -> u64 {
        self.standing.settled + self.earlier_standing.settled
    }

    pub fn tail_positions(&self) -> &BTreeMap<i32, i64> {
        self.tail.positions()
    }

    pub fn figures(&self) -> Figures {
        Figures {
            settled: self.settled(),
            expired: self.standing.expired + self.earlier_standing.expired,
            skipped: self.canary.skipped(),
            step: self.canary.step().cloned(),
            steps: self.steps.clone(),
        }
    }

    /// Everything that is so now. First the offsets, then the dead-letter topic: a record leaves the lag only once its
    /// dead letter is written.
    async fn look(&mut self, job: &Job, account: &mut Account, wishes: Wishes) -> Result<Sight, RunError> {
        if wishes.dlq == DlqState::Losing {
            self.watched.disturb("dead-letter topic or the group's settings for it");
            self.earlier.disturb("dead-letter topic or the group's settings for it");
        }
        let partitions: BTreeSet<_> = self.watched.partitions().chain(self.earlier.partitions()).cloned().collect();
        if !partitions.is_empty() {
            let sample = look_at(job, partitions).await?;
            check_topics(job, &sample)?;
            self.standing = self.watched.judge(&self.base, &self.before, &sample);
            self.earlier_standing = self.earlier.judge(&self.base, &self.before, &sample);
            self.before = sample;
            let returned = self.tail.read(&job.place.admin, &job.place.settings, &account.index).await?;
            account.add_returned(returned);
        }
        let dlq_ready = wishes.dlq == DlqState::Ready && !std::mem::take(&mut self.blind);
        let (standing, earlier) = (self.standing.clone(), self.earlier_standing.clone());
        Ok(Sight { returned: account.returned(), standing, earlier, dlq_ready })
    }

    /// Moves a step that has just ended to the list, and its messages to those of earlier steps.
    fn file_ended_step(&mut self) {
        let Some(step) = self.canary.step().filter(|step| step.end.is_some()) else { return };
        if self.steps.last().is_some_and(|last| last.number >= step.number) {
            return;
        }
        self.steps.push(step.clone());
        let surplus = self.steps.len().saturating_sub(STEPS);
        self.steps.drain(..surplus);
        self.earlier.absorb(std::mem::take(&mut self.watched));
        self.earlier_standing.settled += self.standing.settled;
        self.earlier_standing.pending += self.standing.pending;
        self.earlier_standing.cause = self.standing.cause.clone();
        self.standing = Standing::default();
    }
}

fn open_letters(job: &Job, wanted: PartitionSets) -> Result<Letters, RunError> {
    Ok(Letters::open(job, wanted)?)
}

async fn look_at(job: &Job, partitions: BTreeSet<TopicPartition>) -> Result<Sample, RunError> {
    Ok(watch::sample(&job.place.admin, &job.settling_group, &partitions).await?)
}

/// A topic made anew inside a transaction commits without an error and loses the data.
fn check_topics(job: &Job, sample: &Sample) -> Result<(), RunError> {
    let other =
        sample.partitions.iter().find(|(partition, seen)| job.route.ids.get(&partition.topic) != Some(&seen.topic_id));
    match other {
        Some((partition, _)) => Err(RunError::MeetOtherTopic { topic: partition.topic.clone() }),
        None => Ok(()),
    }
}

impl Run {
    /// Looks, decides, acts.
    pub(super) async fn turn(&mut self) -> Result<(), RunError> {
        let wishes = *self.wishes.borrow_and_update();
        if wishes.dlq == DlqState::Gone {
            let message = "the ShareGroupDLQ was deleted, so nothing says any more that a failure would be seen; nothing more is sent";
            self.end_with(Reason::DLQGone, message.into());
            return Ok(());
        }
        let Some(going) = &mut self.going else { return Ok(()) };
        let sight = going.look(&self.job, &mut self.account, wishes).await?;
        let wish = Wish { suspend: wishes.suspend, cancel: wishes.cancel };
        let action = going.canary.next(&sight, wish, now());
        going.file_ended_step();
        self.tell(&action);
        match action {
            Action::BeginStep { number, size } => self.begin_step(number, size),
            Action::Send { at_most } => self.send(at_most, wishes).await?,
            Action::Watch | Action::Pause | Action::Hold => self.rest(LOOK).await,
            Action::Finish(verdict) => self.finish(&verdict),
        }
        Ok(())
    }

    fn begin_step(&mut self, number: u32, size: u64) {
        if let Some(going) = &mut self.going {
            going.canary.record_begun(number, size, now());
            going.intended = 0;
        }
    }

    async fn send(&mut self, at_most: u64, wishes: Wishes) -> Result<(), RunError> {
        let Some(going) = &mut self.going else { return Ok(()) };
        let wait = going.pacer.next_at(wishes.per_second) - now();
        if wait > 0 {
            let wait = Duration::from_millis(wait.unsigned_abs()).min(LOOK);
            self.rest(wait).await;
            return Ok(());
        }
        if going.intended == 0 {
            return self.intend(at_most.min(INTENDED)).await;
        }
        let size = Pacer::slice(wishes.per_second).min(at_most).min(going.intended);
        let letters = going.letters.peek(size as usize).await?;
        let slice = slice::prepare(&mut going.fetcher, &self.job.route, letters).await?;
        if self.wishes.has_changed().unwrap_or(true) {
            return Ok(());
        }
        self.send_slice(slice).await
    }

    /// Records what the next messages are and where the logs of their targets end, before any of them is sent.
    async fn intend(&mut self, at_most: u64) -> Result<(), RunError> {
        let Some(going) = &mut self.going else { return Ok(()) };
        let letters = going.letters.peek(at_most as usize).await?;
        let route =
            |letter: &Letter| self.job.route.of(letter).map(|(topic, partition)| TopicPartition::new(topic, partition));
        let partitions = letters.iter().map(route).collect::<Result<BTreeSet<_>, _>>()?;
        let sample = look_at(&self.job, partitions).await?;
        check_topics(&self.job, &sample)?;
        let target = |(partition, seen): (&TopicPartition, &crate::replay::settle::PartitionSample)| IntentTarget {
            topic: partition.topic.clone(),
            id: seen.topic_id,
            partition: partition.partition,
            end_offset: seen.high_watermark,
        };
        let step = going.canary.step().map_or((0, 0), |step| (step.number, step.size));
        let intent = Intent {
            uid: self.job.start.uid.clone(),
            step: step.0,
            size: step.1,
            letters: offsets_of(&letters),
            targets: sample.partitions.iter().map(target).collect(),
            at: now(),
        };
        for (partition, seen) in sample.partitions {
            going.base.partitions.entry(partition).or_insert(seen);
        }
        self.record(vec![Entry::Intent(intent)]).await?;
        if let Some(going) = &mut self.going {
            going.intended = letters.len() as u64;
        }
        Ok(())
    }

    async fn send_slice(&mut self, slice: Slice) -> Result<(), RunError> {
        let (Some(going), Some(owner)) = (&mut self.going, self.owner.take()) else { return Ok(()) };
        let Slice { letters, records } = slice;
        let (began, number) = (now(), going.slices);
        let (uid, step) = (self.job.start.uid.clone(), going.canary.step().map_or(0, |step| step.number));
        self.account.in_doubt = offsets_of(&letters);
        self.tell(&Action::Send { at_most: letters.len() as u64 });
        let (route, sent) = (self.job.route.clone(), letters.clone());
        let entries = move |acknowledged: &[_]| {
            let moves = slice::moves(&route, &sent, acknowledged);
            vec![Entry::Outcome(Outcome { uid, step, slice: number, moves, at: now() })]
        };
        let (owner, acknowledged) = owner.send(records, entries).await?;
        self.owner = Some(owner);
        self.account.in_doubt.clear();
        let moves = slice::moves(&self.job.route, &letters, &acknowledged);
        self.note_sent(&letters, &moves, began);
        self.check_commit(&moves).await
    }

    fn note_sent(&mut self, letters: &[Letter], moves: &[Move], began: Millis) {
        moves.iter().for_each(|one| self.account.add_sent(one.clone()));
        let Some(going) = &mut self.going else { return };
        let sent = letters.len() as u64;
        going.letters.take(letters.len());
        going.intended -= sent.min(going.intended);
        going.slices += 1;
        going.pacer.record(sent, began);
        targets(moves).for_each(|(partition, offsets)| going.watched.add(partition, offsets));
        going.canary.record_slice(sent, 0, now());
    }

    /// The commit said yes; what it says of topics that were made anew meanwhile is nothing. So: the same topics, and
    /// ends beyond what was acknowledged.
    async fn check_commit(&mut self, moves: &[Move]) -> Result<(), RunError> {
        let sample = look_at(&self.job, moves.iter().map(|one| one.target.clone()).collect()).await?;
        check_topics(&self.job, &sample)?;
        for one in moves {
            let end = sample.partitions.get(&one.target).map_or(0, |seen| seen.high_watermark);
            if one.target_offsets.last().is_some_and(|last| last >= end) {
                return Err(RunError::MeetOtherTopic { topic: one.target.topic.clone() });
            }
        }
        let ledger = &self.job.place.ledger;
        let found =
            self.job.place.admin.topics(&BTreeSet::from([ledger.topic.clone()])).await.map_err(WatchError::from)?;
        match found.get(&ledger.topic) {
            Some(TopicLookup::Found(topic)) if topic.id == ledger.id => Ok(()),
            _ => Err(RunError::LoseLedger { topic: ledger.topic.clone() }),
        }
    }

    fn tell(&self, action: &Action) {
        let (sent, selected) = (super::count(&self.account.sent), super::count(&self.account.selected));
        let (reason, what) = match action {
            Action::BeginStep { .. } | Action::Send { .. } => (Reason::Sending, "sending"),
            Action::Watch => (Reason::Settling, "all of the step is sent; waiting for the group to settle it"),
            Action::Pause => (
                Reason::Suspended,
                "suspended: nothing is sent, what was sent is watched. Go on with spec.suspend: false",
            ),
            Action::Hold => (
                Reason::DLQNotReady,
                "the ShareGroupDLQ is not Ready, so a failure could get lost: no further step before it is",
            ),
            Action::Finish(_) => return,
        };
        let step = self.going.as_ref().and_then(|going| going.canary.step().map(|step| step.number)).unwrap_or(0);
        self.publish(reason, format!("step {step}, {sent} of {selected} sent: {what}"));
    }

    fn finish(&mut self, verdict: &Verdict) {
        let (reason, message) = super::ending::explain(verdict, &self.account, self.figures());
        self.end_with(reason, message);
    }

    fn figures(&self) -> Figures {
        self.going.as_ref().map(Going::figures).unwrap_or_default()
    }
}

fn offsets_of(letters: &[Letter]) -> PartitionSets {
    let mut sets = PartitionSets::new();
    for letter in letters {
        sets.entry(letter.partition).or_default().insert(letter.offset);
    }
    sets
}
