//! The rules, as a table: what is changed in an orderly world, and the plan and conditions that follow.

use super::samples::*;
use super::*;
use crate::api::conditions::{self, ConditionStatus};
use crate::api::{CreatePolicy, DeletionPolicy, TopicOrigin};
use crate::dlq::config;
use crate::dlq::observe::Recent;
use crate::kafka::TopicId;
use crate::kafka::admin::{AdminError, Partition, Refusal, Topic};
use crate::kafka::share_groups::GroupKind;
use std::sync::Arc;

type World = (ShareGroupDLQ, Observed);

/// What a row expects: Ready's reason, the actions by name, whether it is Stalled, and a word of the message.
struct Row {
    name: &'static str,
    change: fn(&mut ShareGroupDLQ, &mut Seen),
    reason: Reason,
    actions: &'static [&'static str],
    stalled: bool,
    tells: &'static str,
}

fn world(change: fn(&mut ShareGroupDLQ, &mut Seen)) -> World {
    let (mut object, mut seen) = (object(), seen());
    change(&mut object, &mut seen);
    (object, observed(seen))
}

fn named(actions: &[Action]) -> Vec<&'static str> {
    let name = |action: &Action| match action {
        Action::CreateTopic(_) => "create",
        Action::GrowPartitions { .. } => "grow",
        Action::AlterTopic { drift: false, .. } => "topic",
        Action::AlterTopic { drift: true, .. } => "topic drift",
        Action::AlterGroup { drift: false, .. } => "group",
        Action::AlterGroup { drift: true, .. } => "group drift",
    };
    actions.iter().map(name).collect()
}

fn status_of(plan: &Plan, type_: &str) -> Option<ConditionStatus> {
    plan.verdict.conditions().iter().find(|told| told.type_ == type_).map(|told| told.status)
}

fn missing(seen: &mut Seen) {
    (seen.topic, seen.topic_configs, seen.backlog) = (TopicLookup::Missing, None, None);
}

fn willing(seen: &mut Seen) {
    Arc::make_mut(&mut seen.cluster).brokers.values_mut().for_each(|broker| broker.auto_create = true);
}

fn refusal() -> Refusal {
    Refusal { code: 29, message: String::new() }
}

/// The topic as one that Redrive made, reported before.
fn ours(object: &mut ShareGroupDLQ) {
    let status = object.status.get_or_insert_default();
    let (id, origin) = (Some(TOPIC_ID.to_string()), Some(TopicOrigin::Created));
    status.topic = Some(TopicStatus { name: "dlq.orders".into(), id, origin, ..Default::default() });
}

/// All was in order for the present spec.
fn was_ready(object: &mut ShareGroupDLQ) {
    let (now, generation) = (crate::api::Time(jiff::Timestamp::UNIX_EPOCH), object.metadata.generation);
    let conditions = &mut object.status.get_or_insert_default().conditions;
    for type_ in [conditions::TOPIC_READY, conditions::GROUP_CONFIGURED, conditions::READY] {
        conditions::set(conditions, type_, ConditionStatus::True, "Enforced", "", generation, &now);
    }
}

fn without_consent(seen: &mut Seen) {
    seen.topic_configs = Some(Ok(configs(&[(config::CONSENT, "false")])));
}

fn drifted(seen: &mut Seen) {
    seen.group_configs = Ok(configs(&[(config::TOPIC_NAME, ""), (config::COPY, "false")]));
}

