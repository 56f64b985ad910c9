//! Takes previews, starts replays one at a time for each dead-letter topic, passes on what users want, and cleans up.
//!
//! The running itself is a task of its own (`run`), so that a user is heard within a second whatever a replay waits for.

use super::backoff::Backoff;
use super::farewell::until_expiry;
use super::quote::{self, preview_of};
use super::report;
use super::run;
use super::runs::{Runs, Slot};
use super::scribe::{self, tell_turn};
use super::selection::Matcher;
use super::start::{self, Decision, Ground, StartError};
use super::{CONTROLLER, plan, unimplemented, wishes};
use crate::api::outcome::{self, Reason};
use crate::api::{Action as Ask, DLQReplay, DLQReplaySpec, DLQReplayStatus, Preview, ShareGroupDLQ, conditions};
use crate::context::{Context, Outcome, Shutdown};
use crate::dlq::connection;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Config, Controller as Watcher, watcher};
use kube::{Resource, ResourceExt};
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Previews and starts that are worked on at the same time.
const CONCURRENCY: u16 = 16;
/// How often a replay that waits for something outside the API server looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// For what is about to happen.
pub(super) const SOON: Duration = Duration::from_millis(500);
pub type Guarded = DeserializeGuard<DLQReplay>;

#[derive(Debug, Error)]
pub(super) enum ReconcileError {
    #[error("the API server refused or did not answer: {0}")]
    AskApiServer(#[source] Box<kube::Error>),
    #[error("the lease was lost on the way")]
    KeepLease,
    #[error("the reconcile broke down")]
    FinishReconcile,
}

impl From<kube::Error> for ReconcileError {
    fn from(error: kube::Error) -> Self {
        Self::AskApiServer(Box::new(error))
    }
}

impl ReconcileError {
    fn kind(&self) -> &'static str {
        match self {
            Self::AskApiServer(_) => "AskApiServer",
            Self::KeepLease => "KeepLease",
            Self::FinishReconcile => "FinishReconcile",
        }
    }
}

pub(super) struct Controller {
    pub context: Arc<Context>,
    stores: Vec<Store<Guarded>>,
    pub runs: Runs,
    backoff: Backoff,
}

/// Runs until `shutdown`; replays under way hand over to the next owner.
pub async fn run(context: Arc<Context>, shutdown: Shutdown) {
    let watchers: Vec<_> = context
        .watched::<Guarded>()
        .into_iter()
        .zip(context.watched::<DeserializeGuard<ShareGroupDLQ>>())
        .map(|(replays, dlqs)| {
            let watcher = Watcher::new(replays, watcher::Config::default())
                .with_config(Config::default().concurrency(CONCURRENCY));
            let store = watcher.store();
            let referring = store.clone();
            (store, watcher.watches(dlqs, watcher::Config::default(), move |dlq| refer_to(&referring, &dlq)))
        })
        .collect();
    let (stores, watchers): (Vec<_>, Vec<_>) = watchers.into_iter().unzip();
    let controller = Arc::new(Controller { context, stores, runs: Runs::default(), backoff: Backoff::default() });
    let works = watchers.into_iter().map(|watcher| {
        let counting = controller.clone();
        watcher
            .graceful_shutdown_on(shutdown.clone().requested())
            .run(reconcile, on_error, controller.clone())
            .for_each(move |end| {
                counting.count(end);
                std::future::ready(())
            })
    });
    let release = async {
        shutdown.clone().requested().await;
        controller.runs.release();
    };
    tokio::join!(futures::future::join_all(works), release);
    controller.runs.ended().await;
}

/// The DLQReplays of a ShareGroupDLQ: what becomes of it concerns them.
fn refer_to(store: &Store<Guarded>, dlq: &DeserializeGuard<ShareGroupDLQ>) -> Vec<ObjectRef<Guarded>> {
    let refers = |replay: &Guarded| {
        let same_namespace = replay.namespace() == dlq.namespace();
        same_namespace && replay.0.as_ref().is_ok_and(|replay| replay.spec.dlq_ref.name == dlq.name_any())
    };
    store.state_filter(refers).iter().map(|replay| ObjectRef::from_obj(&**replay)).collect()
}

