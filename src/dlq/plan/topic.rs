//! Whether the dead-letter topic would accept a dead letter, and what to do so that it does.

use super::values::{changes, listed};
use super::{Action, Finding, Hold, Reason, Told};
use crate::api::conditions;
use crate::api::{CreatePolicy, ShareGroupDLQ, TopicOrigin, TopicStatus};
use crate::dlq::observe::{Observed, Seen};
use crate::dlq::{config, naming};
use crate::kafka::admin::{ConfigChange, NewTopic, Topic, TopicLookup};

/// The finding on the topic, and the actions that would mend it.
pub fn judge(object: &ShareGroupDLQ, observed: &Observed, seen: &Seen) -> (Finding, Vec<Action>) {
    if let Some(obstacle) = misnamed(observed, seen).or_else(|| read_by_group(object, seen)) {
        return (obstacle, vec![]);
    }
    let name = &seen.topic_name;
    match &seen.topic {
        TopicLookup::Found(topic) => found(object, observed, seen, topic),
        TopicLookup::Missing => missing(object, observed, seen),
        TopicLookup::NotAuthorized => (unreadable(name), vec![]),
        TopicLookup::Invalid => (illegal(name), vec![]),
    }
}

/// Brokers drop the dead letters for a topic outside their prefix.
fn misnamed(observed: &Observed, seen: &Seen) -> Option<Finding> {
    let name = &seen.topic_name;
    let objections = naming::objections(name, &seen.cluster.brokers, &observed.required_prefix);
    if objections.is_empty() {
        return None;
    }
    let (_, prefix) = objections.first_key_value()?;
    let everywhere = objections.len() == seen.cluster.brokers.len();
    let who = if everywhere { "the brokers".to_owned() } else { format!("brokers {}", joined(objections.keys())) };
    let by_flag = seen.cluster.brokers.values().all(|broker| broker.prefix.is_empty());
    let (rule, mend) = match by_flag {
        true => (
            "the operator's --required-prefix asks".to_owned(),
            "or run the operator with another --required-prefix".to_owned(),
        ),
        false => (format!("{who} ask ({})", config::PREFIX), format!("or change {} of the brokers", config::PREFIX)),
    };
    let message = format!(
        "topic name {name} does not begin with {prefix} as {rule}, its dead letters would be dropped. \
         Make a ShareGroupDLQ with another spec.topic.name, {mend}"
    );
    Some(Finding::stuck(Reason::PrefixMismatch, message))
}

/// A group that reads its own dead letters makes more of them without end.
fn read_by_group(object: &ShareGroupDLQ, seen: &Seen) -> Option<Finding> {
    let (name, group) = (&seen.topic_name, &object.spec.group_id);
    seen.sources.contains(name).then(|| {
        let message = format!(
            "group {group} reads {name} itself: each of its dead letters would be dead-lettered again without end. \
             Make a ShareGroupDLQ with another spec.topic.name, or stop the group from reading {name} and delete its \
             offsets: kafka-share-groups.sh --bootstrap-server ... --delete-offsets --group {group} --topic {name}"
        );
        Finding::stuck(Reason::SameAsSource, message)
    })
}

fn unreadable(name: &str) -> Finding {
    let message =
        format!("the operator may not describe topic {name}. Grant it Describe and DescribeConfigs on the topic");
    Finding::stuck(Reason::NotAuthorized, message)
}

fn illegal(name: &str) -> Finding {
    let message =
        format!("{name} is no legal topic name: letters, digits, '.', '_' and '-', at most 249. Set spec.topic.name");
    Finding::stuck(Reason::InvalidTopicName, message)
}

fn missing(object: &ShareGroupDLQ, observed: &Observed, seen: &Seen) -> (Finding, Vec<Action>) {
    let name = &seen.topic_name;
    let unwilling: Vec<_> =
        seen.cluster.brokers.iter().filter(|(_, broker)| !broker.auto_create).map(|(id, _)| id).collect();
    match object.spec.topic.create {
        CreatePolicy::Never => (absent(name), vec![]),
        CreatePolicy::FollowBroker if !unwilling.is_empty() => {
            let message = format!(
                "topic {name} does not exist and {} is off on brokers {}. Create it, set spec.topic.create to Always, \
                 or switch that on",
                config::AUTO_CREATE,
                joined(&unwilling)
            );
            (Finding::stuck(Reason::CreationNotAllowed, message), vec![])
        }
        _ => {
            let finding = Finding::waiting(Reason::Creating, format!("topic {name} is being created"));
            let create = Action::CreateTopic(new_topic(object, name));
            (finding, if observed.recent.topic { vec![] } else { vec![create] })
        }
    }
}

