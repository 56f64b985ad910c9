//! Runs the four steps for every ShareGroupDLQ: at a change of its spec, and at the latest after the resync time.

use super::apply::{self, Applied};
use super::brokers::Facts;
use super::memory::{Memory, spread};
use super::observe::{self, Observed};
use super::plan::{self, Next, Plan};
use super::{CONTROLLER, report};
use crate::api::ShareGroupDLQ;
use crate::context::{Context, Outcome, Shutdown};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::controller::{self, Action, ReconcileRequest};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{Config, Predicate, WatchStreamExt, applier, predicates};
use kube::{Api, Resource, ResourceExt};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How many objects are worked on at the same time.
const CONCURRENCY: u16 = 32;

/// After a change of Kafka that has to be seen before the next step.
const SOON: Duration = Duration::from_millis(300);

/// How long the API server may take for a status.
const PATIENCE: Duration = Duration::from_secs(10);

/// An object as the watch brings it: one that does not parse is an item like any other.
type Guarded = DeserializeGuard<ShareGroupDLQ>;

#[derive(Debug, Error)]
enum ReconcileError {
    #[error("the status could not be written: {0}")]
    WriteStatus(#[source] Box<kube::Error>),
    #[error("the API server did not answer in time")]
    AwaitAnswer,
    #[error("the lease was lost on the way")]
    KeepLease,
    #[error("the reconcile broke down")]
    FinishReconcile,
}

impl ReconcileError {
    fn kind(&self) -> &'static str {
        match self {
            Self::WriteStatus(_) => "WriteStatus",
            Self::AwaitAnswer => "AwaitAnswer",
            Self::KeepLease => "KeepLease",
            Self::FinishReconcile => "FinishReconcile",
        }
    }
}

/// The objects of one namespace, or of all.
struct Watched {
    store: Store<Guarded>,
    wake: mpsc::UnboundedSender<ReconcileRequest<Guarded>>,
}

struct Controller {
    context: Arc<Context>,
    facts: Facts,
    memory: Memory,
    watched: Vec<Watched>,
}

/// Runs until `shutdown`, then finishes what is in hand.
pub async fn run(context: Arc<Context>, shutdown: Shutdown) {
    let (mut watched, mut sources) = (vec![], vec![]);
    for api in context.watched::<Guarded>() {
        let (store, writer) = reflector::store();
        let (wake, woken) = mpsc::unbounded_channel();
        watched.push(Watched { store, wake });
        sources.push((api, writer, woken));
    }
    let (facts, memory) = (Facts::default(), Memory::default());
    let controller = Arc::new(Controller { context, facts, memory, watched });
    let works = sources
        .into_iter()
        .enumerate()
        .map(|(place, (api, writer, woken))| controller.clone().work(place, api, writer, woken, shutdown.clone()));
    futures::future::join_all(works).await;
}

impl Controller {
    /// Watches one `Api` and reconciles its objects.
    async fn work(
        self: Arc<Self>,
        place: usize,
        api: Api<Guarded>,
        writer: reflector::store::Writer<Guarded>,
        woken: mpsc::UnboundedReceiver<ReconcileRequest<Guarded>>,
        shutdown: Shutdown,
    ) {
        let store = self.watched[place].store.clone();
        let tapped = self.clone();
        let changed = watcher(api, watcher::Config::default())
            .default_backoff()
            .modify(|object| object.managed_fields_mut().clear())
            .reflect(writer)
            .inspect_ok(move |event| tapped.heed(place, event))
            .applied_objects()
            // Our own status writes are no reason to look again.
            .predicate_filter(predicates::generation.combine(predicates::annotations), Default::default())
            .map_ok(|object| ReconcileRequest::from(ObjectRef::from_obj(&object)));
        let woken = stream::unfold(woken, |mut woken| async { woken.recv().await.map(|request| (Ok(request), woken)) });
        let queue = stream::select(changed, woken).take_until(shutdown.requested());
        let config = Config::default().concurrency(CONCURRENCY);
        applier(reconcile, on_error, self.clone(), store, queue, config)
            .for_each(|end| {
                self.count(end);
                std::future::ready(())
            })
            .await;
    }

    /// A deleted object hands over to those that waited for it.
    fn heed(&self, place: usize, event: &Event<Guarded>) {
        let Event::Delete(gone) = event else { return };
        self.wake(place, ObjectRef::from_obj(gone));
        let Ok(gone) = &gone.0 else { return };
        for (place, watched) in self.watched.iter().enumerate() {
            let waits = |other: &Guarded| other.0.as_ref().is_ok_and(|other| other.spec.group_id == gone.spec.group_id);
            for other in watched.store.state_filter(waits) {
                self.wake(place, ObjectRef::from_obj(&*other));
            }
        }
    }

