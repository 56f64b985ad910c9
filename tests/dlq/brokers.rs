//! What the brokers allow, and what becomes of the objects while they are away.

use super::world::{Ask, World, condition, ready, spare_broker};
use crate::support::{Kafka, Options};
use redrive::api::{ShareGroupDLQ, conditions};
use serde_json::json;

#[tokio::test]
async fn below_share_version_2_nothing_is_begun_and_after_the_upgrade_it_is() {
    let kafka = Kafka::start(Options { share_version: 1, ..Options::default() }).await;
    let (world, clients) = (World::new("dlq-version").await, kafka.clients());
    let _operator = world.operator("a").await;
    world.apply("version", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    let object = world.reaches("version", "ShareVersionTooLow").await;
    assert!(ready(&object).is_some_and(|(_, message)| message.contains("upgrade --feature share.version=2")));
    assert_eq!(clients.topic("dlq.version").await, None);

    clients.ask("updateFeature", json!({"feature": "share.version", "level": 2})).await;
    let object = world.reaches("version", "Ready").await;
    assert!(condition(&object, conditions::SUPPORTED).is_some_and(|(status, ..)| status == "True"));
}

#[tokio::test]
async fn the_brokers_prefix_and_auto_creation_are_followed() {
    const PREFIX: &str = "errors.deadletterqueue.topic.name.prefix";
    const AUTO_CREATE: &str = "errors.deadletterqueue.auto.create.topics.enable";
    let (kafka, world) = (spare_broker().await, World::new("dlq-prefix").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    world.apply("letters", &kafka.direct(), json!({"topic": {"name": "dead.letters"}})).await;
    let object = world.reaches("letters", "PrefixMismatch").await;
    assert!(ready(&object).is_some_and(|(_, message)| message.contains("does not begin with dlq.")));

    clients.configure("BROKER", "", PREFIX, Some("dead.")).await;
    world.reaches("letters", "CreationNotAllowed").await;
    clients.configure("BROKER", "", AUTO_CREATE, Some("true")).await;
    world.reaches("letters", "Ready").await;
    // An absent name is made of the brokers' prefix.
    world.apply("named", &kafka.direct(), json!({})).await;
    let object = world.reaches("named", "Ready").await;
    assert_eq!(object.status.and_then(|status| status.topic).map(|topic| topic.name), Some("dead.named".into()));

    clients.configure("BROKER", "", AUTO_CREATE, None).await;
    clients.configure("BROKER", "", PREFIX, None).await;
    world.reaches("letters", "PrefixMismatch").await;
}

#[tokio::test]
async fn kafka_away_is_told_in_one_series_and_recovers_by_itself() {
    let (kafka, world) = (spare_broker().await, World::new("dlq-away").await);
    let _operator = world.operator("a").await;
    world.apply("away", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    let before = world.reaches("away", "Ready").await;

    kafka.kill(0);
    let object = world.reaches("away", "KafkaUnreachable").await;
    assert!(condition(&object, conditions::RECONCILING).is_some_and(|(status, ..)| status == "True"));
    assert!(condition(&object, conditions::TOPIC_READY).is_some_and(|(status, ..)| status == "Unknown"));
    let topic = |object: &ShareGroupDLQ| object.status.clone().and_then(|status| status.topic);
    assert_eq!(topic(&object), topic(&before), "what was known stays told");
    // With Retain an object goes at once, Kafka or not.
    world.apply("gone", &kafka.direct(), json!({})).await;
    world.reaches("gone", "KafkaUnreachable").await;
    world.objects().delete("gone", &Default::default()).await.expect("it can be deleted");
    assert!(world.objects().get_opt("gone").await.expect("the API server answers").is_none());

    kafka.restart(0).await;
    world.reaches("away", "Ready").await;
    assert_eq!(world.events("away", "KafkaUnreachable").await.len(), 1);
}
