//! One replay under way: own the dead-letter topic, freeze the selection, send step by step, watch, and end.
//!
//! The task holds nothing that could not be found again: the process may die between any two lines, and the next owner
//! learns from the ledger what was sent. What the user wants now comes in through `Wishes`, what is so goes out as
//! `Snapshot`s; who writes them down may be slow or cut off without holding up the replay.

pub mod account;
mod ending;
mod letters;
mod moves;
pub mod owner;
mod recover;
mod slice;
mod steps;
pub mod watch;

use self::account::{Account, count};
use self::letters::LettersError;
use self::owner::{OwnError, Owner, Place};
pub use self::slice::Route;
use self::slice::SliceError;
pub use self::steps::Figures;
use self::steps::Going;
use self::watch::WatchError;
use super::canary::Policy;
use super::now;
use crate::api::outcome::Reason;
use crate::context::Leadership;
use crate::kafka::ledger::{Claim, End, Entry, History, LedgerError, Release, ReplayHistory, Replayed, Start};
use crate::kafka::offset_set::PartitionSets;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch::{Receiver, Sender};

/// How long Kafka is left alone after it failed to answer.
const RETRY: Duration = Duration::from_secs(2);
/// A user who cancels is answered within this time, whatever Kafka does.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a replay is to do, fixed when it begins.
#[derive(Clone)]
pub struct Job {
    pub place: Place,
    pub leadership: Leadership,
    /// The dead-letter topic's name.
    pub dead_letter_topic: String,
    /// The share group whose dead letters these are.
    pub group: String,
    /// The group whose progress settles a message.
    pub settling_group: String,
    pub route: Route,
    pub policy: Policy,
    pub start: Start,
    /// Whether another owner may carry on after an interruption.
    pub resume: bool,
    pub include_replayed: bool,
    /// What the ledger knew of earlier replays when the selection was looked at.
    pub index: Replayed,
}

/// How the ShareGroupDLQ stands, as far as a replay of it cares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DlqState {
    #[default]
    Ready,
    /// Not known at the moment; nothing suggests that failures get lost.
    Unknown,
    /// A failure would get lost now.
    Losing,
    Gone,
}

/// What the user and the cluster ask for at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    pub suspend: bool,
    pub cancel: bool,
    pub per_second: u64,
    pub dlq: DlqState,
    /// The operator stops: finish the slice, hand over.
    pub release: bool,
}

/// What a replay is doing or how it ended, with its figures.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub reason: Reason,
    pub message: String,
    pub account: Account,
    /// Absent where the steps are not known: another owner had them.
    pub figures: Option<Figures>,
}

/// Why the task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Finished, and the ledger says so.
    Ended,
    /// Handed over to the next owner.
    Released,
    /// This process may not act any more.
    LostLease,
}

