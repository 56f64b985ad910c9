//! Writes statuses of DLQReplays: at once where the reason turns, else at most once a second.

use super::report;
use super::run::Snapshot;
use crate::api::outcome::{self, Reason};
use crate::api::{DLQReplay, DLQReplayStatus};
use crate::context::{Context, FIELD_MANAGER};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Between two writes that only tell new figures.
const PAUSE: Duration = Duration::from_secs(1);
/// After a write that failed.
const RETRY: Duration = Duration::from_millis(500);

/// Writes the status by one server-side apply, if it says anything new. The object as written, or None.
pub async fn write(
    context: &Context,
    object: &DLQReplay,
    status: &DLQReplayStatus,
) -> Result<Option<DLQReplay>, kube::Error> {
    if object.status.as_ref() == Some(status) {
        return Ok(None);
    }
    let name = object.name_any();
    // The uid keeps the status away from an object made anew under the same name.
    let patch = json!({
        "apiVersion": DLQReplay::api_version(&()),
        "kind": DLQReplay::kind(&()),
        "metadata": {"name": name, "uid": object.uid()},
        "status": status,
    });
    let api = context.namespaced::<DLQReplay>(&object.namespace().unwrap_or_default());
    api.patch_status(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&patch)).await.map(Some)
}

/// The one who writes down what a run tells.
pub struct Scribe {
    pub context: Arc<Context>,
    /// The object as it was when the run began.
    pub object: DLQReplay,
    /// The generation whose wishes the run has heard.
    pub generation: Arc<AtomicI64>,
}

impl Scribe {
    /// Writes until the run is over and its last word is written, or this process may not act any more.
    pub async fn follow(mut self, mut snapshots: watch::Receiver<Option<Snapshot>>) {
        let mut next_write = Instant::now();
        loop {
            let over = snapshots.changed().await.is_err();
            let Some(snapshot) = snapshots.borrow_and_update().clone() else { if over { return } else { continue } };
            let turned = self.reason() != Some(snapshot.reason);
            if !turned && !over && tokio::time::timeout_at(next_write, self.overtaken(&mut snapshots)).await.is_ok() {
                continue;
            }
            if !self.write_down(&snapshot).await {
                return;
            }
            next_write = Instant::now() + PAUSE;
            if over {
                return;
            }
        }
    }

    /// Returns when the run has turned to something else: then the figures at hand need not be written any more.
    async fn overtaken(&self, snapshots: &mut watch::Receiver<Option<Snapshot>>) {
        let turned = |snapshot: &Option<Snapshot>| snapshot.as_ref().map(|one| one.reason) != self.reason();
        if snapshots.wait_for(turned).await.is_err() {
            return;
        }
        snapshots.mark_changed();
    }

    fn reason(&self) -> Option<Reason> {
        self.object.status.as_ref().and_then(|status| outcome::reason_of(&status.conditions))
    }

    /// Whether it may go on. A conflict or an API server that does not answer is tried again: what was sent is in the
    /// ledger, and the status only tells of it.
    async fn write_down(&mut self, snapshot: &Snapshot) -> bool {
        while self.context.leadership.is_held() {
            let before = self.object.status.clone().unwrap_or_default();
            let generation = Some(self.generation.load(Ordering::Relaxed));
            let status = report::with_snapshot(before.clone(), snapshot, generation, Timestamp::now());
            match write(&self.context, &self.object, &status).await {
                Ok(written) => {
                    self.tell(&before, &status, snapshot).await;
                    if let Some(written) = written {
                        self.object = written;
                    }
                    return true;
                }
                // Gone, or made anew: nobody is left to tell.
                Err(kube::Error::Api(answer)) if answer.is_not_found() => return false,
                Err(kube::Error::Api(answer)) if answer.is_conflict() && !self.is_same().await => return false,
                Err(error) => {
                    self.context.metrics.failed(super::CONTROLLER, "WriteStatus");
                    tracing::warn!(%error, replay = %self.object.name_any(), "the status could not be written, trying again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        false
    }

    /// Whether the object of that name is still this one.
    async fn is_same(&self) -> bool {
        let api = self.context.namespaced::<DLQReplay>(&self.object.namespace().unwrap_or_default());
        match api.get_metadata(&self.object.name_any()).await {
            Ok(now) => now.metadata.uid == self.object.metadata.uid,
            Err(kube::Error::Api(answer)) => !answer.is_not_found(),
            Err(_) => true,
        }
    }

    /// Events for the main turns, and the figures.
    async fn tell(&self, before: &DLQReplayStatus, now: &DLQReplayStatus, snapshot: &Snapshot) {
        let (was, is) = (before.progress.clone().unwrap_or_default(), now.progress.clone().unwrap_or_default());
        let grown = |was: i64, is: i64| u64::try_from(is - was).unwrap_or(0);
        self.context.metrics.sent(grown(was.sent, is.sent));
        self.context.metrics.settled(grown(was.settled, is.settled));
        self.context.metrics.returned(grown(was.returned, is.returned));
        if outcome::reason_of(&before.conditions) != Some(snapshot.reason) {
            tell_turn(&self.context, &self.object, snapshot.reason, &snapshot.message).await;
        }
    }
}

/// An Event for a turn that a user wants to hear of: the start, pauses and trouble, and the end.
pub async fn tell_turn(context: &Context, object: &DLQReplay, reason: Reason, message: &str) {
    use crate::api::outcome::Stage;
    let of = object.object_ref(&());
    let (word, action) = (reason.to_string(), "Replay");
    match (reason, reason.stage()) {
        (Reason::Settling | Reason::Previewing | Reason::Recovering, _) => {}
        (Reason::KafkaUnreachable | Reason::DLQNotReady | Reason::WaitingForDLQ, _) | (_, Stage::Failed) => {
            context.events.warning(&of, &word, action, message).await;
        }
        _ => context.events.normal(&of, &word, action, message).await,
    }
}