impl Controller {
    async fn reconcile(&self, object: &DLQReplay) -> Result<Action, ReconcileError> {
        if !self.context.leadership.is_held() {
            return Err(ReconcileError::KeepLease);
        }
        if object.metadata.deletion_timestamp.is_some() {
            return self.part(object).await;
        }
        let dlq = self.dlq_of(object).await?;
        let ended = reason_of(object).is_some_and(Reason::is_final);
        if self.runs.wish(object, wishes::of(&object.spec, dlq.as_ref())) {
            // Its last word is written, its task about to end: then the object can be cleaned up.
            return Ok(if ended { Action::requeue(SOON) } else { Action::await_change() });
        }
        if ended {
            return self.clean_up(object).await;
        }
        if let Some(refusal) = self.refusal(&object.spec) {
            return self.finish(object, Reason::Blocked, &refusal).await;
        }
        if object.spec.cancel && !was_begun(object) {
            return self.finish(object, Reason::Cancelled, "cancelled before anything was sent").await;
        }
        self.advance(object, dlq.as_ref()).await
    }

    /// What of a spec can never be done, whatever else is so.
    fn refusal(&self, spec: &DLQReplaySpec) -> Option<String> {
        let ledger = &self.context.config.ledger_topic;
        let to_ledger = plan::target(spec).is_some_and(|topic| topic == ledger);
        let unreadable = || Matcher::new(spec.selection.as_ref()).err().map(|error| error.to_string());
        let forbidden =
            || to_ledger.then(|| format!("spec.target.topic: {ledger} is the ledger; choose another topic"));
        unimplemented::refusal(spec).or_else(unreadable).or_else(forbidden)
    }

    /// Preview, then replay, as far as is asked for and possible now.
    async fn advance(&self, object: &DLQReplay, dlq: Option<&ShareGroupDLQ>) -> Result<Action, ReconcileError> {
        let name = &object.spec.dlq_ref.name;
        let Some(dlq) = dlq else {
            let message = format!("ShareGroupDLQ {name} is not in this namespace; create it, or delete this DLQReplay");
            return self.wait(object, Reason::WaitingForDLQ, &message).await;
        };
        let Some(ground) = self.ground(dlq) else {
            return self
                .wait(
                    object,
                    Reason::WaitingForDLQ,
                    &format!("ShareGroupDLQ {name} has no topic yet: {}", readiness(dlq)),
                )
                .await;
        };
        match preview_of(object) {
            None => self.take_preview(object, &ground).await,
            Some(preview) if object.spec.action == Ask::Preview => self.await_replay(object, preview).await,
            Some(_) => self.start(object, dlq, &ground).await,
        }
    }

    async fn take_preview(&self, object: &DLQReplay, ground: &Ground) -> Result<Action, ReconcileError> {
        let quoted = match quote::of_other(&self.stores, object) {
            Ok(quoted) => quoted,
            Err(message) => return self.finish(object, Reason::TokenUnknown, &message).await,
        };
        let spec = quote::effective(&object.spec, quoted.as_ref());
        let earlier = quoted.as_ref().map(|quoted| &quoted.preview);
        let preview = match start::preview(&self.context, ground, &spec, earlier).await {
            Ok((_, planned)) => planned.preview,
            Err(error) => return self.tell_no_preview(object, &error).await,
        };
        let (reason, message) = match preview.messages {
            0 => (Reason::NothingSelected, start::NOTHING.to_string()),
            _ if object.spec.action == Ask::Preview => (Reason::AwaitingReplay, how_to_start(object, &preview)),
            _ => (Reason::Previewing, preview.summary.clone()),
        };
        let mut status = object.status.clone().unwrap_or_default();
        let (generation, time) = (object.metadata.generation, crate::api::Time(report::whole_second(Timestamp::now())));
        conditions::set(
            &mut status.conditions,
            conditions::PREVIEWED,
            true.into(),
            "Previewed",
            &preview.summary,
            generation,
            &time,
        );
        let selected = preview.messages;
        status.progress = Some(crate::api::Progress { selected, remaining: selected, ..Default::default() });
        status.preview = Some(preview);
        self.write(object, status, reason, &message).await?;
        self.backoff.succeeded(&object.uid().unwrap_or_default());
        Ok(if reason == Reason::Previewing { Action::requeue(Duration::ZERO) } else { Action::await_change() })
    }

    async fn tell_no_preview(&self, object: &DLQReplay, error: &StartError) -> Result<Action, ReconcileError> {
        let reason = if error.is_unreachable() { Reason::KafkaUnreachable } else { Reason::DLQNotReady };
        let message = format!("the preview can't be taken: {error}. It is tried again by itself");
        self.context.metrics.failed(CONTROLLER, &reason.to_string());
        let mut status = object.status.clone().unwrap_or_default();
        let (generation, time) = (object.metadata.generation, crate::api::Time(report::whole_second(Timestamp::now())));
        conditions::set(
            &mut status.conditions,
            conditions::PREVIEWED,
            false.into(),
            reason,
            &message,
            generation,
            &time,
        );
        self.write(object, status, reason, &message).await?;
        Ok(Action::requeue(self.backoff.failed(&object.uid().unwrap_or_default())))
    }

