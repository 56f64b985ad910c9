//! Every rule of the controller: from the object and what was observed to what is to be done and what is to be told.
//! No client, no clock, no `async`.
//!
//! The order of safety: a group is pointed to a topic only once the topic was *seen* to accept its dead letters. So a
//! topic that is changed is looked at again, and the group's turn comes on a later pass.

mod findings;
mod group;
#[cfg(test)]
pub mod samples;
#[cfg(test)]
mod tests;
mod topic;
mod values;
mod warnings;

pub use crate::api::DlqReason as Reason;
pub use findings::{Finding, Verdict, Warning, is_pending};
pub use values::listed;

use super::observe::{KafkaSeen, Letters, Observed, Seen};
use super::peers::Peer;
use super::{SHARE_VERSION, naming, unimplemented};
use crate::api::{ACCEPT_CLUSTER, ACCEPT_LEDGER, Backlog, BrokerStatus, ShareGroupDLQ, Time, TopicStatus};
use crate::kafka::admin::{ConfigChange, NewTopic, TopicLookup};
use kube::ResourceExt;

/// One change of Kafka; safe to repeat.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    CreateTopic(NewTopic),
    GrowPartitions { topic: String, count: i32 },
    AlterTopic { topic: String, changes: Vec<ConfigChange>, drift: bool },
    AlterGroup { group: String, changes: Vec<ConfigChange>, drift: bool },
}

impl Action {
    pub fn concerns_topic(&self) -> bool {
        !matches!(self, Self::AlterGroup { .. })
    }
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A change is on its way.
    Soon,
    /// Kafka is in trouble: later and later.
    BackOff,
    /// All is done that can be done now.
    Resync,
}

/// What is to be done and told.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub actions: Vec<Action>,
    pub verdict: Verdict,
    /// Parts of the status; `None`: nothing new is known, what was told before stays.
    pub broker: Option<BrokerStatus>,
    pub topic: Told<TopicStatus>,
    pub backlog: Told<Backlog>,
    pub next: Next,
}

impl Plan {
    /// The name of the topic it creates.
    pub fn created_topic(&self) -> Option<&str> {
        self.actions.iter().find_map(|action| match action {
            Action::CreateTopic(new) => Some(new.name.as_str()),
            _ => None,
        })
    }
}

/// A part of the status that may also have ceased to exist.
#[derive(Clone, Debug, PartialEq)]
pub enum Told<T> {
    AsBefore,
    Gone,
    Now(T),
}

/// Why nothing may be changed for the object at present.
#[derive(Clone, Debug, PartialEq)]
pub enum Hold {
    Suspended,
    Rival(String),
}

/// Makes the plan for one object.
pub fn plan(object: &ShareGroupDLQ, observed: &Observed) -> Plan {
    if let Some(refusal) = unimplemented::refusal(&object.spec) {
        return untouched(object, Finding::stuck(Reason::NotImplemented, refusal), Next::Resync);
    }
    match &observed.kafka {
        KafkaSeen::NotAsked => untouched(object, nowhere(), Next::Resync),
        KafkaSeen::Trouble(error) => untouched(object, Finding::trouble(error), Next::BackOff),
        KafkaSeen::Seen(seen) => with_kafka(object, observed, seen),
    }
}

/// A plan that changes nothing because Kafka can't be judged or must not be touched.
fn untouched(object: &ShareGroupDLQ, finding: Finding, next: Next) -> Plan {
    let suspended = object.spec.suspend;
    let verdict = Verdict::without_kafka(finding, suspended);
    Plan { actions: vec![], verdict, broker: None, topic: Told::AsBefore, backlog: Told::AsBefore, next }
}

fn nowhere() -> Finding {
    Finding::stuck(Reason::NotImplemented, "spec.kafka names no cluster: set spec.kafka.bootstrapServers")
}

fn with_kafka(object: &ShareGroupDLQ, observed: &Observed, seen: &Seen) -> Plan {
    if let Some(changed) = other_cluster(object, seen) {
        return untouched(object, changed, Next::Resync);
    }
    let broker = Some(broker_status(object, observed, seen));
    let supported = supported(seen);
    if !supported.is_true() {
        let plan = untouched(object, supported, Next::Resync);
        return Plan { broker, ..plan };
    }
    let hold = hold(object, observed);
    let (topic, mut actions) = topic::judge(object, observed, seen);
    let (group, group_actions) = group::judge(object, observed, seen, &topic, hold.as_ref());
    actions.extend(group_actions);
    if hold.is_some() {
        actions.clear();
    }
    let pending = is_pending(topic.reason);
    let topic_finding = if actions.is_empty() && pending { topic::held(topic, hold.as_ref()) } else { topic };
    let next = if hold.is_none() && pending { Next::Soon } else { Next::Resync };
    let verdict = Verdict {
        supported,
        topic: topic_finding,
        group,
        conflict: hold.as_ref().and_then(conflict),
        warnings: warnings::of(object, observed, seen),
        suspended: object.spec.suspend,
        summary: format!("dead letters of {} go to {}", object.spec.group_id, seen.topic_name),
    };
    let changes_topic = actions.iter().any(Action::concerns_topic);
    let (topic, backlog) = (topic::status(object, seen, changes_topic), backlog(seen));
    Plan { actions, verdict, broker, topic, backlog, next }
}