#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Own(#[from] OwnError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(transparent)]
    Letters(#[from] LettersError),
    #[error(transparent)]
    Slice(#[from] SliceError),
    #[error("{topic} is not the topic it was when the replay began: it was deleted or made anew")]
    MeetOtherTopic { topic: String },
    #[error("the ledger {topic} was deleted or made anew in the middle of the replay")]
    LoseLedger { topic: String },
}

/// What an error means for the replay.
enum Meaning {
    /// Try again: nothing is lost, and nothing more is sent before it works.
    Wait,
    LostLease,
    End(Reason),
}

impl RunError {
    fn meaning(&self) -> Meaning {
        match self {
            Self::Own(OwnError::LoseLease | OwnError::MeetNewer { .. }) => Meaning::LostLease,
            Self::Own(OwnError::MeetOther { .. }) => Meaning::End(Reason::Failed),
            // Sending the same again would be refused again.
            Self::Own(OwnError::Send(error)) if error.refused_record().is_some() => Meaning::End(Reason::Failed),
            Self::Own(OwnError::Ledger(LedgerError::KeepTopic { .. })) => Meaning::End(Reason::LedgerLost),
            Self::Own(_) => Meaning::Wait,
            Self::Watch(WatchError::LoseTopic { .. }) | Self::MeetOtherTopic { .. } => {
                Meaning::End(Reason::TargetChanged)
            }
            Self::Watch(WatchError::MissDeadLetters { .. }) => Meaning::End(Reason::Unsettled),
            Self::Watch(_) => Meaning::Wait,
            Self::LoseLedger { .. } => Meaning::End(Reason::LedgerLost),
            Self::Letters(LettersError::MissLetters { .. } | LettersError::ParseLetter { .. }) => {
                Meaning::End(Reason::Failed)
            }
            Self::Slice(SliceError::MissPayload { .. } | SliceError::MeetUnknownTopic { .. }) => {
                Meaning::End(Reason::Failed)
            }
            Self::Letters(_) | Self::Slice(_) => Meaning::Wait,
        }
    }
}

/// Runs a replay until it ends, is handed over or may not be gone on with.
pub async fn run(job: Job, wishes: Receiver<Wishes>, snapshots: Sender<Option<Snapshot>>) -> Stop {
    let voice = Arc::new(Voice { snapshots, cancel_told: AtomicBool::new(false) });
    let mut run = Run::new(job, wishes.clone(), voice.clone());
    tokio::select! {
        stop = run.drive() => stop,
        never = answer_cancel(wishes, &voice) => match never {},
    }
}

/// How the run tells what is so.
struct Voice {
    snapshots: Sender<Option<Snapshot>>,
    /// Whether the user was told `Cancelled` before Kafka answered: then that is the end, whatever is found out later.
    cancel_told: AtomicBool,
}

impl Voice {
    fn has_told_cancel(&self) -> bool {
        self.cancel_told.load(Ordering::Relaxed)
    }
}

/// Beside the run, which may be waiting for Kafka: a user who cancels is answered all the same.
async fn answer_cancel(mut wishes: Receiver<Wishes>, voice: &Voice) -> Infallible {
    if wishes.wait_for(|wishes| wishes.cancel).await.is_ok() {
        tokio::time::sleep(PATIENCE).await;
        voice.cancel_told.store(true, Ordering::Relaxed);
        voice.snapshots.send_modify(|snapshot| {
            if let Some(snapshot) = snapshot.as_mut().filter(|snapshot| !snapshot.reason.is_final()) {
                (snapshot.reason, snapshot.message) = (Reason::Cancelled, CANCELLED.into());
            }
        });
    }
    std::future::pending().await
}

pub const BEGINNING: &str = "the first step is about to be sent";
pub const RECOVERING: &str = "finding out what an earlier owner has sent";
const CANCELLED: &str = "cancelled; Kafka has not answered yet what became of the messages in status.inDoubt. They are not \
                         sent again before it has";

struct Run {
    job: Job,
    wishes: Receiver<Wishes>,
    voice: Arc<Voice>,
    account: Account,
    /// None before the topic is owned, and after anything went wrong with the producer.
    owner: Option<Owner>,
    /// The steps, once the selection is frozen in the ledger by this task or an earlier owner.
    going: Option<Going>,
    ending: Option<Ending>,
    /// How often another installation was found to have claimed the topic in the meantime.
    strangers: u32,
}

/// How the replay ends, and whether the ledger has yet to be told.
struct Ending {
    reason: Reason,
    message: String,
    recorded: bool,
}

impl Run {
    fn new(job: Job, wishes: Receiver<Wishes>, voice: Arc<Voice>) -> Self {
        let account = Account::new(job.start.selected.clone());
        Self { job, wishes, voice, account, owner: None, going: None, ending: None, strangers: 0 }
    }

    async fn drive(&mut self) -> Stop {
        if self.job.start.dead_letter_ends.is_empty() {
            self.publish(Reason::Sending, BEGINNING.into());
        } else {
            self.publish(Reason::Recovering, RECOVERING.into());
        }
        loop {
            let error = match self.go_on().await {
                Ok(stop) => return stop,
                Err(error) => error,
            };
            match error.meaning() {
                Meaning::LostLease => return Stop::LostLease,
                Meaning::End(reason) => self.end_with(reason, error.to_string()),
                Meaning::Wait if self.wishes.borrow().release => return Stop::Released,
                Meaning::Wait => self.wait_for_kafka(&error).await,
            }
        }
    }

    async fn go_on(&mut self) -> Result<Stop, RunError> {
        if self.owner.is_none() {
            self.become_owner().await?;
        }
        while self.ending.is_none() {
            if self.wishes.borrow().release {
                return self.hand_over().await;
            }
            self.turn().await?;
        }
        self.record_end().await?;
        Ok(Stop::Ended)
    }

    /// Owns the topic, and finds out from the ledger what there is to do.
    async fn become_owner(&mut self) -> Result<(), RunError> {
        let (owner, history, predecessor) = Owner::take(&self.job.place, &self.job.leadership).await?;
        self.owner = Some(owner);
        self.count_strangers(predecessor)?;
        let uid = self.job.start.uid.clone();
        match history.replays.get(&uid).filter(|replay| replay.start.is_some()) {
            Some(replay) => self.go_on_from(replay).await,
            None => self.freeze(&history).await,
        }
    }

    /// Two installations with one ledger fence each other for ever; the one that notices stops.
    fn count_strangers(&mut self, predecessor: Option<Claim>) -> Result<(), OwnError> {
        let Some(claim) = predecessor else { return Ok(()) };
        if claim.installation != self.job.leadership.installation() {
            self.strangers += 1;
        }
        if self.strangers < 2 { Ok(()) } else { Err(OwnError::MeetOther { other: claim.installation }) }
    }

    /// The replay is in the ledger: by this task, whose producer failed it, or by an owner before it.
    async fn go_on_from(&mut self, replay: &ReplayHistory) -> Result<(), RunError> {
        let uncertain_before = count(&self.account.uncertain);
        let new = self.account.learn(replay);
        if let Some(end) = &replay.end {
            return self.end_as_recorded(end);
        }
        if let Some(going) = &mut self.going {
            let uncertain = count(&self.account.uncertain) - uncertain_before;
            return going.rejoin(&self.job, &self.account, &new, uncertain);
        }
        let Wishes { suspend, cancel, .. } = *self.wishes.borrow();
        if !(replay.released || self.job.resume || suspend || cancel) {
            let message = "the operator process that ran this replay ended or lost its lease in the middle; what it had sent is listed in status.sent, \
                           and in status.uncertain what readers with read_uncommitted may have seen. Make a new \
                           DLQReplay for the rest";
            self.end_with(Reason::Interrupted, message.into());
            return Ok(());
        }
        self.going = Some(Going::resume(&self.job, &self.account, replay, &new).await?);
        Ok(())
    }

    fn end_as_recorded(&mut self, end: &End) -> Result<(), RunError> {
        let reason = end.reason.parse().unwrap_or(Reason::Failed);
        self.ending.get_or_insert(Ending { reason, message: end.message.clone(), recorded: true }).recorded = true;
        Ok(())
    }

    /// Records the selection: from here on it is decided what this replay may send.
    async fn freeze(&mut self, history: &History) -> Result<(), RunError> {
        if self.ending.is_some() {
            return Ok(());
        }
        if let Some((reason, message)) = find_obstacle(&self.job, history) {
            self.ending = Some(Ending { reason, message, recorded: true });
            return Ok(());
        }
        let going = Going::begin(&self.job).await?;
        let start = Start { dead_letter_ends: going.tail_positions().clone(), ..self.job.start.clone() };
        self.record(vec![Entry::Start(start)]).await?;
        self.going = Some(going);
        Ok(())
    }

    async fn record(&mut self, entries: Vec<Entry>) -> Result<(), RunError> {
        let Some(owner) = self.owner.take() else { return Err(OwnError::LoseLease.into()) };
        self.owner = Some(owner.record(entries).await?);
        Ok(())
    }

    async fn record_end(&mut self) -> Result<(), RunError> {
        if let Some(ending) = self.ending.as_mut().filter(|_| self.voice.has_told_cancel()) {
            ending.reason = Reason::Cancelled;
        }
        let Some(ending) = &self.ending else { return Ok(()) };
        if !ending.recorded {
            let counts = [("selected", count(&self.account.selected)), ("sent", count(&self.account.sent))];
            let counts = counts.into_iter().chain([
                ("uncertain", count(&self.account.uncertain)),
                ("settled", self.settled()),
                ("returned", self.account.returned()),
            ]);
            let end = End {
                uid: self.job.start.uid.clone(),
                reason: ending.reason.to_string(),
                message: ending.message.clone(),
                counts: counts.map(|(name, count)| (name.to_string(), count)).collect(),
                at: now(),
            };
            self.record(vec![Entry::End(end)]).await?;
        }
        let Some(Ending { reason, message, .. }) = self.ending.take() else { return Ok(()) };
        self.publish(reason, message);
        Ok(())
    }

    async fn hand_over(&mut self) -> Result<Stop, RunError> {
        let release = Release { uid: self.job.start.uid.clone(), at: now() };
        self.record(vec![Entry::Release(release)]).await?;
        Ok(Stop::Released)
    }

    /// The first end that is decided on stays.
    fn end_with(&mut self, reason: Reason, message: String) {
        self.ending.get_or_insert(Ending { reason, message, recorded: false });
    }

    async fn wait_for_kafka(&mut self, error: &RunError) {
        tracing::warn!(replay = %self.job.route.provenance.replay, %error, "the replay waits for Kafka");
        if let Some(going) = &mut self.going {
            going.look_away();
        }
        let every = RETRY.as_secs();
        let message = format!("{error}. Nothing more is sent before this works; it is tried again every {every} s");
        self.publish(Reason::KafkaUnreachable, message);
        self.rest(RETRY).await;
    }

    /// Waits, but not longer than until the user wants something else.
    async fn rest(&mut self, at_most: Duration) {
        // Either way the caller looks again.
        let _ = tokio::time::timeout(at_most, self.wishes.changed()).await;
    }

    fn settled(&self) -> u64 {
        self.going.as_ref().map_or(0, |going| going.settled())
    }

    fn publish(&self, reason: Reason, message: String) {
        let unsaid = self.voice.has_told_cancel() && !reason.is_final();
        let (reason, message) = if unsaid { (Reason::Cancelled, CANCELLED.into()) } else { (reason, message) };
        let figures = self.going.as_ref().map(Going::figures);
        let snapshot = Snapshot { reason, message, account: self.account.clone(), figures };
        self.voice.snapshots.send_replace(Some(snapshot));
    }
}

/// What in the ledger forbids to begin.
fn find_obstacle(job: &Job, history: &History) -> Option<(Reason, String)> {
    let others = history.replays.values().filter_map(|replay| Some((replay, replay.start.as_ref()?)));
    for (replay, start) in others {
        let same = (&start.namespace, &start.name, &start.spec_digest)
            == (&job.start.namespace, &job.start.name, &job.start.spec_digest);
        if same {
            let message = "a DLQReplay of this name and spec was run before and the object made anew since; nothing \
                           is sent. Give it another name to replay what is there now";
            return Some((Reason::AlreadyReplayed, message.into()));
        }
        if !job.include_replayed && overlaps(&job.start.selected, &replay.sent()) {
            let message = format!(
                "messages of the preview were replayed by {}/{} in the meantime; nothing is sent. Make a new DLQReplay for the rest",
                start.namespace, start.name
            );
            return Some((Reason::SelectionChanged, message));
        }
    }
    None
}

fn overlaps(a: &PartitionSets, b: &PartitionSets) -> bool {
    a.iter().any(|(partition, set)| b.get(partition).is_some_and(|other| !set.is_disjoint(other)))
}