const ROWS: &[Row] = &[
    Row {
        name: "all in order",
        change: |_, _| {},
        reason: Reason::Ready,
        actions: &[],
        stalled: false,
        tells: "dlq.orders",
    },
    Row {
        name: "share.version 1",
        change: |_, seen| Arc::make_mut(&mut seen.cluster).share_version = 1,
        reason: Reason::ShareVersionTooLow,
        actions: &[],
        stalled: true,
        tells: "--feature share.version=2",
    },
    Row {
        name: "missing, brokers do not create",
        change: |_, seen| missing(seen),
        reason: Reason::CreationNotAllowed,
        actions: &[],
        stalled: true,
        tells: "brokers 1, 2",
    },
    Row {
        name: "missing, one broker does not create",
        change: |_, seen| {
            missing(seen);
            willing(seen);
            if let Some(broker) = Arc::make_mut(&mut seen.cluster).brokers.get_mut(&2) {
                broker.auto_create = false;
            }
        },
        reason: Reason::CreationNotAllowed,
        actions: &[],
        stalled: true,
        tells: "brokers 2.",
    },
    Row {
        name: "missing, brokers create",
        change: |_, seen| {
            missing(seen);
            willing(seen);
        },
        reason: Reason::Creating,
        actions: &["create"],
        stalled: false,
        tells: "dlq.orders",
    },
    Row {
        name: "missing, Always",
        change: |object, seen| {
            missing(seen);
            object.spec.topic.create = CreatePolicy::Always;
        },
        reason: Reason::Creating,
        actions: &["create"],
        stalled: false,
        tells: "being created",
    },
    Row {
        name: "missing, Never",
        change: |object, seen| {
            missing(seen);
            willing(seen);
            object.spec.topic.create = CreatePolicy::Never;
        },
        reason: Reason::TopicMissing,
        actions: &[],
        stalled: false,
        tells: "--create --topic dlq.orders",
    },
    Row {
        name: "name outside the prefix",
        change: |_, seen| seen.topic_name = "orders-dlq".into(),
        reason: Reason::PrefixMismatch,
        actions: &[],
        stalled: true,
        tells: "spec.topic.name",
    },
    Row {
        name: "name outside the operator's prefix where brokers have none",
        change: |_, seen| {
            seen.topic_name = "orders-dlq".into();
            Arc::make_mut(&mut seen.cluster).brokers.values_mut().for_each(|broker| broker.prefix.clear());
        },
        reason: Reason::PrefixMismatch,
        actions: &[],
        stalled: true,
        tells: "--required-prefix",
    },
    Row {
        name: "name outside the prefix of one broker",
        change: |_, seen| {
            if let Some(broker) = Arc::make_mut(&mut seen.cluster).brokers.get_mut(&2) {
                broker.prefix = "dead.".into();
            }
        },
        reason: Reason::PrefixMismatch,
        actions: &[],
        stalled: true,
        tells: "brokers 2 ask",
    },
    Row {
        name: "illegal name",
        change: |_, seen| seen.topic = TopicLookup::Invalid,
        reason: Reason::InvalidTopicName,
        actions: &[],
        stalled: true,
        tells: "Set spec.topic.name",
    },
    Row {
        name: "topic may not be described",
        change: |_, seen| seen.topic = TopicLookup::NotAuthorized,
        reason: Reason::NotAuthorized,
        actions: &[],
        stalled: true,
        tells: "Describe",
    },
    Row {
        name: "topic configs may not be read",
        change: |_, seen| seen.topic_configs = Some(Err(refusal())),
        reason: Reason::NotAuthorized,
        actions: &[],
        stalled: true,
        tells: "DescribeConfigs on the topic",
    },
    Row {
        name: "consent missing",
        change: |_, seen| without_consent(seen),
        reason: Reason::NotEnabledForGroups,
        actions: &[],
        stalled: true,
        tells: "errors.deadletterqueue.group.enable=true",
    },
    Row {
        name: "consent missing, adopt",
        change: |object, seen| {
            without_consent(seen);
            object.spec.topic.adopt = true;
        },
        reason: Reason::Changing,
        actions: &["topic"],
        stalled: false,
        tells: "being changed",
    },
    Row {
        name: "consent taken away from our topic",
        change: |object, seen| {
            without_consent(seen);
            ours(object);
            was_ready(object);
        },
        reason: Reason::Changing,
        actions: &["topic drift"],
        stalled: false,
        tells: "being changed",
    },
    Row {
        name: "our topic was made anew by somebody else",
        change: |object, seen| {
            without_consent(seen);
            ours(object);
            seen.topic = TopicLookup::Found(Topic { id: TopicId::from_u128(0xd2), ..topic() });
        },
        reason: Reason::NotEnabledForGroups,
        actions: &[],
        stalled: true,
        tells: "adopt",
    },
    Row {
        name: "another config, no adoption",
        change: |object, _| {
            object.spec.topic.config.insert("retention.ms".into(), "1000".into());
        },
        reason: Reason::AdoptionNotAllowed,
        actions: &[],
        stalled: true,
        tells: "retention.ms=1000",
    },
    Row {
        name: "more partitions, no adoption",
        change: |object, _| object.spec.topic.partitions = Some(5),
        reason: Reason::AdoptionNotAllowed,
        actions: &[],
        stalled: true,
        tells: "5 partitions",
    },
    Row {
        name: "more partitions and another config of our topic",
        change: |object, _| {
            ours(object);
            object.spec.topic.partitions = Some(5);
            object.spec.topic.config.insert("retention.ms".into(), "1000".into());
        },
        reason: Reason::Changing,
        actions: &["grow", "topic"],
        stalled: false,
        tells: "being changed",
    },
    Row {
        name: "fewer partitions",
        change: |object, _| {
            ours(object);
            object.spec.topic.partitions = Some(1);
        },
        reason: Reason::PartitionDecreaseNotSupported,
        actions: &[],
        stalled: true,
        tells: "to 2 or more",
    },
    Row {
        name: "another replication factor",
        change: |object, _| object.spec.topic.replication_factor = Some(3),
        reason: Reason::ReplicationFactorDiffers,
        actions: &[],
        stalled: true,
        tells: "spec.topic.replicationFactor to 2",
    },
    Row {
        name: "compacted",
        change: |_, seen| {
            seen.topic_configs = Some(Ok(configs(&[(config::CONSENT, "true"), (config::CLEANUP, "compact,delete")])));
        },
        reason: Reason::CompactedTopic,
        actions: &[],
        stalled: true,
        tells: "cleanup.policy=delete",
    },
    Row {
        name: "compacted, mended by the spec",
        change: |object, seen| {
            ours(object);
            object.spec.topic.config.insert(config::CLEANUP.into(), "delete".into());
            seen.topic_configs = Some(Ok(configs(&[(config::CONSENT, "true"), (config::CLEANUP, "compact")])));
        },
        reason: Reason::Changing,
        actions: &["topic"],
        stalled: false,
        tells: "being changed",
    },
    Row {
        name: "compaction asked for",
        change: |object, _| {
            ours(object);
            object.spec.topic.config.insert(config::CLEANUP.into(), "compact".into());
        },
        reason: Reason::CompactedTopic,
        actions: &[],
        stalled: true,
        tells: "compacted",
    },
    Row {
        name: "the group reads its dead letters",
        change: |_, seen| {
            seen.sources.insert("dlq.orders".into());
        },
        reason: Reason::SameAsSource,
        actions: &[],
        stalled: true,
        tells: "--delete-offsets",
    },
    Row {
        name: "group not configured yet",
        change: |_, seen| drifted(seen),
        reason: Reason::Ready,
        actions: &["group"],
        stalled: false,
        tells: "dlq.orders",
    },
    Row {
        name: "group changed by others",
        change: |object, seen| {
            was_ready(object);
            drifted(seen);
        },
        reason: Reason::Ready,
        actions: &["group drift"],
        stalled: false,
        tells: "dlq.orders",
    },
    Row {
        name: "a new spec is no drift",
        change: |object, seen| {
            was_ready(object);
            drifted(seen);
            object.metadata.generation = Some(2);
        },
        reason: Reason::Ready,
        actions: &["group"],
        stalled: false,
        tells: "dlq.orders",
    },
    Row {
        name: "further group configs",
        change: |object, _| {
            object.spec.group_config.insert("share.delivery.count.limit".into(), "3".into());
        },
        reason: Reason::Ready,
        actions: &["group"],
        stalled: false,
        tells: "dlq.orders",
    },
    Row {
        name: "a consumer group",
        change: |_, seen| {
            Arc::make_mut(&mut seen.cluster).groups.insert("orders".into(), GroupKind::Consumer);
        },
        reason: Reason::NotAShareGroup,
        actions: &[],
        stalled: true,
        tells: "Consumer",
    },
    Row {
        name: "a group nobody has joined yet",
        change: |_, seen| Arc::make_mut(&mut seen.cluster).groups.clear(),
        reason: Reason::Ready,
        actions: &[],
        stalled: false,
        tells: "dlq.orders",
    },
    Row {
        name: "group configs may not be read",
        change: |_, seen| seen.group_configs = Err(refusal()),
        reason: Reason::NotAuthorized,
        actions: &[],
        stalled: true,
        tells: "DescribeConfigs and AlterConfigs on the group",
    },
    Row {
        name: "suspended with nothing to do",
        change: |object, _| object.spec.suspend = true,
        reason: Reason::Ready,
        actions: &[],
        stalled: false,
        tells: "dlq.orders",
    },
    Row {
        name: "suspended, topic missing",
        change: |object, seen| {
            missing(seen);
            willing(seen);
            object.spec.suspend = true;
        },
        reason: Reason::Suspended,
        actions: &[],
        stalled: true,
        tells: "spec.suspend",
    },
    Row {
        name: "suspended, group to be set",
        change: |object, seen| {
            drifted(seen);
            object.spec.suspend = true;
        },
        reason: Reason::Suspended,
        actions: &[],
        stalled: true,
        tells: "errors.deadletterqueue.topic.name=dlq.orders",
    },
    Row {
        name: "another cluster",
        change: |object, _| {
            let broker = BrokerStatus { cluster_id: Some("c0".into()), ..Default::default() };
            object.status.get_or_insert_default().broker = Some(broker);
        },
        reason: Reason::ClusterChanged,
        actions: &[],
        stalled: true,
        tells: "kubectl annotate sharegroupdlq orders -n shop --overwrite redrive.dev/accept-cluster=c1",
    },
    Row {
        name: "another cluster, accepted",
        change: |object, _| {
            let broker = BrokerStatus { cluster_id: Some("c0".into()), ..Default::default() };
            object.status.get_or_insert_default().broker = Some(broker);
            object.annotations_mut().insert(ACCEPT_CLUSTER.into(), "c1".into());
        },
        reason: Reason::Ready,
        actions: &[],
        stalled: false,
        tells: "dlq.orders",
    },
    Row {
        name: "a field of a later version",
        change: |object, seen| {
            missing(seen);
            object.spec.topic.create = CreatePolicy::Always;
            object.spec.deletion_policy = DeletionPolicy::Delete;
        },
        reason: Reason::NotImplemented,
        actions: &[],
        stalled: true,
        tells: "spec.deletionPolicy",
    },
];

