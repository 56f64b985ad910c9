//! The canary: it stops while the consumer is broken, and finishes once it is mended.

use crate::support::{Story, accept, message, reject, until};
use serde_json::json;
use std::collections::BTreeSet;

#[tokio::test]
async fn a_consumer_that_rejects_everything_stops_it_after_the_first_step_and_the_rest_is_untouched() {
    let story = Story::with_dead_letters("canary-rejects", 60).await;
    story.start_consumer(reject()).await;
    story.create_replay("try", json!({"action": "Replay"})).await;
    let (reason, status) = story.finished("try").await;
    assert_eq!(reason, "MessagesReturned", "{}", message(&status));
    let sent = story.replayed("canary-rejects", "try", "read_uncommitted").await;
    assert_eq!(sent.len(), 10);
    let progress = status.progress.clone().unwrap_or_default();
    assert_eq!((progress.selected, progress.sent, progress.remaining), (60, 10, 50));
    assert!(!status.returned.is_empty());
    for returned in &status.returned {
        assert_eq!(returned.message, "Offset rejected by client.");
        assert!(sent.contains(&format!("dlq.canary-rejects-{}@{}", returned.partition, returned.offset)));
    }
    assert!(message(&status).contains("came back") && message(&status).contains("Offset rejected by client."));
    let letters = until("what came back", || story.dead_letters(), |letters| letters.len() >= 70).await;
    assert_eq!(letters.len(), 70, "the dead-letter topic grows by the first step and no more");
}

#[tokio::test]
async fn a_healthy_consumer_finishes_with_every_message_settled() {
    let story = Story::with_dead_letters("canary-healthy", 120).await;
    story.start_consumer(accept()).await;
    story.create_replay("all", json!({"action": "Replay", "messagesPerSecond": 1000})).await;
    let (reason, status) = story.finished("all").await;
    assert_eq!(reason, "AllSettled", "{}", message(&status));
    assert_eq!(status.steps.iter().map(|step| step.size).collect::<Vec<_>>(), [10, 20, 40, 50]);
    let progress = status.progress.unwrap_or_default();
    assert_eq!((progress.sent, progress.settled, progress.returned, progress.remaining), (120, 120, 0, 0));
    let sent = story.replayed("canary-healthy", "all", "read_uncommitted").await;
    assert_eq!(sent.len(), 120);
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), 120, "nothing is there twice");
    assert_eq!(story.dead_letters().await.len(), 120);
}

#[tokio::test]
async fn a_consumer_that_is_fixed_between_two_replays() {
    let story = Story::with_dead_letters("canary-fixed", 30).await;
    story.start_consumer(reject()).await;
    story.create_replay("before", json!({"action": "Replay"})).await;
    assert_eq!(story.finished("before").await.0, "MessagesReturned");
    until("what came back", || story.dead_letters(), |letters| letters.len() == 40).await;
    story.clients.change_rules("canary-fixed", accept()).await;
    story.create_replay("after", json!({"action": "Replay"})).await;
    let (reason, status) = story.finished("after").await;
    assert_eq!(reason, "AllSettled", "{}", message(&status));
    let sent = story.replayed("canary-fixed", "after", "read_committed").await;
    assert_eq!(sent.len(), 30, "20 that were never replayed and 10 that came back");
    let attempts = story.clients.read("canary-fixed", "read_committed").await;
    let second = attempts.iter().filter(|record| record.header("redrive.attempt").as_deref() == Some("2"));
    assert_eq!(second.count(), 10);
}

#[tokio::test]
async fn without_a_consumer_nothing_settles_and_the_first_step_is_the_last() {
    let story = Story::with_dead_letters("canary-nobody", 30).await;
    story.create_replay("try", json!({"action": "Replay", "canary": {"stepTimeoutSeconds": 3}})).await;
    let (reason, status) = story.finished("try").await;
    assert_eq!(reason, "NoneSettled", "{}", message(&status));
    assert_eq!(story.replayed("canary-nobody", "try", "read_uncommitted").await.len(), 10);
}

#[tokio::test]
async fn live_traffic_of_other_producers_does_not_keep_it_from_settling() {
    let story = Story::with_dead_letters("canary-traffic", 40).await;
    let record = json!({"value": "dHJhZmZpYw=="});
    story
        .clients
        .ask(
            "startTraffic",
            json!({"name": "canary-traffic", "topic": "canary-traffic", "records": [record], "everyMillis": 5}),
        )
        .await;
    story.start_consumer(accept()).await;
    story.create_replay("try", json!({"action": "Replay", "messagesPerSecond": 1000})).await;
    let (reason, status) = story.finished("try").await;
    story.clients.ask("stopTraffic", json!({"name": "canary-traffic"})).await;
    assert_eq!(reason, "AllSettled", "{}", message(&status));
    assert_eq!(story.replayed("canary-traffic", "try", "read_committed").await.len(), 40);
}

#[tokio::test]
async fn with_copies_and_without_the_original_is_sent_with_its_headers() {
    for (name, copy) in [("canary-copies", true), ("canary-bare", false)] {
        let story = Story::begin(name).await;
        story.apply_dlq(json!({"copyRecords": copy})).await;
        story.until_dlq("Ready", "True").await;
        story.clients.produce(name, 10, 2).await;
        story.reject_until(10).await;
        let letters = story.dead_letters().await;
        assert!(letters.iter().all(|letter| letter.value.is_some() == copy && letter.header("app.id").is_none()));
        story.start_consumer(accept()).await;
        story.create_replay("try", json!({"action": "Replay"})).await;
        assert_eq!(story.finished("try").await.0, "AllSettled");
        let found = story.clients.read(name, "read_committed").await;
        let (originals, replayed): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|record| record.header("redrive.replay").is_none());
        assert_eq!(replayed.len(), 10);
        for record in replayed {
            let original = originals.iter().find(|original| original.key == record.key).expect("its original");
            assert_eq!(record.value, original.value);
            assert_eq!(record.headers[..original.headers.len()], original.headers);
            assert_eq!(record.partition, original.partition);
            let from = format!("{name}-{}@{}", original.partition, original.offset);
            assert_eq!(record.header("redrive.replayed_from"), Some(from));
        }
    }
}

#[tokio::test]
async fn a_replay_to_a_scratch_topic_keeps_the_original_headers_and_adds_where_it_came_from() {
    let story = Story::with_dead_letters("canary-scratch", 15).await;
    story.clients.create_topic("canary-scratch-tests", 1, json!({})).await;
    let testers =
        json!({"resource": "GROUP", "name": "canary-testers", "set": {"share.auto.offset.reset": "earliest"}});
    story.clients.ask("alterConfigs", testers).await;
    story.clients.start_share_consumer("canary-testers", "canary-testers", "canary-scratch-tests", accept()).await;
    let target = json!({"topic": "canary-scratch-tests", "groupId": "canary-testers"});
    story.create_replay("try", json!({"action": "Replay", "target": target})).await;
    let (reason, status) = story.finished("try").await;
    assert_eq!(reason, "AllSettled", "{}", message(&status));
    let found = story.clients.read("canary-scratch-tests", "read_committed").await;
    assert_eq!(found.len(), 15);
    for record in &found {
        assert!(record.header("app.id").is_some_and(|id| id.starts_with("id-")));
        assert!(record.header("redrive.replayed_from").is_some_and(|from| from.starts_with("canary-scratch-")));
        assert_eq!(record.header("__dlq.errors.group").as_deref(), Some("canary-scratch"));
    }
    assert_eq!(story.clients.read("canary-scratch", "read_committed").await.len(), 15, "the source gets nothing");
}
