//! What others change is put back, and an object at rest causes no writes.

use super::world::{Ask, CONSENT, TOPIC_NAME, World, ready};
use crate::support::{Kafka, Operator, until};
use kube::ResourceExt;
use serde_json::json;
use std::time::Duration;

/// How many reconciles have found nothing to do.
async fn idle_looks(operator: &Operator) -> u64 {
    let page = operator.get("/metrics").await.unwrap_or_default();
    let line = page.lines().find(|line| line.starts_with("redrive_reconciles") && line.contains("Unchanged"));
    line.and_then(|line| line.rsplit_once(' ')).and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
}

async fn until_looked(operator: &Operator, more: u64) {
    let looked = idle_looks(operator).await;
    until("further looks", || idle_looks(operator), |looks| *looks >= looked + more).await;
}

#[tokio::test]
async fn drift_is_put_back_within_the_resync_time_and_told_once() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-drift").await);
    let (operator, clients) = (world.operator("a").await, kafka.clients());
    world.apply("drift", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    world.reaches("drift", "Ready").await;

    clients.configure("GROUP", "drift", TOPIC_NAME, None).await;
    let points = || clients.config("GROUP", "drift", TOPIC_NAME);
    until("the group's config", points, |name| name.as_deref() == Some("dlq.drift")).await;
    // The topic's turn: Redrive made it, so its consent is put back as well.
    clients.configure("TOPIC", "dlq.drift", CONSENT, Some("false")).await;
    let consents = || clients.config("TOPIC", "dlq.drift", CONSENT);
    until("the topic's consent", consents, |consent| consent.as_deref() == Some("true")).await;
    world.reaches("drift", "Ready").await;

    // Several looks later each of the two corrections is still told once.
    until_looked(&operator, 3).await;
    let told = world.events("drift", "DriftCorrected").await;
    assert_eq!(told.iter().map(|event| event.series.is_some()).collect::<Vec<_>>(), [false, false], "{told:#?}");
}

#[tokio::test]
async fn an_object_at_rest_is_not_written() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-rest").await);
    let operator = world.operator("a").await;
    world.apply("ready", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    world.apply("unready", &kafka.direct(), json!({})).await;
    world.reaches("ready", "Ready").await;
    world.reaches("unready", "CreationNotAllowed").await;
    let versions =
        async || (world.get("ready").await.resource_version(), world.get("unready").await.resource_version());
    let before = versions().await;
    until_looked(&operator, 6).await;
    assert_eq!(versions().await, before);
}

#[tokio::test]
async fn the_older_of_two_objects_wins_and_hands_over_when_it_is_deleted() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-rivals").await);
    let (_operator, clients) = (world.operator("a").await, kafka.clients());
    let of = json!({"groupId": "rivals", "topic": {"create": "Always"}});
    world.apply("first", &kafka.direct(), of.clone()).await;
    world.reaches("first", "Ready").await;
    let topic = clients.topic("dlq.rivals").await.map(|topic| topic["id"].clone());

    // Ages are told in seconds: the second one has to be younger.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    // The same cluster by another address.
    world.apply("second", &kafka.direct().replace("127.0.0.1", "localhost"), of).await;
    let second = world.reaches("second", "ResourceConflict").await;
    assert!(ready(&second).is_some_and(|(_, message)| message.starts_with("dlq-rivals/first is older")));

    world.objects().delete("first", &Default::default()).await.expect("it can be deleted");
    world.reaches("second", "Ready").await;
    assert_eq!(clients.topic("dlq.rivals").await.map(|topic| topic["id"].clone()), topic);
    assert_eq!(clients.config("GROUP", "rivals", TOPIC_NAME).await.as_deref(), Some("dlq.rivals"));
}