fn absent(name: &str) -> Finding {
    let message = format!(
        "topic {name} does not exist. Create it: kafka-topics.sh --bootstrap-server ... --create --topic {name} --config {}=true",
        config::CONSENT
    );
    Finding::waiting(Reason::TopicMissing, message)
}

fn new_topic(object: &ShareGroupDLQ, name: &str) -> NewTopic {
    let spec = &object.spec.topic;
    let configs = wanted(object).map(|(name, value)| (name.to_owned(), value.to_owned()));
    NewTopic {
        name: name.to_owned(),
        partitions: spec.partitions,
        replication_factor: spec.replication_factor.and_then(|factor| i16::try_from(factor).ok()),
        configs: configs.collect(),
    }
}

/// The configs the topic has to have: those of the spec, and its consent.
fn wanted(object: &ShareGroupDLQ) -> impl Iterator<Item = (&str, &str)> {
    let of_spec = object.spec.topic.config.iter().filter(|(name, _)| *name != config::CONSENT);
    of_spec.map(|(name, value)| (name.as_str(), value.as_str())).chain([(config::CONSENT, "true")])
}

fn found(object: &ShareGroupDLQ, observed: &Observed, seen: &Seen, topic: &Topic) -> (Finding, Vec<Action>) {
    if let Some(obstacle) = unchangeable(object, topic) {
        return (obstacle, vec![]);
    }
    let configs = match &seen.topic_configs {
        Some(Ok(configs)) => configs,
        _ => return (unreadable(&topic.name), vec![]),
    };
    let differing = changes(configs, wanted(object));
    let growth = object.spec.topic.partitions.filter(|wanted| *wanted > partitions(topic));
    if !may_change(object, topic)
        && let Some(obstacle) = not_adopted(&topic.name, &differing, growth)
    {
        return (obstacle, vec![]);
    }
    let policy = after(configs.value(config::CLEANUP), &differing, config::CLEANUP);
    if policy.is_some_and(|policy| policy.contains("compact")) {
        return (compacted(&topic.name), vec![]);
    }
    let mut actions = vec![];
    actions.extend(growth.map(|count| Action::GrowPartitions { topic: topic.name.clone(), count }));
    if !differing.is_empty() {
        let drift = was_in_order(object, conditions::TOPIC_READY);
        actions.push(Action::AlterTopic { topic: topic.name.clone(), changes: differing, drift });
    }
    if actions.is_empty() {
        return (in_order(object, topic), vec![]);
    }
    let finding = Finding::waiting(Reason::Changing, format!("topic {} is being changed", topic.name));
    (finding, if observed.recent.topic { vec![] } else { actions })
}

/// Where spec and topic differ and no change of the topic can mend it.
fn unchangeable(object: &ShareGroupDLQ, topic: &Topic) -> Option<Finding> {
    let (spec, name) = (&object.spec.topic, &topic.name);
    let (has, replicas) = (partitions(topic), replication(topic));
    if let Some(wanted) = spec.partitions.filter(|wanted| *wanted < has) {
        let message = format!(
            "topic {name} has {has} partitions, and a topic's partitions can't become fewer. Set spec.topic.partitions \
             to {has} or more, not {wanted}"
        );
        return Some(Finding::stuck(Reason::PartitionDecreaseNotSupported, message));
    }
    let wanted = spec.replication_factor.filter(|wanted| *wanted != replicas)?;
    let message = format!(
        "topic {name} has replication factor {replicas}, not {wanted}, and it is not changed here. Set \
         spec.topic.replicationFactor to {replicas}, or reassign: kafka-reassign-partitions.sh --bootstrap-server ..."
    );
    Some(Finding::stuck(Reason::ReplicationFactorDiffers, message))
}

/// A topic that was here before is changed only where the spec allows it.
fn may_change(object: &ShareGroupDLQ, topic: &Topic) -> bool {
    object.spec.topic.adopt || origin(object, topic) == TopicOrigin::Created
}