    async fn await_replay(&self, object: &DLQReplay, preview: &Preview) -> Result<Action, ReconcileError> {
        let message = how_to_start(object, preview);
        self.write(object, object.status.clone().unwrap_or_default(), Reason::AwaitingReplay, &message).await?;
        Ok(match until_expiry(object, &preview.taken_at.0) {
            Some(left) if left.is_zero() => return self.delete(object).await,
            Some(left) => Action::requeue(left),
            None => Action::await_change(),
        })
    }

    pub(super) async fn start(
        &self,
        object: &DLQReplay,
        dlq: &ShareGroupDLQ,
        ground: &Ground,
    ) -> Result<Action, ReconcileError> {
        if self.runs.is_stopping() {
            return Ok(Action::await_change());
        }
        let quoted = match quote::quoted(&self.stores, object) {
            Ok(quoted) => quoted,
            Err(message) => return self.finish(object, Reason::TokenUnknown, &message).await,
        };
        let begun = was_begun(object);
        if object.spec.suspend && !begun {
            let message = "suspended before anything was sent. Go on with spec.suspend: false";
            return self.wait(object, Reason::Suspended, message).await;
        }
        let status = dlq.status.clone().unwrap_or_default();
        if !conditions::is_true(&status.conditions, conditions::READY) && !begun {
            let message = format!("ShareGroupDLQ {} is not Ready: {}", dlq.name_any(), readiness(dlq));
            return self.wait(object, Reason::WaitingForDLQ, &message).await;
        }
        let cluster = status.broker.and_then(|broker| broker.cluster_id).unwrap_or_default();
        let slot = match self.runs.claim(object, &cluster, &ground.dead_letter_topic, &ground.group) {
            Ok(slot) => slot,
            Err(other) => {
                let message = format!(
                    "DLQReplay {other} of the same group or dead-letter topic is under way; this one follows it"
                );
                return self.wait(object, Reason::WaitingForReplay, &message).await;
            }
        };
        match start::decide(&self.context, ground, object, &quoted).await {
            Ok(Decision::Run(job)) => self.carry_out(object, dlq, slot, *job).await,
            Ok(Decision::End(reason, message)) => self.finish(object, reason, &message).await,
            Err(error) => {
                let reason = if error.is_unreachable() { Reason::KafkaUnreachable } else { Reason::DLQNotReady };
                self.context.metrics.failed(CONTROLLER, &reason.to_string());
                let message = format!("the replay can't begin yet: {error}. It is tried again by itself");
                self.wait(object, reason, &message).await?;
                Ok(Action::requeue(self.backoff.failed(&object.uid().unwrap_or_default())))
            }
        }
    }

    async fn carry_out(
        &self,
        object: &DLQReplay,
        dlq: &ShareGroupDLQ,
        slot: Slot,
        job: run::Job,
    ) -> Result<Action, ReconcileError> {
        self.backoff.succeeded(&object.uid().unwrap_or_default());
        self.hold(object).await?;
        let mut status = object.status.clone().unwrap_or_default();
        let since = crate::api::Time(report::whole_second(Timestamp::now()));
        status.owner = Some(crate::api::Owner { identity: self.context.leadership.identity().into(), since });
        let (reason, message) =
            if was_begun(object) { (Reason::Recovering, run::RECOVERING) } else { (Reason::Sending, run::BEGINNING) };
        let object = self.write(object, status, reason, message).await?;
        let wishes = wishes::of(&object.spec, Some(dlq));
        self.runs.start(self.context.clone(), object, slot, job, wishes);
        Ok(Action::await_change())
    }

    pub(super) fn ground(&self, dlq: &ShareGroupDLQ) -> Option<Ground> {
        let settings = connection::settings(&dlq.spec.kafka)?;
        let status = dlq.status.as_ref()?;
        Some(Ground {
            admin: self.context.clusters.admin(&settings),
            settings,
            dead_letter_topic: status.topic.as_ref()?.name.clone(),
            group: dlq.spec.group_id.clone(),
            remembered_ledger: status.broker.as_ref().and_then(|broker| broker.ledger_topic_id.clone()),
        })
    }

