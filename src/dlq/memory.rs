//! What is remembered of an object between two reconciles of one term. Losing it costs a look, never a rule.

use super::observe::Recent;
use super::plan::Action;
use crate::api::{ShareGroupDLQ, ShareGroupDLQStatus};
use kube::ResourceExt;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long brokers may answer a describe with what was before a change.
const CHANGE_SETTLES: Duration = Duration::from_secs(3);
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LAST_BACKOFF: Duration = Duration::from_secs(60);

type Name = (String, String);

#[derive(Default)]
struct Remembered {
    uid: Option<String>,
    failures: u32,
    topic_changed: Option<Instant>,
    group_changed: Option<Instant>,
    /// The status written last and the resourceVersion it got: the watch may not have brought it yet.
    written: Option<(u64, ShareGroupDLQStatus)>,
}

#[derive(Default)]
pub struct Memory {
    objects: Mutex<HashMap<Name, Remembered>>,
}

impl Memory {
    /// The object with the newest status known.
    pub fn refreshed(&self, object: &ShareGroupDLQ) -> ShareGroupDLQ {
        let mut object = object.clone();
        let written = self.on(&object, |known| known.written.clone());
        if let Some((version, status)) = written
            && version_of(&object) < version
        {
            object.status = Some(status);
        }
        object
    }

    pub fn wrote(&self, written: &ShareGroupDLQ) {
        let status = written.status.clone().unwrap_or_default();
        self.on(written, |known| known.written = Some((version_of(written), status)));
    }

    /// These actions were carried out.
    pub fn changed(&self, object: &ShareGroupDLQ, done: &[Action]) {
        let now = Some(Instant::now());
        let (topic, group): (Vec<_>, Vec<_>) = done.iter().partition(|action| action.concerns_topic());
        self.on(object, |known| {
            known.topic_changed = if topic.is_empty() { known.topic_changed } else { now };
            known.group_changed = if group.is_empty() { known.group_changed } else { now };
        });
    }

    /// What was changed so lately that brokers may still answer what was before.
    pub fn recent(&self, object: &ShareGroupDLQ) -> Recent {
        let lately = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < CHANGE_SETTLES);
        self.on(object, |known| Recent { topic: lately(known.topic_changed), group: lately(known.group_changed) })
    }

    pub fn succeeded(&self, object: &ShareGroupDLQ) {
        self.on(object, |known| known.failures = 0);
    }

    /// How long to wait after one more failure in a row.
    pub fn failed(&self, object: &ShareGroupDLQ) -> Duration {
        let failures = self.on(object, |known| {
            known.failures = known.failures.saturating_add(1);
            known.failures
        });
        spread(backoff(failures), object, failures)
    }

    pub fn forget(&self, namespace: &str, name: &str) {
        self.objects().remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// An object made anew under the same name starts without a past.
    fn on<T>(&self, object: &ShareGroupDLQ, act: impl FnOnce(&mut Remembered) -> T) -> T {
        let name = (object.namespace().unwrap_or_default(), object.name_any());
        let mut objects = self.objects();
        let known = objects.entry(name).or_default();
        if known.uid != object.uid() {
            *known = Remembered { uid: object.uid(), ..Default::default() };
        }
        act(known)
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<Name, Remembered>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One resource's versions are ordered numbers (Kubernetes API concepts, since 1.35).
fn version_of(object: &ShareGroupDLQ) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}

fn backoff(failures: u32) -> Duration {
    FIRST_BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LAST_BACKOFF)
}

/// Up to a tenth less, different for each object, so that they don't come all at once.
pub fn spread(wait: Duration, object: &ShareGroupDLQ, round: u32) -> Duration {
    let mut hasher = DefaultHasher::new();
    (object.uid(), round).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 100).unwrap_or(0);
    wait - wait * share / 1000
}

#[cfg(test)]
mod tests {
    use super::super::plan::samples;
    use super::*;

    #[test]
    fn failures_are_waited_out_longer_and_longer() {
        let waits: Vec<_> = (1..=8).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff(u32::MAX), LAST_BACKOFF);
        // Ten minutes without Kafka are at most 20 looks.
        let looks = (1..).scan(0, |waited, failures| {
            *waited += backoff(failures).as_millis() * 9 / 10;
            Some(*waited)
        });
        assert!(looks.take_while(|waited| *waited < 600_000).count() < 20);
    }

    #[test]
    fn what_was_written_counts_until_the_watch_brings_it() {
        let memory = Memory::default();
        let mut object = samples::object();
        object.metadata.resource_version = Some("7".into());
        let mut written = object.clone();
        written.metadata.resource_version = Some("10".into());
        written.status.get_or_insert_default().observed_generation = Some(5);
        memory.wrote(&written);
        assert_eq!(memory.refreshed(&object).status, written.status);
        object.metadata.resource_version = Some("11".into());
        assert_eq!(memory.refreshed(&object).status, object.status);
    }

    #[test]
    fn a_new_object_of_the_same_name_has_no_past() {
        let memory = Memory::default();
        let mut object = samples::object();
        memory.failed(&object);
        let grown = Action::GrowPartitions { topic: "dlq.orders".into(), count: 3 };
        memory.changed(&object, &[grown]);
        assert_eq!(memory.recent(&object), Recent { topic: true, group: false });
        object.metadata.uid = Some("another".into());
        assert_eq!(memory.recent(&object), Recent::default());
        assert!(memory.failed(&object) <= FIRST_BACKOFF);
    }
}
