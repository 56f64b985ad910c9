//! How a dead-letter topic comes to be, and what keeps it from taking dead letters: each told, each mended by itself
//! once the cause is gone.

use super::world::{Ask, CONSENT, TOPIC_NAME, World, condition, ready};
use crate::support::{Kafka, accept, reject, until};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use redrive::api::{ShareGroupDLQ, TopicOrigin, conditions};
use redrive::kafka::TopicId;
use serde_json::{Value, json};

fn partitions(topic: Option<Value>) -> Option<u64> {
    topic.and_then(|topic| topic["partitions"].as_u64())
}

#[tokio::test]
async fn a_topic_is_created_as_declared_and_then_the_group_is_pointed_to_it() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-create").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    let more = json!({
        "topic": {"create": "Always", "partitions": 3, "config": {"retention.ms": "3600000"}},
        "copyRecords": true, "groupConfig": {"share.delivery.count.limit": "3"},
    });
    world.apply("create", &kafka.direct(), more).await;
    let object = world.reaches("create", "Ready").await;

    let status = object.status.as_ref().and_then(|status| status.topic.clone()).expect("it is told");
    assert_eq!(partitions(clients.topic("dlq.create").await), Some(3));
    assert_eq!((status.partitions, status.origin), (Some(3), Some(TopicOrigin::Created)));
    for (resource, of, name, value) in [
        ("TOPIC", "dlq.create", CONSENT, "true"),
        ("TOPIC", "dlq.create", "retention.ms", "3600000"),
        ("GROUP", "create", TOPIC_NAME, "dlq.create"),
        ("GROUP", "create", "errors.deadletterqueue.copy.record.enable", "true"),
        ("GROUP", "create", "share.delivery.count.limit", "3"),
    ] {
        assert_eq!(clients.config(resource, of, name).await.as_deref(), Some(value), "{name}");
    }
    assert_eq!(world.events("create", "TopicCreated").await.len(), 1);
    let (status, reason, _) = condition(&object, conditions::TOPIC_READY).expect("it is told");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Created"));
    let told = object.status.and_then(|status| status.broker).expect("it is told");
    assert_eq!((told.share_version, told.auto_create_topics), (Some(2), Some(false)));
    assert_eq!(told.topic_name_prefix.as_deref(), Some("dlq."));
}

#[tokio::test]
async fn dead_letters_arrive_and_are_counted() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-count").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    clients.create_topic("count", 2, json!({})).await;
    let earliest = json!({"share.auto.offset.reset": "earliest"});
    world.apply("count", &kafka.direct(), json!({"topic": {"create": "Always"}, "groupConfig": earliest})).await;
    world.reaches("count", "Ready").await;
    clients.produce("count", 12, 2).await;
    clients.start_share_consumer("count", "count", "count", reject()).await;
    let backlog = async || world.get("count").await.status.and_then(|status| status.backlog).unwrap_or_default();
    let told = until("the backlog", backlog, |backlog| backlog.messages == 12).await;
    clients.stop_share_consumer("count").await;
    let (oldest, newest) = (told.oldest_time.expect("it is told"), told.newest_time.expect("it is told"));
    assert!(oldest <= newest && jiff::Timestamp::now().duration_since(newest.0).as_secs() < 120);
}

#[tokio::test]
async fn a_missing_topic_that_may_not_be_created_is_waited_for() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-missing").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    for (name, create, reason) in [("follow", "FollowBroker", "CreationNotAllowed"), ("never", "Never", "TopicMissing")]
    {
        world.apply(name, &kafka.direct(), json!({"topic": {"create": create}})).await;
        let object = world.reaches(name, reason).await;
        assert!(condition(&object, conditions::GROUP_CONFIGURED).is_some_and(|(status, ..)| status == "False"));
        assert_eq!(clients.config("GROUP", name, TOPIC_NAME).await.unwrap_or_default(), "");

        clients.create_topic(&format!("dlq.{name}"), 1, json!({CONSENT: "true"})).await;
        let object = world.reaches(name, "Ready").await;
        assert!(condition(&object, conditions::TOPIC_READY).is_some_and(|(_, reason, _)| reason == "Exists"));
    }
}

#[tokio::test]
async fn a_topic_without_consent_is_told_and_used_once_it_consents() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-consent").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    clients.create_topic("dlq.consent", 1, json!({})).await;
    world.apply("consent", &kafka.direct(), json!({})).await;
    let object = world.reaches("consent", "NotEnabledForGroups").await;
    assert!(ready(&object).is_some_and(|(_, message)| message.contains("--add-config errors.deadletterqueue.group")));
    assert_eq!(clients.config("TOPIC", "dlq.consent", CONSENT).await.as_deref(), Some("false"));

    clients.configure("TOPIC", "dlq.consent", CONSENT, Some("true")).await;
    world.reaches("consent", "Ready").await;
}