    pub(super) async fn dlq_of(&self, object: &DLQReplay) -> Result<Option<ShareGroupDLQ>, ReconcileError> {
        let api = self.context.namespaced::<ShareGroupDLQ>(&object.namespace().unwrap_or_default());
        Ok(api.get_opt(&object.spec.dlq_ref.name).await?)
    }

    async fn wait(&self, object: &DLQReplay, reason: Reason, message: &str) -> Result<Action, ReconcileError> {
        self.write(object, object.status.clone().unwrap_or_default(), reason, message).await?;
        Ok(if reason == Reason::Suspended { Action::await_change() } else { Action::requeue(LOOK_AGAIN) })
    }

    async fn finish(&self, object: &DLQReplay, reason: Reason, message: &str) -> Result<Action, ReconcileError> {
        let object = self.write(object, object.status.clone().unwrap_or_default(), reason, message).await?;
        self.clean_up(&object).await
    }

    async fn write(
        &self,
        object: &DLQReplay,
        mut status: DLQReplayStatus,
        reason: Reason,
        message: &str,
    ) -> Result<DLQReplay, ReconcileError> {
        report::tell(&mut status, reason, message, object.metadata.generation, Timestamp::now());
        let Some(written) = scribe::write(&self.context, object, &status).await? else { return Ok(object.clone()) };
        if reason_of(object) != Some(reason) {
            tell_turn(&self.context, object, reason, message).await;
        }
        self.context.metrics.reconciled(CONTROLLER, Outcome::Changed);
        Ok(written)
    }

    async fn tell_broken(&self, broken: &Guarded, error: &InvalidObject) {
        let note = format!(
            "this object can't be read and is left alone: {error}. Mend it: kubectl edit dlqreplay {}",
            broken.name_any()
        );
        tracing::error!(name = %broken.name_any(), namespace = broken.namespace(), "{note}");
        self.context.metrics.failed(CONTROLLER, "InvalidObject");
        self.context.events.warning(&broken.object_ref(&()), "InvalidObject", "Parse", note).await;
    }

    fn count(&self, end: Result<(ObjectRef<Guarded>, Action), controller::Error<ReconcileError, watcher::Error>>) {
        match end {
            Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {}
            Err(controller::Error::ReconcilerFailed(error, object)) => {
                tracing::warn!(%error, %object, "reconcile failed, trying again");
                self.context.metrics.failed(CONTROLLER, error.kind());
                self.context.metrics.reconciled(CONTROLLER, Outcome::Failed);
            }
            Err(error) => {
                tracing::warn!(%error, "watching DLQReplays failed, trying again");
                self.context.metrics.failed(CONTROLLER, "Watch");
            }
        }
    }
}

pub(super) fn reason_of(object: &DLQReplay) -> Option<Reason> {
    object.status.as_ref().and_then(|status| outcome::reason_of(&status.conditions))
}

/// Whether an operator process has taken the replay on. Whether it sent anything is in the ledger alone.
pub(super) fn was_begun(object: &DLQReplay) -> bool {
    object.status.as_ref().is_some_and(|status| status.owner.is_some())
}

fn readiness(dlq: &ShareGroupDLQ) -> String {
    let conditions = dlq.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    match conditions::find(conditions, conditions::READY) {
        Some(ready) => format!("{}: {}", ready.reason, ready.message),
        None => "it was not looked at yet".into(),
    }
}

fn how_to_start(object: &DLQReplay, preview: &Preview) -> String {
    let patch = json!({"spec": {"action": "Replay", "previewToken": preview.token}});
    format!(
        "{}. Replay exactly this: kubectl -n {} patch dlqreplay {} --type merge -p '{patch}'",
        preview.summary,
        object.namespace().unwrap_or_default(),
        object.name_any()
    )
}

/// A breakdown in one object's reconcile is that object's failure, not the others'.
fn reconcile(object: Arc<Guarded>, controller: Arc<Controller>) -> BoxFuture<'static, Result<Action, ReconcileError>> {
    let work = async move {
        match &object.0 {
            Ok(parsed) => controller.reconcile(parsed).await,
            Err(error) => {
                controller.tell_broken(&object, error).await;
                Ok(Action::await_change())
            }
        }
    };
    AssertUnwindSafe(work).catch_unwind().map(|end| end.unwrap_or(Err(ReconcileError::FinishReconcile))).boxed()
}

fn on_error(object: Arc<Guarded>, _: &ReconcileError, controller: Arc<Controller>) -> Action {
    Action::requeue(controller.backoff.failed(&object.uid().unwrap_or_default()))
}
