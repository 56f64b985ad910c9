//! The replays under way in this process: one at a time for each dead-letter topic and each group.

use super::run::{self, Job, Snapshot, Wishes};
use super::scribe::Scribe;
use crate::api::DLQReplay;
use crate::context::Context;
use kube::ResourceExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What only one replay at a time may have.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Exclusive {
    DeadLetterTopic(String, String),
    Group(String, String),
}

struct Under {
    name: String,
    places: [Exclusive; 2],
    /// None while it is still being decided whether it may begin.
    running: Option<Running>,
}

struct Running {
    wishes: watch::Sender<Wishes>,
    generation: Arc<AtomicI64>,
}

type Held = Arc<Mutex<HashMap<String, Under>>>;

/// The right to run; given back when dropped.
pub struct Slot {
    uid: String,
    held: Held,
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.held).remove(&self.uid);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
pub struct Runs {
    held: Held,
    /// Ended with the controller: a process that may not act any more must not go on sending.
    tasks: Mutex<JoinSet<()>>,
    /// Whether the operator ends: then nothing is begun any more, and what is handed over is not taken up again.
    stopping: AtomicBool,
}

impl Runs {
    /// Passes on what is asked of a running replay. False if it is not running here.
    pub fn wish(&self, object: &DLQReplay, wishes: Wishes) -> bool {
        let held = lock(&self.held);
        let Some(running) = object.uid().and_then(|uid| held.get(&uid)).and_then(|one| one.running.as_ref()) else {
            return false;
        };
        running.generation.store(object.metadata.generation.unwrap_or_default(), Ordering::Relaxed);
        running.wishes.send_if_modified(|now| {
            // Once the operator stops, that stays so.
            let wishes = Wishes { release: now.release, ..wishes };
            std::mem::replace(now, wishes) != wishes
        });
        true
    }

    /// Takes the slot, or names the replay that has it.
    pub fn claim(&self, object: &DLQReplay, cluster: &str, topic: &str, group: &str) -> Result<Slot, String> {
        let uid = object.uid().unwrap_or_default();
        let name = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
        let places =
            [Exclusive::DeadLetterTopic(cluster.into(), topic.into()), Exclusive::Group(cluster.into(), group.into())];
        let mut held = lock(&self.held);
        if let Some(other) = held.values().find(|other| other.places.iter().any(|place| places.contains(place))) {
            return Err(other.name.clone());
        }
        held.insert(uid.clone(), Under { name, places, running: None });
        Ok(Slot { uid, held: self.held.clone() })
    }

    /// Runs the job in a task of its own.
    pub fn start(&self, context: Arc<Context>, object: DLQReplay, slot: Slot, job: Job, wishes: Wishes) {
        let (wishes, heard) = watch::channel(Wishes { release: self.is_stopping(), ..wishes });
        let (told, snapshots) = watch::channel(None);
        let generation = Arc::new(AtomicI64::new(object.metadata.generation.unwrap_or_default()));
        if let Some(under) = lock(&self.held).get_mut(&slot.uid) {
            under.running = Some(Running { wishes, generation: generation.clone() });
        }
        let scribe = Scribe { context, object, generation };
        lock(&self.tasks).spawn(carry_out(slot, scribe, job, heard, told, snapshots));
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Asks all replays to hand over.
    pub fn release(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for under in lock(&self.held).values() {
            if let Some(running) = &under.running {
                running.wishes.send_modify(|wishes| wishes.release = true);
            }
        }
    }

    /// Returns when all replays have ended or handed over.
    pub async fn ended(&self) {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        while tasks.join_next().await.is_some() {}
    }
}

async fn carry_out(
    slot: Slot,
    scribe: Scribe,
    job: Job,
    wishes: watch::Receiver<Wishes>,
    told: watch::Sender<Option<Snapshot>>,
    snapshots: watch::Receiver<Option<Snapshot>>,
) {
    let name = format!("{}/{}", job.start.namespace, job.start.name);
    let (stop, ()) = tokio::join!(run::run(job, wishes, told), scribe.follow(snapshots));
    tracing::info!(replay = name, ?stop, "the replay's task ends");
    drop(slot);
}