#[test]
fn each_state_has_its_reason_actions_and_way_out() {
    for row in ROWS {
        let (object, observed) = world(row.change);
        let plan = plan(&object, &observed);
        let ready = plan.verdict.ready();
        assert_eq!((ready.reason, named(&plan.actions).as_slice()), (row.reason, row.actions), "{}", row.name);
        assert!(ready.message.contains(row.tells), "{}: {:?} does not tell {:?}", row.name, ready.message, row.tells);
        let stalled = ConditionStatus::from(row.stalled);
        assert_eq!(status_of(&plan, conditions::STALLED), Some(stalled), "{}", row.name);
    }
}

#[test]
fn ready_and_kstatus_never_contradict() {
    for row in ROWS {
        let (object, observed) = world(row.change);
        let plan = plan(&object, &observed);
        let is = |type_| status_of(&plan, type_) == Some(ConditionStatus::True);
        let ways = [conditions::READY, conditions::STALLED, conditions::RECONCILING].map(is);
        assert_eq!(ways.iter().filter(|way| **way).count(), 1, "{}: {ways:?}", row.name);
    }
}

#[test]
fn a_group_is_pointed_only_to_a_topic_that_was_seen_ready() {
    for row in ROWS {
        let (object, observed) = world(row.change);
        let plan = plan(&object, &observed);
        let ready = status_of(&plan, conditions::TOPIC_READY) == Some(ConditionStatus::True);
        let points = plan.actions.iter().any(|action| !action.concerns_topic());
        assert!(ready || !points, "{}", row.name);
    }
}