fn supported(seen: &Seen) -> Finding {
    let level = seen.cluster.share_version;
    if level >= SHARE_VERSION {
        return Finding::good(Reason::Supported, format!("share.version is {level}, every broker answers"));
    }
    Finding::stuck(
        Reason::ShareVersionTooLow,
        format!(
            "share.version is {level}: brokers drop the dead letters of every group below {SHARE_VERSION}. \
             Raise it: kafka-features.sh --bootstrap-server ... upgrade --feature share.version={SHARE_VERSION}"
        ),
    )
}

/// Another cluster behind the same address is not touched before somebody says that it is meant.
fn other_cluster(object: &ShareGroupDLQ, seen: &Seen) -> Option<Finding> {
    let known = object.status.as_ref()?.broker.as_ref()?.cluster_id.as_ref()?;
    let id = &seen.cluster.id;
    if known == id || object.annotations().get(ACCEPT_CLUSTER) == Some(id) {
        return None;
    }
    let (name, namespace) = (object.name_any(), object.namespace().unwrap_or_default());
    Some(Finding::stuck(
        Reason::ClusterChanged,
        format!(
            "the Kafka cluster is {id}, it was {known}: nothing is changed there. If that is meant: \
             kubectl annotate sharegroupdlq {name} -n {namespace} --overwrite {ACCEPT_CLUSTER}={id}"
        ),
    ))
}

fn hold(object: &ShareGroupDLQ, observed: &Observed) -> Option<Hold> {
    let winner = observed.peers.iter().find_map(|peer| match peer {
        Peer::Rival { name, wins: true } => Some(Hold::Rival(name.clone())),
        _ => None,
    });
    winner.or(object.spec.suspend.then_some(Hold::Suspended))
}

fn conflict(hold: &Hold) -> Option<Finding> {
    let Hold::Rival(winner) = hold else { return None };
    let message = format!(
        "{winner} is older and has the same group of the same Kafka cluster, so nothing is changed for this one. \
         Delete one of the two"
    );
    Some(Finding::stuck(Reason::ResourceConflict, message))
}

fn broker_status(object: &ShareGroupDLQ, observed: &Observed, seen: &Seen) -> BrokerStatus {
    let cluster = &seen.cluster;
    let first = cluster.brokers.values().next();
    BrokerStatus {
        cluster_id: Some(cluster.id.clone()),
        share_version: Some(cluster.share_version.into()),
        topic_name_prefix: first.map(|broker| naming::prefix(broker, &observed.required_prefix).to_owned()),
        auto_create_topics: Some(cluster.brokers.values().all(|broker| broker.auto_create)),
        ledger_topic_id: remembered_ledger(object, seen),
    }
}

/// What the annotation that accepts another ledger says where there is none any more.
pub(super) const NO_LEDGER: &str = "none";

/// The ledger as it was first seen, until a user accepts another: a new one knows nothing of what was replayed before.
pub(super) fn remembered_ledger(object: &ShareGroupDLQ, seen: &Seen) -> Option<String> {
    let found = seen.cluster.ledger.map(|id| id.to_string());
    let before = object.status.as_ref().and_then(|status| status.broker.as_ref()?.ledger_topic_id.clone());
    let accepted = object.annotations().get(ACCEPT_LEDGER);
    let accepted = accepted.is_some_and(|id| id == found.as_deref().unwrap_or(NO_LEDGER));
    if accepted { found } else { before.or(found) }
}

/// Without `notReplayed`: what was replayed or dismissed stands in the ledger, which is not read here.
fn backlog(seen: &Seen) -> Told<Backlog> {
    match (&seen.topic, seen.backlog) {
        (TopicLookup::Missing, _) => Told::Gone,
        (_, None) => Told::AsBefore,
        (_, Some(Letters { messages, oldest, newest })) => {
            let (oldest_time, newest_time) = (oldest.and_then(time), newest.and_then(time));
            Told::Now(Backlog { messages, not_replayed: None, oldest_time, newest_time })
        }
    }
}

/// In whole seconds, as Kubernetes keeps times: a finer one would differ from what was written.
fn time(milliseconds: i64) -> Option<Time> {
    jiff::Timestamp::from_second(milliseconds.div_euclid(1000)).ok().map(Time)
}
