//! The end of a DLQReplay object: deleting a running one is a cancel, and a finished one goes when its time has come.

use super::controller::{Controller, ReconcileError, SOON, reason_of, was_begun};
use super::wishes;
use crate::api::outcome::Reason;
use crate::api::{DLQReplay, ShareGroupDLQ};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::controller::Action;
use serde_json::json;
use std::time::Duration;

/// A deleted DLQReplay is gone within ten seconds, whether Kafka answers or not.
const LONGEST_FAREWELL: i64 = 8;
/// Held while a replay may be running: deleting it is a cancel, and the ledger hears of it first.
const FINALIZER: &str = "redrive.dev/replay";

impl Controller {
    /// After the end: lets go of the object, and deletes it when its time has come.
    pub(super) async fn clean_up(&self, object: &DLQReplay) -> Result<Action, ReconcileError> {
        self.let_go(object).await?;
        let ended = object.status.as_ref().and_then(|status| status.completion_time.as_ref());
        match ended.and_then(|ended| until_expiry(object, &ended.0)) {
            Some(left) if left.is_zero() => self.delete(object).await,
            Some(left) => Ok(Action::requeue(left)),
            None => Ok(Action::await_change()),
        }
    }

    /// Deleting a running replay is a cancel.
    pub(super) async fn part(&self, object: &DLQReplay) -> Result<Action, ReconcileError> {
        if !is_held(object) {
            return Ok(Action::await_change());
        }
        let asked = object.metadata.deletion_timestamp.as_ref().map_or(0, |time| time.0.as_second());
        let overdue = Timestamp::now().as_second() - asked >= LONGEST_FAREWELL;
        let running = self.runs.wish(object, wishes::cancel());
        if overdue || (!running && (reason_of(object).is_some_and(Reason::is_final) || !was_begun(object))) {
            self.let_go(object).await?;
            return Ok(Action::await_change());
        }
        if !running && let Some(dlq) = self.dlq_of(object).await? {
            self.recover(object, &dlq).await?;
        }
        Ok(Action::requeue(SOON))
    }

    /// Finds out and records what an earlier owner of a deleted object had sent.
    async fn recover(&self, object: &DLQReplay, dlq: &ShareGroupDLQ) -> Result<(), ReconcileError> {
        let mut cancelled = object.clone();
        cancelled.spec.cancel = true;
        if let Some(ground) = self.ground(dlq) {
            self.start(&cancelled, dlq, &ground).await?;
        }
        Ok(())
    }

    pub(super) async fn hold(&self, object: &DLQReplay) -> Result<(), ReconcileError> {
        if is_held(object) {
            return Ok(());
        }
        self.set_finalizers(object, object.finalizers().iter().cloned().chain([FINALIZER.into()]).collect()).await
    }

    async fn let_go(&self, object: &DLQReplay) -> Result<(), ReconcileError> {
        if !is_held(object) {
            return Ok(());
        }
        let others = object.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).cloned().collect();
        self.set_finalizers(object, others).await
    }

    async fn set_finalizers(&self, object: &DLQReplay, finalizers: Vec<String>) -> Result<(), ReconcileError> {
        let api = self.context.namespaced::<DLQReplay>(&object.namespace().unwrap_or_default());
        // The resourceVersion keeps finalizers of others that came in the meantime.
        let metadata =
            json!({"finalizers": finalizers, "uid": object.uid(), "resourceVersion": object.resource_version()});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        match api.patch_metadata(&object.name_any(), &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(answer)) if answer.is_not_found() => Ok(()),
            answer => Ok(answer.map(drop)?),
        }
    }

    pub(super) async fn delete(&self, object: &DLQReplay) -> Result<Action, ReconcileError> {
        let api = self.context.namespaced::<DLQReplay>(&object.namespace().unwrap_or_default());
        let preconditions = Preconditions { uid: object.uid(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..Default::default() };
        match api.delete(&object.name_any(), &params).await {
            Err(kube::Error::Api(answer)) if answer.is_not_found() || answer.is_conflict() => {}
            answer => drop(answer?),
        }
        Ok(Action::await_change())
    }
}

/// How long the object is still to be kept, if it goes by itself.
pub(super) fn until_expiry(object: &DLQReplay, from: &Timestamp) -> Option<Duration> {
    let ttl = object.spec.ttl_seconds_after_finished?;
    let left = from.as_millisecond() + i64::from(ttl) * 1000 - Timestamp::now().as_millisecond();
    Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
}

fn is_held(object: &DLQReplay) -> bool {
    object.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}