#[test]
fn a_suspended_object_is_never_changed() {
    for row in ROWS {
        let (mut object, observed) = world(row.change);
        object.spec.suspend = true;
        let plan = plan(&object, &observed);
        assert_eq!(named(&plan.actions), [""; 0], "{}", row.name);
        assert_eq!(status_of(&plan, conditions::SUSPENDED), Some(ConditionStatus::True), "{}", row.name);
        assert_ne!(plan.next, Next::Soon, "{}", row.name);
    }
}

#[test]
fn what_was_changed_a_moment_ago_is_looked_at_again_not_changed_again() {
    for row in ROWS {
        let (object, mut observed) = world(row.change);
        observed.recent = Recent { topic: true, group: true };
        assert_eq!(named(&plan(&object, &observed).actions), [""; 0], "{}", row.name);
    }
}

#[test]
fn a_new_topic_does_not_hold_up_the_group() {
    let (object, mut observed) = world(|_, seen| drifted(seen));
    observed.recent.topic = true;
    assert_eq!(named(&plan(&object, &observed).actions), ["group"]);
}

#[test]
fn the_new_topic_is_as_the_spec_asks_and_consents() {
    let mut object = object();
    object.spec.topic.partitions = Some(6);
    object.spec.topic.replication_factor = Some(3);
    object.spec.topic.config.insert("retention.ms".into(), "1000".into());
    let plan = plan(&object, &without_topic());
    let [Action::CreateTopic(new)] = plan.actions.as_slice() else { panic!("{:?}", plan.actions) };
    let configs = [(config::CONSENT, "true"), ("retention.ms", "1000")];
    let configs = configs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!((new.partitions, new.replication_factor, &new.configs), (Some(6), Some(3), &configs.into()));
    assert_eq!((plan.next, plan.topic), (Next::Soon, Told::Gone));
}