#[tokio::test]
async fn an_existing_topic_is_changed_only_where_adoption_is_allowed() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-adopt").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    clients.create_topic("dlq.adopt", 1, json!({CONSENT: "true"})).await;
    let with = |adopt: bool| json!({"topic": {"config": {"retention.ms": "3600000"}, "adopt": adopt}});
    world.apply("adopt", &kafka.direct(), with(false)).await;
    world.reaches("adopt", "AdoptionNotAllowed").await;
    assert_ne!(clients.config("TOPIC", "dlq.adopt", "retention.ms").await.as_deref(), Some("3600000"));

    world.apply("adopt", &kafka.direct(), with(true)).await;
    let object = world.reaches("adopt", "Ready").await;
    assert_eq!(clients.config("TOPIC", "dlq.adopt", "retention.ms").await.as_deref(), Some("3600000"));
    let told = object.status.and_then(|status| status.topic).expect("it is told");
    assert_eq!(told.origin, Some(TopicOrigin::Adopted));
}

#[tokio::test]
async fn partitions_grow_and_never_become_fewer() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-grow").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    let of = |partitions: i32| json!({"topic": {"create": "Always", "partitions": partitions}});
    world.apply("grow", &kafka.direct(), of(1)).await;
    world.reaches("grow", "Ready").await;
    world.apply("grow", &kafka.direct(), of(4)).await;
    world.reaches("grow", "Ready").await;
    assert_eq!(partitions(clients.topic("dlq.grow").await), Some(4));

    world.apply("grow", &kafka.direct(), of(2)).await;
    let object = world.reaches("grow", "PartitionDecreaseNotSupported").await;
    assert!(ready(&object).is_some_and(|(_, message)| message.contains("to 4 or more")));
    assert_eq!(partitions(clients.topic("dlq.grow").await), Some(4));
    world.apply("grow", &kafka.direct(), of(4)).await;
    world.reaches("grow", "Ready").await;
}

#[tokio::test]
async fn a_topic_deleted_by_hand_is_made_again_and_known_as_another() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-deleted").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    world.apply("deleted", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    let id = |object: &ShareGroupDLQ| object.status.clone().and_then(|status| status.topic).and_then(|topic| topic.id);
    let before = id(&world.reaches("deleted", "Ready").await);
    clients.ask("deleteTopic", json!({"topic": "dlq.deleted"})).await;
    let again = |object: &ShareGroupDLQ| id(object).is_some() && id(object) != before && is_ready(object);
    let object = until("the new topic", || world.get("deleted"), again).await;
    let topic = clients.topic("dlq.deleted").await.expect("it exists");
    assert_eq!(id(&object), topic["id"].as_str().and_then(standard_form));
    assert_eq!(world.events("deleted", "TopicCreated").await.len(), 1, "one series");
}

/// A topic id as Kafka's tools print it, in the form of other UUIDs.
fn standard_form(id: &str) -> Option<String> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(id).ok()?;
    TopicId::from_slice(&bytes).ok().map(|id| id.to_string())
}

fn is_ready(object: &ShareGroupDLQ) -> bool {
    ready(object).is_some_and(|(reason, _)| reason == "Ready")
}

#[tokio::test]
async fn a_topic_that_cannot_keep_dead_letters_is_told() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-unfit").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    clients.create_topic("dlq.compacted", 1, json!({CONSENT: "true", "cleanup.policy": "compact"})).await;
    world.apply("compacted", &kafka.direct(), json!({})).await;
    world.reaches("compacted", "CompactedTopic").await;
    let replicas = |factor: i32| json!({"topic": {"create": "Always", "replicationFactor": factor}});
    world.apply("replicas", &kafka.direct(), replicas(3)).await;
    let object = world.reaches("replicas", "InvalidConfig").await;
    assert!(ready(&object).is_some_and(|(_, message)| message.contains("INVALID_REPLICATION_FACTOR")));
    let nonsense = json!({"topic": {"create": "Always"}, "groupConfig": {"x.y": "1"}});
    world.apply("nonsense", &kafka.direct(), nonsense).await;
    world.reaches("nonsense", "InvalidConfig").await;

    clients.configure("TOPIC", "dlq.compacted", "cleanup.policy", Some("delete")).await;
    world.reaches("compacted", "Ready").await;
    world.apply("replicas", &kafka.direct(), replicas(1)).await;
    world.reaches("replicas", "Ready").await;
}

#[tokio::test]
async fn a_group_is_not_pointed_to_a_topic_it_reads() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-same").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    clients.create_topic("dlq.same", 1, json!({CONSENT: "true"})).await;
    clients.start_share_consumer("same", "same", "dlq.same", accept()).await;
    let members = async || clients.try_ask("shareGroup", json!({"group": "same"})).await;
    let reads =
        |group: &Result<Value, String>| group.as_ref().is_ok_and(|group| group.to_string().contains("dlq.same"));
    until("the consumer", members, reads).await.expect("the group is told");
    world.apply("same", &kafka.direct(), json!({})).await;
    world.reaches("same", "SameAsSource").await;
    assert_eq!(clients.config("GROUP", "same", TOPIC_NAME).await.unwrap_or_default(), "");
    clients.stop_share_consumer("same").await;
}