    fn wake(&self, place: usize, object: ObjectRef<Guarded>) {
        // A closed channel means that the work there has ended: nothing is left to wake.
        let _ = self.watched[place].wake.send(object.into());
    }

    async fn reconcile(&self, object: &ShareGroupDLQ) -> Result<Action, ReconcileError> {
        if object.meta().deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        let object = self.memory.refreshed(object);
        let observed = self.observe(&object).await;
        let plan = plan::plan(&object, &observed);
        let applied = self.apply(&object, &plan).await?;
        let written = self.report(&object, &plan, &applied).await?;
        self.context.metrics.reconciled(CONTROLLER, outcome(&plan, &applied, written));
        Ok(Action::requeue(self.pause(&object, &plan, &applied)))
    }

    async fn observe(&self, object: &ShareGroupDLQ) -> Observed {
        let held: Vec<_> = self.watched.iter().flat_map(|watched| watched.store.state()).collect();
        let others: Vec<_> = held.iter().filter_map(|other| other.0.as_ref().ok()).collect();
        observe::observe(&self.context, &self.facts, object, &others, self.memory.recent(object)).await
    }

    async fn apply(&self, object: &ShareGroupDLQ, plan: &Plan) -> Result<Applied, ReconcileError> {
        let applied = apply::apply(&self.context, object, plan).await;
        self.memory.changed(object, &plan.actions[..applied.done]);
        if applied.stopped || !self.context.leadership.is_held() {
            return Err(ReconcileError::KeepLease);
        }
        Ok(applied)
    }

    /// Whether the status was written.
    async fn report(&self, object: &ShareGroupDLQ, plan: &Plan, applied: &Applied) -> Result<bool, ReconcileError> {
        match timeout(PATIENCE, report::report(&self.context, object, plan, applied)).await {
            Ok(Ok(Some(written))) => {
                self.memory.wrote(&written);
                Ok(true)
            }
            Ok(Ok(None)) => Ok(false),
            // Deleted, or made anew, in the meantime: the watch will tell.
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() || status.is_conflict() => Ok(false),
            Ok(Err(error)) => Err(ReconcileError::WriteStatus(Box::new(error))),
            Err(_) => Err(ReconcileError::AwaitAnswer),
        }
    }

    fn pause(&self, object: &ShareGroupDLQ, plan: &Plan, applied: &Applied) -> Duration {
        if applied.failure.is_some() || plan.next == Next::BackOff {
            return self.memory.failed(object);
        }
        self.memory.succeeded(object);
        match plan.next {
            Next::Soon => SOON,
            _ => spread(self.context.config.resync(), object, 0),
        }
    }

    /// Told once per change of the object: only another change can mend it.
    async fn tell_broken(&self, broken: &DeserializeGuard<ShareGroupDLQ>, error: &InvalidObject) {
        let note = format!(
            "this object can't be read and is left alone: {error}. Mend it: kubectl edit sharegroupdlq {}",
            broken.name_any()
        );
        tracing::error!(name = %broken.name_any(), namespace = broken.namespace(), "{note}");
        self.context.metrics.failed(CONTROLLER, "InvalidObject");
        self.context.events.warning(&broken.object_ref(&()), "InvalidObject", "Parse", note).await;
    }

    fn count(&self, end: Result<(ObjectRef<Guarded>, Action), controller::Error<ReconcileError, watcher::Error>>) {
        match end {
            Ok(_) => {}
            Err(controller::Error::ObjectNotFound(gone)) => {
                let namespace = gone.namespace.clone().unwrap_or_default();
                self.memory.forget(&namespace, &gone.name);
                self.context.metrics.backlog(&namespace, &gone.name, None);
            }
            Err(controller::Error::ReconcilerFailed(error, object)) => {
                tracing::warn!(%error, %object, "reconcile failed, trying again");
                self.context.metrics.failed(CONTROLLER, error.kind());
                self.context.metrics.reconciled(CONTROLLER, Outcome::Failed);
            }
            Err(error) => {
                tracing::warn!(%error, "watching ShareGroupDLQs failed, trying again");
                self.context.metrics.failed(CONTROLLER, "Watch");
            }
        }
    }
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
    match &object.0 {
        Ok(object) => Action::requeue(controller.memory.failed(object)),
        Err(_) => Action::await_change(),
    }
}

fn outcome(plan: &Plan, applied: &Applied, written: bool) -> Outcome {
    if applied.failure.is_some() || plan.next == Next::BackOff {
        return Outcome::Failed;
    }
    if written || applied.done > 0 { Outcome::Changed } else { Outcome::Unchanged }
}