#[test]
fn an_adopted_topic_is_told_as_such() {
    let (object, observed) = world(|object, seen| {
        without_consent(seen);
        object.spec.topic.adopt = true;
    });
    let Told::Now(topic) = plan(&object, &observed).topic else { panic!("no topic is told") };
    assert_eq!(topic.origin, Some(TopicOrigin::Adopted));
}

#[test]
fn a_correction_stays_told_until_the_spec_changes() {
    let (mut object, observed) = world(|object, _| was_ready(object));
    let conditions = &mut object.status.get_or_insert_default().conditions;
    let told = conditions.iter_mut().find(|condition| condition.type_ == conditions::GROUP_CONFIGURED);
    if let Some(told) = told {
        (told.reason, told.message) = ("DriftCorrected".into(), "put back".into());
    }
    let group = plan(&object, &observed).verdict.group;
    assert_eq!((group.reason, group.message.as_str()), (Reason::DriftCorrected, "put back"));
    object.metadata.generation = Some(2);
    assert_eq!(plan(&object, &observed).verdict.group.reason, Reason::Enforced);
}

#[test]
fn the_older_of_two_for_one_group_wins() {
    for wins in [true, false] {
        let (object, mut observed) = world(|_, seen| drifted(seen));
        observed.peers = vec![Peer::Rival { name: "shop/first".into(), wins }];
        let plan = plan(&object, &observed);
        let (ready, actions) = (plan.verdict.ready(), named(&plan.actions));
        if wins {
            assert_eq!((ready.reason, actions.as_slice()), (Reason::ResourceConflict, &[][..]));
            assert!(ready.message.contains("shop/first"));
            assert_eq!(status_of(&plan, conditions::STALLED), Some(ConditionStatus::True));
        } else {
            assert_eq!((ready.reason, actions.as_slice()), (Reason::Ready, &["group"][..]));
        }
    }
}

#[test]
fn warnings_degrade_but_do_not_unready() {
    let (object, mut observed) = world(|_, seen| {
        let weak = Partition { id: 1, leader: Some(1), replicas: vec![1, 2], isr: vec![1] };
        seen.topic = TopicLookup::Found(Topic { partitions: vec![weak], ..topic() });
        if let Some(broker) = Arc::make_mut(&mut seen.cluster).brokers.get_mut(&2) {
            broker.prefix = "dlq.or".into();
        }
    });
    observed.peers = vec![Peer::Sharer { name: "shop/other".into() }];
    let plan = plan(&object, &observed);
    let reasons: Vec<_> = plan.verdict.warnings.iter().map(|warning| warning.reason).collect();
    assert_eq!(reasons, [Reason::UnderReplicated, Reason::PrefixDiffersBetweenBrokers, Reason::SharedTopic]);
    assert_eq!(plan.verdict.ready().reason, Reason::Ready);
    assert_eq!(status_of(&plan, conditions::DEGRADED), Some(ConditionStatus::True));
}

