//! What a spec asks for and this version can't do is refused by name; what it asks not to do is not done.

use super::world::{Ask, World, condition, ready};
use crate::support::Kafka;
use redrive::api::conditions;
use serde_json::{Value, json};

#[tokio::test]
async fn fields_without_behaviour_are_refused_by_name() {
    let world = World::new("dlq-unimplemented").await;
    let _operator = world.operator("a").await;
    let sasl = json!({"mechanism": "PLAIN", "secret": {"name": "user"}});
    let elsewhere = |field: &str, value: Value| json!({"kafka": {"bootstrapServers": null, field: value}});
    let rows = [
        ("tls", json!({"kafka": {"tls": {}}}), "spec.kafka.tls"),
        ("sasl", json!({"kafka": {"sasl": sasl}}), "spec.kafka.sasl"),
        ("strimzi", elsewhere("strimziCluster", json!({"name": "c"})), "spec.kafka.strimziCluster"),
        ("binding", elsewhere("bindingSecret", json!({"name": "s"})), "spec.kafka.bindingSecret"),
        ("provisioner", json!({"topic": {"provisioner": "KafkaTopic"}}), "spec.topic.provisioner"),
        ("deletion", json!({"deletionPolicy": "Delete"}), "spec.deletionPolicy"),
    ];
    for (name, more, field) in rows {
        world.apply(name, "127.0.0.1:1", more).await;
        let object = world.reaches(name, "NotImplemented").await;
        assert!(ready(&object).is_some_and(|(_, message)| message.starts_with(field)), "{name}");
        let stalled = condition(&object, conditions::STALLED).map(|(status, reason, _)| (status, reason));
        assert_eq!(stalled, Some(("True".into(), "NotImplemented".into())), "{name}");
    }
}

#[tokio::test]
async fn a_suspended_object_is_observed_and_not_carried_out() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-suspend").await);
    let _operator = world.operator("a").await;
    let with = |suspend: bool| json!({"topic": {"create": "Always"}, "suspend": suspend});
    world.apply("suspend", &kafka.direct(), with(true)).await;
    let object = world.reaches("suspend", "Suspended").await;
    assert!(condition(&object, conditions::SUSPENDED).is_some_and(|(status, ..)| status == "True"));
    assert_eq!(kafka.clients().topic("dlq.suspend").await, None);
    world.apply("suspend", &kafka.direct(), with(false)).await;
    let object = world.reaches("suspend", "Ready").await;
    assert!(condition(&object, conditions::SUSPENDED).is_some_and(|(status, ..)| status == "False"));
}
