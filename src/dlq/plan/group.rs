//! Whether the group's configs are those of the spec, and what to do so that they are.

use super::topic::was_in_order;
use super::values::{changes, listed};
use super::{Action, Finding, Hold, Reason};
use crate::api::{ShareGroupDLQ, conditions};
use crate::dlq::config;
use crate::dlq::observe::{Observed, Seen};
use crate::kafka::admin::ConfigChange;
use crate::kafka::share_groups::GroupKind;

/// The finding on the group once the actions beside it are carried out.
pub fn judge(
    object: &ShareGroupDLQ,
    observed: &Observed,
    seen: &Seen,
    topic: &Finding,
    hold: Option<&Hold>,
) -> (Finding, Vec<Action>) {
    let group = &object.spec.group_id;
    if let Some(kind) = seen.cluster.groups.get(group).filter(|kind| **kind != GroupKind::Share) {
        return (other_kind(group, kind), vec![]);
    }
    let Ok(configs) = &seen.group_configs else {
        return (unreadable(group), vec![]);
    };
    let differing = changes(configs, wanted(object, &seen.topic_name));
    if differing.is_empty() {
        return (enforced(object), vec![]);
    }
    if let Some(obstacle) = held(&differing, topic, hold) {
        return (obstacle, vec![]);
    }
    if observed.recent.group {
        return (enforced(object), vec![]);
    }
    let drift = was_in_order(object, conditions::GROUP_CONFIGURED);
    let finding = if drift { corrected(group, &differing) } else { enforced(object) };
    (finding, vec![Action::AlterGroup { group: group.clone(), changes: differing, drift }])
}

/// Names that are not the spec's to set are left out: they would send dead letters elsewhere.
fn wanted<'a>(object: &'a ShareGroupDLQ, topic: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let copy = if object.spec.copy_records { "true" } else { "false" };
    let own = [(config::TOPIC_NAME, topic), (config::COPY, copy)];
    let others = object.spec.group_config.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    others.filter(|(name, _)| !name.starts_with("errors.deadletterqueue.")).chain(own)
}

fn other_kind(group: &str, kind: &GroupKind) -> Finding {
    let message = format!(
        "{group} is a group of kind {kind:?}, not a share group: it has no dead letters. Name a share group in a new \
         ShareGroupDLQ, or delete that group: kafka-groups.sh --bootstrap-server ... --list"
    );
    Finding::stuck(Reason::NotAShareGroup, message)
}

fn unreadable(group: &str) -> Finding {
    let message = format!(
        "the operator may not read the configs of group {group}. Grant it DescribeConfigs and AlterConfigs on the group"
    );
    Finding::stuck(Reason::NotAuthorized, message)
}

/// A correction stays told until the spec changes: the Event may be gone by the time somebody asks.
fn enforced(object: &ShareGroupDLQ) -> Finding {
    let status = object.status.as_ref();
    let before = status.and_then(|status| conditions::find(&status.conditions, conditions::GROUP_CONFIGURED));
    match before
        .filter(|before| before.reason == "DriftCorrected" && was_in_order(object, conditions::GROUP_CONFIGURED))
    {
        Some(before) => Finding::good(Reason::DriftCorrected, before.message.clone()),
        None => Finding::good(Reason::Enforced, "the group's configs are as declared"),
    }
}

fn corrected(group: &str, differing: &[ConfigChange]) -> Finding {
    Finding::good(
        Reason::DriftCorrected,
        format!("configs of group {group} were changed by others and put back: {}", listed(differing)),
    )
}

fn held(differing: &[ConfigChange], topic: &Finding, hold: Option<&Hold>) -> Option<Finding> {
    match hold {
        Some(Hold::Rival(winner)) => {
            let message = format!("the group's configs are left to {winner}. Delete one of the two");
            Some(Finding::stuck(Reason::ResourceConflict, message))
        }
        Some(Hold::Suspended) => {
            let message = format!("to be set once spec.suspend is false: {}", listed(differing));
            Some(Finding::stuck(Reason::Suspended, message))
        }
        None if !topic.is_true() => {
            let message = format!("to be set once the topic is ready: {}", listed(differing));
            Some(Finding { outlook: topic.outlook, ..Finding::waiting(Reason::WaitingForTopic, message) })
        }
        None => None,
    }
}