#[test]
fn trouble_with_kafka_makes_the_rest_unknown_and_is_retried() {
    let (object, mut observed) = world(|_, _| {});
    let gone = AdminError::Unreachable { address: "kafka:9092".into(), reason: "connection refused".into() };
    observed.kafka = KafkaSeen::Trouble(Arc::new(gone));
    let plan = plan(&object, &observed);
    assert_eq!(plan.verdict.ready().reason, Reason::KafkaUnreachable);
    for (type_, status) in [
        (conditions::SUPPORTED, ConditionStatus::False),
        (conditions::TOPIC_READY, ConditionStatus::Unknown),
        (conditions::GROUP_CONFIGURED, ConditionStatus::Unknown),
        (conditions::RECONCILING, ConditionStatus::True),
    ] {
        assert_eq!(status_of(&plan, type_), Some(status), "{type_}");
    }
    assert_eq!((plan.next, plan.broker, plan.topic), (Next::BackOff, None, Told::AsBefore));
}

#[test]
fn a_refused_action_is_told_where_it_belongs() {
    let refused = |code| AdminError::Refused { action: "x".into(), refusal: Refusal { code, message: "m".into() } };
    let alter = Action::AlterGroup { group: "orders".into(), changes: vec![], drift: false };
    let create = Action::GrowPartitions { topic: "dlq.orders".into(), count: 3 };
    let verdict = plan(&object(), &in_order()).verdict;
    let after = |action: &Action, error: &AdminError| verdict.clone().after_failure(action, error);
    assert_eq!(after(&alter, &refused(40)).group.reason, Reason::InvalidConfig);
    assert_eq!(after(&create, &refused(40)).topic.reason, Reason::InvalidConfig);
    let denied = AdminError::NotAuthorized { action: "x".into(), refusal: refusal() };
    assert_eq!(after(&alter, &denied).group.reason, Reason::NotAuthorized);
    let gone = AdminError::Unreachable { address: "a:1".into(), reason: "r".into() };
    assert_eq!(after(&create, &gone).ready().reason, Reason::KafkaUnreachable);
    let exists = AdminError::TopicExists { topic: "dlq.orders".into() };
    assert_eq!(after(&create, &exists), verdict);
}

#[test]
fn the_ledger_is_remembered_until_another_one_is_accepted() {
    let id = |number| TopicId::from_u128(number).to_string();
    let rows = [
        // seen before, there now, accepted by annotation: remembered, lost
        (None, None, None, None, false),
        (None, Some(1), None, Some(id(1)), false),
        (Some(1), Some(1), None, Some(id(1)), false),
        (Some(1), Some(2), None, Some(id(1)), true),
        (Some(1), None, None, Some(id(1)), true),
        (Some(1), Some(2), Some(id(2)), Some(id(2)), false),
        (Some(1), Some(3), Some(id(2)), Some(id(1)), true),
        (Some(1), None, Some("none".to_owned()), None, false),
    ];
    for (before, now, accepted, remembered, lost) in rows {
        let (mut object, mut seen) = (object(), seen());
        let broker = BrokerStatus { ledger_topic_id: before.map(id), ..Default::default() };
        object.status = Some(crate::api::ShareGroupDLQStatus { broker: Some(broker), ..Default::default() });
        object.metadata.annotations = accepted.map(|id| [(ACCEPT_LEDGER.to_owned(), id)].into());
        let mut cluster = (*seen.cluster).clone();
        cluster.ledger = now.map(TopicId::from_u128);
        seen.cluster = Arc::new(cluster);
        let plan = plan(&object, &observed(seen));
        assert_eq!(plan.broker.as_ref().and_then(|broker| broker.ledger_topic_id.clone()), remembered);
        let reasons: Vec<_> = plan.verdict.warnings.iter().map(|warning| warning.reason).collect();
        assert_eq!(reasons.contains(&Reason::LedgerLost), lost, "{before:?} {now:?}");
    }
}