fn not_adopted(name: &str, differing: &[ConfigChange], growth: Option<i32>) -> Option<Finding> {
    if differing.iter().any(|change| change.name == config::CONSENT) {
        let message = format!(
            "topic {name} does not take dead letters: {consent} is not true. Set spec.topic.adopt to true, or \
             kafka-configs.sh --bootstrap-server ... --alter --topic {name} --add-config {consent}=true",
            consent = config::CONSENT
        );
        return Some(Finding::stuck(Reason::NotEnabledForGroups, message));
    }
    let mut needed = vec![];
    needed.extend(growth.map(|count| format!("{count} partitions")));
    needed.extend((!differing.is_empty()).then(|| listed(differing)));
    (!needed.is_empty()).then(|| {
        let message = format!(
            "topic {name} was not made by Redrive and would have to be changed to: {}. Set spec.topic.adopt to true, or \
             leave that out of spec.topic",
            needed.join(", ")
        );
        Finding::stuck(Reason::AdoptionNotAllowed, message)
    })
}

fn compacted(name: &str) -> Finding {
    let message = format!(
        "topic {name} is compacted: brokers can't write dead letters without a key to it, they would be lost. Set \
         {cleanup}: delete in spec.topic.config (with spec.topic.adopt true for a topic that was here before), or \
         kafka-configs.sh --bootstrap-server ... --alter --topic {name} --add-config {cleanup}=delete",
        cleanup = config::CLEANUP
    );
    Finding::stuck(Reason::CompactedTopic, message)
}

fn in_order(object: &ShareGroupDLQ, topic: &Topic) -> Finding {
    match origin(object, topic) {
        TopicOrigin::Created => Finding::good(Reason::Created, format!("Redrive made topic {}", topic.name)),
        _ => Finding::good(Reason::Exists, format!("topic {} takes dead letters", topic.name)),
    }
}

/// A change that waits: nobody is to wait for it.
pub fn held(finding: Finding, hold: Option<&Hold>) -> Finding {
    match hold {
        Some(Hold::Suspended) => {
            let message = "the topic has to be made or changed, but spec.suspend is true. Set it to false";
            Finding::stuck(Reason::Suspended, message)
        }
        Some(Hold::Rival(winner)) => {
            Finding::stuck(Reason::ResourceConflict, format!("the topic is left to {winner}. Delete one of the two"))
        }
        None => finding,
    }
}

/// How the topic came to be, by its id: a topic made anew by somebody else is not ours any more.
pub fn origin(object: &ShareGroupDLQ, topic: &Topic) -> TopicOrigin {
    let known = object.status.as_ref().and_then(|status| status.topic.as_ref());
    let same = known.filter(|known| known.id.as_deref() == Some(topic.id.to_string().as_str()));
    same.and_then(|known| known.origin).unwrap_or(TopicOrigin::Existing)
}

/// What the status says of the topic once the actions are carried out.
pub fn status(object: &ShareGroupDLQ, seen: &Seen, changed: bool) -> Told<TopicStatus> {
    match &seen.topic {
        TopicLookup::Found(topic) => Told::Now(TopicStatus {
            name: topic.name.clone(),
            id: Some(topic.id.to_string()),
            partitions: Some(partitions(topic)),
            replication_factor: Some(replication(topic)),
            origin: Some(match origin(object, topic) {
                TopicOrigin::Existing if changed => TopicOrigin::Adopted,
                origin => origin,
            }),
        }),
        TopicLookup::Missing | TopicLookup::Invalid => Told::Gone,
        TopicLookup::NotAuthorized => Told::AsBefore,
    }
}

/// Whether the condition was True for the spec as it is now: what differs then was changed by somebody else.
pub fn was_in_order(object: &ShareGroupDLQ, type_: &str) -> bool {
    let told = object.status.as_ref().and_then(|status| conditions::find(&status.conditions, type_));
    told.is_some_and(|told| told.status == "True" && told.observed_generation == object.metadata.generation)
}

fn after<'a>(is: Option<&'a str>, changes: &'a [ConfigChange], name: &str) -> Option<&'a str> {
    let change = changes.iter().find(|change| change.name == name);
    change.map_or(is, |change| change.value.as_deref())
}

fn partitions(topic: &Topic) -> i32 {
    i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX)
}

/// The lowest of the partitions' replica counts: the weakest decides.
fn replication(topic: &Topic) -> i32 {
    let lowest = topic.partitions.iter().map(|partition| partition.replicas.len()).min().unwrap_or(0);
    i32::try_from(lowest).unwrap_or(i32::MAX)
}

fn joined<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}
