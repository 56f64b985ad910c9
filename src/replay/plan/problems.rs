//! What would go wrong: one small rule for each type of problem. Blocking or not is decided by the type.

use super::{Asked, target};
use crate::api::{PreviewTarget, Problem, ProblemType};
use crate::kafka::TopicPartition;
use crate::kafka::offset_set::OffsetSet;
use crate::kafka::share_groups::GroupKind;
use crate::replay::canary::Policy;
use crate::replay::look::Scene;
use crate::replay::run::account::count;
use std::collections::BTreeSet;

const DEAD_LETTER_TOPIC: &str = "errors.deadletterqueue.topic.name";
const CONSENT: &str = "errors.deadletterqueue.group.enable";

pub struct Case<'a> {
    pub asked: &'a Asked<'a>,
    pub scene: &'a Scene,
    pub targets: &'a [PreviewTarget],
    pub policy: Policy,
    pub settling_group: Option<&'a str>,
}

pub fn find(case: &Case<'_>) -> Vec<Problem> {
    let rules: [fn(&Case<'_>) -> Vec<Problem>; 15] = [
        target_missing,
        not_authorized,
        payload_unavailable,
        other_readers,
        dead_letters_would_be_lost,
        group_not_initialised,
        not_fenceable,
        source_recreated,
        unknown_source,
        no_settling_group,
        no_live_consumers,
        already_replayed,
        headers_lost,
        duplicate_entries,
        step_timeout_short,
    ];
    if case.scene.survey.messages == 0 {
        return Vec::new();
    }
    rules.iter().flat_map(|rule| rule(case)).collect()
}

fn problem(type_: ProblemType, messages: u64, message: String) -> Problem {
    Problem::new(type_, super::signed(messages), message)
}

fn some(count: u64, make: impl FnOnce(u64) -> Problem) -> Vec<Problem> {
    if count == 0 { Vec::new() } else { vec![make(count)] }
}

fn target_missing(case: &Case<'_>) -> Vec<Problem> {
    let missing = case.targets.iter().filter(|target| !target.exists);
    let make = |target: &PreviewTarget| {
        let message = format!(
            "target topic {} does not exist ({} messages); create it, or choose another with spec.target.topic",
            target.topic, target.messages
        );
        problem(ProblemType::TargetMissing, target.messages.unsigned_abs(), message)
    };
    missing.map(make).collect()
}

fn not_authorized(case: &Case<'_>) -> Vec<Problem> {
    let refused = case.targets.iter().filter(|target| target.exists && !target.authorized);
    let make = |target: &PreviewTarget| {
        let message = format!(
            "no right to write to {} ({} messages); grant Write on topic {} to the ShareGroupDLQ's Kafka user",
            target.topic, target.messages, target.topic
        );
        problem(ProblemType::NotAuthorized, target.messages.unsigned_abs(), message)
    };
    refused.map(make).collect()
}

fn payload_unavailable(case: &Case<'_>) -> Vec<Problem> {
    some(count(&case.scene.survey.unavailable), |count| {
        let message = format!(
            "{count} messages are gone from their source topic and their dead letters hold no copy; leave them out with selection.excludeOffsets, and set copyRecords: true for the future"
        );
        problem(ProblemType::PayloadUnavailable, count, message)
    })
}

fn other_readers(case: &Case<'_>) -> Vec<Problem> {
    let allowed = |group: &str| {
        case.settling_group == Some(group)
            || (target(case.asked.spec).is_none() && group == case.asked.group)
            || case.asked.spec.allow_other_readers.iter().any(|allowed| allowed == group)
    };
    let others: BTreeSet<(&str, String)> = case
        .targets
        .iter()
        .flat_map(|target| &target.groups)
        .filter(|group| !allowed(&group.group_id))
        .map(|group| {
            (group.group_id.as_str(), format!("{} ({:?}, {} members)", group.group_id, group.type_, group.members))
        })
        .collect();
    if others.is_empty() {
        return Vec::new();
    }
    let (ids, told): (Vec<_>, Vec<_>) = others.into_iter().unzip();
    let message = format!(
        "other readers would receive the messages too: {}; if they may, set spec.allowOtherReaders: [{}]. Readers without a group can't be seen",
        told.join(", "),
        ids.join(", ")
    );
    vec![problem(ProblemType::OtherReaders, case.scene.survey.messages, message)]
}

/// A message that fails again must be seen to come back, or a canary would look healthy while it loses messages.
fn dead_letters_would_be_lost(case: &Case<'_>) -> Vec<Problem> {
    let scene = case.scene;
    let named = scene.group_configs.value(DEAD_LETTER_TOPIC).unwrap_or_default();
    let topic = &scene.dead_letter_topic.name;
    let why = if case.settling_group != Some(case.asked.group) {
        return Vec::new();
    } else if named != topic {
        format!("group {} sends its dead letters to {named:?} and not to {topic}", case.asked.group)
    } else if !scene.dead_letter_configs.is_true(CONSENT) {
        format!("topic {topic} does not take dead letters ({CONSENT} is not true)")
    } else {
        return Vec::new();
    };
    let message =
        format!("{why}, so that messages which fail again would be lost; see the conditions of the ShareGroupDLQ");
    vec![problem(ProblemType::DeadLettersWouldBeLost, scene.survey.messages, message)]
}

/// A group that starts at the latest offset skips what was sent before its first fetch.
fn group_not_initialised(case: &Case<'_>) -> Vec<Problem> {
    let Some(group) = case.settling_group else { return Vec::new() };
    let configs = case.scene.settling_configs.get(group);
    if configs.and_then(|configs| configs.value("share.auto.offset.reset")) == Some("earliest") {
        return Vec::new();
    }
    let offsets = case.scene.settling_offsets.get(group);
    let started = |partition: &TopicPartition| {
        offsets.and_then(|offsets| offsets.get(partition)).is_some_and(|offset| offset.start.is_some())
    };
    let missing: Vec<String> =
        target_partitions(case).into_iter().filter(|partition| !started(partition)).map(|p| p.to_string()).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let message = format!(
        "group {group} has no start offset on {} and would begin at the latest, skipping what is sent; set the group's config share.auto.offset.reset to earliest (spec.groupConfig of its ShareGroupDLQ)",
        missing.join(", ")
    );
    vec![problem(ProblemType::GroupNotInitialised, case.scene.survey.messages, message)]
}

fn target_partitions(case: &Case<'_>) -> BTreeSet<TopicPartition> {
    let partitions = |topic: &str| {
        let found = case.scene.topics.get(topic).and_then(|facts| facts.found());
        found
            .map(|topic| topic.partitions.iter().map(|p| TopicPartition::new(&topic.name, p.id)).collect::<Vec<_>>())
            .unwrap_or_default()
    };
    match target(case.asked.spec) {
        Some(topic) => partitions(topic).into_iter().collect(),
        None => case
            .scene
            .survey
            .sources
            .keys()
            .filter(|source| partitions(&source.topic).contains(source))
            .cloned()
            .collect(),
    }
}

fn not_fenceable(case: &Case<'_>) -> Vec<Problem> {
    let brokers = &case.scene.unverifying_brokers;
    if brokers.is_empty() {
        return Vec::new();
    }
    let brokers: Vec<String> = brokers.iter().map(i32::to_string).collect();
    let message = format!(
        "transaction.partition.verification.enable is off on broker {}, so that a late write of a stopped operator could land twice; set it to true",
        brokers.join(", ")
    );
    vec![problem(ProblemType::NotFenceable, case.scene.survey.messages, message)]
}

fn source_recreated(case: &Case<'_>) -> Vec<Problem> {
    some(case.scene.survey.past_end, |count| {
        let message = format!(
            "{count} dead letters name an offset past the end of their source topic, which must have been made anew since; leave them out with selection.excludeOffsets"
        );
        problem(ProblemType::SourceRecreated, count, message)
    })
}

fn unknown_source(case: &Case<'_>) -> Vec<Problem> {
    let known: BTreeSet<&str> = case.scene.group_offsets.keys().map(|partition| partition.topic.as_str()).collect();
    let unknown = case.scene.survey.sources.iter().filter(|(source, _)| !known.contains(source.topic.as_str()));
    let unknown: Vec<(&TopicPartition, &OffsetSet)> = unknown.collect();
    let topics: BTreeSet<&str> = unknown.iter().map(|(source, _)| source.topic.as_str()).collect();
    some(unknown.iter().map(|(_, offsets)| offsets.len()).sum(), |count| {
        let topics = topics.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!(
            "{count} dead letters name {topics}, which group {} has no offsets for: they may be forged (anybody who may write to the dead-letter topic could), or the Kafka user lacks Describe on the topic. Leave them out with selection.sourceTopics",
            case.asked.group
        );
        problem(ProblemType::UnknownSource, count, message)
    })
}

fn no_settling_group(case: &Case<'_>) -> Vec<Problem> {
    let Some(topic) = target(case.asked.spec).filter(|_| case.settling_group.is_none()) else { return Vec::new() };
    let live = case.scene.readers.iter().filter(|reader| reader.kind == GroupKind::Share && reader.members > 0);
    let message = format!(
        "{} live share groups read {topic}, so it is not clear whose progress settles a message; name it with spec.target.groupId",
        live.count()
    );
    vec![problem(ProblemType::NoSettlingGroup, case.scene.survey.messages, message)]
}

fn no_live_consumers(case: &Case<'_>) -> Vec<Problem> {
    let Some(group) = case.settling_group else { return Vec::new() };
    let idle = case.targets.iter().filter(|target| target.exists && target.live_consumers == 0);
    let make = |target: &PreviewTarget| {
        let message = format!(
            "no member of group {group} reads {} now ({} messages); start its consumers first, or the first step times out",
            target.topic, target.messages
        );
        problem(ProblemType::NoLiveConsumers, target.messages.unsigned_abs(), message)
    };
    idle.map(make).collect()
}

fn already_replayed(case: &Case<'_>) -> Vec<Problem> {
    some(case.scene.survey.selected_again, |count| {
        problem(
            ProblemType::AlreadyReplayed,
            count,
            format!(
                "{count} messages were replayed before and came back, or are included all the same; see that the cause is mended"
            ),
        )
    })
}

fn headers_lost(case: &Case<'_>) -> Vec<Problem> {
    some(case.scene.survey.copy_only, |count| {
        problem(
            ProblemType::HeadersLost,
            count,
            format!(
                "{count} messages are gone from their source topic and would be sent from the copy in the dead letter, without their headers"
            ),
        )
    })
}

fn duplicate_entries(case: &Case<'_>) -> Vec<Problem> {
    let survey = &case.scene.survey;
    some(survey.entries - survey.messages, |count| {
        problem(
            ProblemType::DuplicateEntries,
            count,
            format!("{count} dead letters are second ones of the same message; each message is sent once"),
        )
    })
}

fn step_timeout_short(case: &Case<'_>) -> Vec<Problem> {
    let Policy { step_timeout, redelivery_time, .. } = case.policy;
    some(u64::from(step_timeout < redelivery_time), |_| {
        let message = format!(
            "a consumer that crashes needs {} s (delivery limit x lock duration) before its message comes back, more than canary.stepTimeoutSeconds: {}",
            redelivery_time / 1000,
            step_timeout / 1000
        );
        problem(ProblemType::StepTimeoutShort, case.scene.survey.messages, message)
    })
}
