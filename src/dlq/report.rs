//! Tells what was found and done: the status, written only if it says anything new, and an Event when Ready turns.

use super::CONTROLLER;
use super::apply::Applied;
use super::plan::{Finding, Next, Plan, Told, Verdict, is_pending};
use crate::api::{ShareGroupDLQ, ShareGroupDLQStatus, Time, TopicOrigin, TopicStatus, conditions};
use crate::context::{Context, FIELD_MANAGER};
use kube::api::{Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde_json::json;

/// Writes the status where it differs, by one server-side apply. Returns the object as written.
pub async fn report(
    context: &Context,
    object: &ShareGroupDLQ,
    plan: &Plan,
    applied: &Applied,
) -> Result<Option<ShareGroupDLQ>, kube::Error> {
    let verdict = verdict(plan, applied);
    count(context, object, plan, &verdict);
    let status = status(object, plan, applied, &verdict, &Time(jiff::Timestamp::now()));
    let written = match object.status.as_ref() == Some(&status) {
        true => None,
        false => Some(write(context, object, &status).await?),
    };
    tell(context, object, &verdict.ready(), plan.next == Next::BackOff).await;
    Ok(written)
}

fn verdict(plan: &Plan, applied: &Applied) -> Verdict {
    match &applied.failure {
        Some((action, error)) => plan.verdict.clone().after_failure(action, error),
        None => plan.verdict.clone(),
    }
}

/// The status as it is to be. What differs from the one before only in times can't come about: times of conditions
/// move with their status alone.
fn status(
    object: &ShareGroupDLQ,
    plan: &Plan,
    applied: &Applied,
    verdict: &Verdict,
    now: &Time,
) -> ShareGroupDLQStatus {
    let mut status = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation;
    status.observed_generation = generation;
    for told in verdict.conditions() {
        conditions::set(&mut status.conditions, told.type_, told.status, told.reason, &told.message, generation, now);
    }
    if let Some(broker) = &plan.broker {
        status.broker = Some(broker.clone());
    }
    status.topic = topic(status.topic, plan, applied);
    status.backlog = updated(status.backlog, &plan.backlog);
    status
}

fn topic(before: Option<TopicStatus>, plan: &Plan, applied: &Applied) -> Option<TopicStatus> {
    if let Some((name, id)) = plan.created_topic().zip(applied.created) {
        let (name, id) = (name.to_owned(), Some(id.to_string()));
        return Some(TopicStatus { name, id, origin: Some(TopicOrigin::Created), ..Default::default() });
    }
    match &applied.failure {
        // Whether the topic was changed is not known.
        Some((action, _)) if action.concerns_topic() => before,
        _ => updated(before, &plan.topic),
    }
}

fn updated<T: Clone>(before: Option<T>, told: &Told<T>) -> Option<T> {
    match told {
        Told::AsBefore => before,
        Told::Gone => None,
        Told::Now(now) => Some(now.clone()),
    }
}

async fn write(
    context: &Context,
    object: &ShareGroupDLQ,
    status: &ShareGroupDLQStatus,
) -> Result<ShareGroupDLQ, kube::Error> {
    let name = object.name_any();
    // The uid keeps the status away from an object made anew under the same name.
    let patch = json!({
        "apiVersion": ShareGroupDLQ::api_version(&()),
        "kind": ShareGroupDLQ::kind(&()),
        "metadata": {"name": name, "uid": object.uid()},
        "status": status,
    });
    let api = context.namespaced::<ShareGroupDLQ>(&object.namespace().unwrap_or_default());
    api.patch_status(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&patch)).await
}

fn count(context: &Context, object: &ShareGroupDLQ, plan: &Plan, verdict: &Verdict) {
    let ready = verdict.ready();
    if !ready.is_true() && !is_pending(ready.reason) {
        context.metrics.failed(CONTROLLER, &ready.reason.to_string());
    }
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    match &plan.backlog {
        Told::Now(backlog) => context.metrics.backlog(&namespace, &name, Some(backlog.messages)),
        Told::Gone => context.metrics.backlog(&namespace, &name, None),
        Told::AsBefore => {}
    }
}

/// An Event when Ready turns, and again for each failed look while Kafka is away: those count up one series.
async fn tell(context: &Context, object: &ShareGroupDLQ, ready: &Finding, in_trouble: bool) {
    let before = object.status.as_ref().and_then(|status| conditions::find(&status.conditions, conditions::READY));
    let reason = ready.reason.to_string();
    let turned = before.is_none_or(|before| before.status != ready.status.as_str() || before.reason != reason);
    if is_pending(ready.reason) || !(turned || in_trouble) {
        return;
    }
    let object = object.object_ref(&());
    if ready.is_true() {
        context.events.normal(&object, &reason, "Reconcile", ready.message.as_str()).await;
    } else {
        context.events.warning(&object, &reason, "Reconcile", ready.message.as_str()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{plan, samples};
    use super::*;
    use jiff::{SignedDuration, Timestamp};

    fn at(second: i64) -> Time {
        Time(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second))
    }

    fn told(object: &ShareGroupDLQ, applied: &Applied, second: i64) -> ShareGroupDLQStatus {
        let plan = plan(object, &samples::in_order());
        status(object, &plan, applied, &verdict(&plan, applied), &at(second))
    }

    #[test]
    fn an_idle_object_has_the_same_status_later() -> Result<(), serde_json::Error> {
        let mut object = samples::object();
        let written = serde_json::to_value(told(&object, &Applied::default(), 1))?;
        object.status = Some(serde_json::from_value(written)?);
        assert_eq!(Some(told(&object, &Applied::default(), 1000)), object.status);
        assert!(conditions::is_true(&object.status.unwrap_or_default().conditions, conditions::READY));
        Ok(())
    }

    #[test]
    fn a_created_topic_is_known_by_its_id() {
        let (object, observed) = (samples::object(), samples::without_topic());
        let plan = plan(&object, &observed);
        let applied = Applied { created: Some(samples::TOPIC_ID), done: 1, ..Default::default() };
        let status = status(&object, &plan, &applied, &verdict(&plan, &applied), &at(1));
        let topic = status.topic.unwrap_or_default();
        assert_eq!((topic.name.as_str(), topic.origin), ("dlq.orders", Some(TopicOrigin::Created)));
        assert_eq!(topic.id, Some(samples::TOPIC_ID.to_string()));
    }
}
