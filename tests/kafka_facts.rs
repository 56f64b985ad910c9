//! What of Kafka's behaviour the product rests on. A later Kafka that changes any of it is noticed here.

use crate::support::{Found, Kafka, Options, accept, reject, until};
use serde_json::{Value, json};

/// A group whose consumer rejects ten records of a topic of one partition: the dead letters.
async fn rejected(kafka: &Kafka, name: &str, group_configs: Value) -> Vec<Found> {
    let clients = kafka.clients();
    let letters = format!("dlq.{name}");
    clients.create_topic(name, 1, json!({})).await;
    clients.create_topic(&letters, 1, json!({"errors.deadletterqueue.group.enable": "true"})).await;
    let mut configs = json!({"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": letters});
    configs.as_object_mut().expect("an object").extend(group_configs.as_object().cloned().unwrap_or_default());
    clients.ask("alterConfigs", json!({"resource": "GROUP", "name": name, "set": configs})).await;
    clients.produce(name, 10, 1).await;
    clients.start_share_consumer(name, name, name, reject()).await;
    let look = || clients.read(&letters, "read_uncommitted");
    let found = until("ten dead letters", look, |found: &Vec<Found>| found.len() >= 10).await;
    clients.stop_share_consumer(name).await;
    found
}

#[tokio::test]
async fn a_dead_letter_names_where_its_message_was_and_holds_none_of_its_headers() {
    let kafka = Kafka::shared().await;
    let letters = rejected(kafka, "facts-bare", json!({})).await;
    assert_eq!(letters.len(), 10);
    for (offset, letter) in letters.iter().enumerate() {
        assert_eq!((&letter.key, &letter.value), (&None, &None), "no copy unless it is asked for");
        let expected = [
            ("__dlq.errors.topic", "facts-bare"),
            ("__dlq.errors.partition", "0"),
            ("__dlq.errors.offset", &offset.to_string()),
            ("__dlq.errors.group", "facts-bare"),
            ("__dlq.errors.delivery.count", "1"),
            ("__dlq.errors.message", "Offset rejected by client."),
        ];
        for (header, value) in expected {
            assert_eq!(letter.header(header).as_deref(), Some(value), "{header}");
        }
        assert_eq!(letter.headers.len(), expected.len(), "{:?}", letter.headers);
    }
    let copies = rejected(kafka, "facts-copied", json!({"errors.deadletterqueue.copy.record.enable": "true"})).await;
    assert!(copies.iter().all(|copy| copy.value.is_some() && copy.header("app.id").is_none()));
}

#[tokio::test]
async fn a_record_that_is_delivered_too_often_names_the_other_cause() {
    let clients = Kafka::shared().await.clients();
    let name = "facts-limit";
    clients.create_topic(name, 1, json!({})).await;
    clients.create_topic("dlq.facts-limit", 1, json!({"errors.deadletterqueue.group.enable": "true"})).await;
    let configs = json!({
        "share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": "dlq.facts-limit",
        "share.delivery.count.limit": "2",
    });
    clients.ask("alterConfigs", json!({"resource": "GROUP", "name": name, "set": configs})).await;
    clients.produce(name, 1, 1).await;
    clients.start_share_consumer(name, name, name, json!({"default": "RELEASE"})).await;
    let look = || clients.read("dlq.facts-limit", "read_uncommitted");
    let letters = until("the dead letter", look, |found: &Vec<Found>| !found.is_empty()).await;
    clients.stop_share_consumer(name).await;
    assert_eq!(
        letters[0].header("__dlq.errors.message").as_deref(),
        Some("Offset delivery count exceeded the threshold.")
    );
    assert_eq!(letters[0].header("__dlq.errors.delivery.count").as_deref(), Some("2"));
}

#[tokio::test]
async fn a_topic_consents_to_dead_letters_only_where_it_says_so() {
    let clients = Kafka::shared().await.clients();
    clients.create_topic("dlq.facts-consent", 1, json!({})).await;
    let arguments = json!({"resource": "TOPIC", "name": "dlq.facts-consent"});
    let configs = clients.ask("configs", arguments).await;
    assert_eq!(configs["errors.deadletterqueue.group.enable"], json!("false"), "{configs}");
}

#[tokio::test]
async fn three_brokers_dead_letter_with_three_replicas() {
    let kafka = Kafka::start(Options { nodes: 3, ..Options::default() }).await;
    let letters = rejected(&kafka, "facts-three", json!({})).await;
    assert_eq!(letters.len(), 10);
    let topic = kafka.clients().ask("describeTopic", json!({"topic": "dlq.facts-three"})).await;
    assert_eq!(topic["replicationFactor"], json!(3));
    kafka.clients().start_share_consumer("facts-three", "facts-three", "facts-three", accept()).await;
}
