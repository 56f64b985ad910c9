//! Pause, resume, cancel, a new pace: heard at once, also where Kafka does not answer.

use crate::support::{Kafka, Options, Story, accept, message, reason, until};
use serde_json::json;
use std::time::Instant;

#[tokio::test]
async fn a_pause_sends_nothing_more_and_a_resume_goes_on() {
    let story = Story::with_dead_letters("control-pause", 60).await;
    story.start_consumer(accept()).await;
    story.create_replay("slow", json!({"action": "Replay", "messagesPerSecond": 5})).await;
    story.until_replay("slow", "something sent", |status| status.progress.as_ref().is_some_and(|p| p.sent >= 2)).await;
    story.patch_replay("slow", json!({"suspend": true})).await;
    let paused = story.until_replay("slow", "a pause", |status| reason(status) == "Suspended").await;
    let sent = story.replayed("control-pause", "slow", "read_uncommitted").await.len();
    assert!(sent < 60);
    let settled =
        |status: &redrive::api::DLQReplayStatus| status.progress.as_ref().is_some_and(|p| p.settled == p.sent);
    story.until_replay("slow", "that what was sent settles all the same", settled).await;
    assert_eq!(story.replayed("control-pause", "slow", "read_uncommitted").await.len(), sent, "{paused:?}");
    story.patch_replay("slow", json!({"suspend": false, "messagesPerSecond": 1000})).await;
    assert_eq!(story.finished("slow").await.0, "AllSettled");
    assert_eq!(story.replayed("control-pause", "slow", "read_uncommitted").await.len(), 60);
}

#[tokio::test]
async fn a_cancel_finishes_at_once_and_the_rest_is_untouched() {
    let story = Story::with_dead_letters("control-cancel", 60).await;
    story.start_consumer(accept()).await;
    story.create_replay("slow", json!({"action": "Replay", "messagesPerSecond": 5})).await;
    story.until_replay("slow", "something sent", |status| status.progress.as_ref().is_some_and(|p| p.sent >= 2)).await;
    let asked = Instant::now();
    story.patch_replay("slow", json!({"cancel": true})).await;
    let (reason, status) = story.finished("slow").await;
    assert!(asked.elapsed().as_secs() < 5, "it took {:?}", asked.elapsed());
    assert_eq!(reason, "Cancelled", "{}", message(&status));
    let sent = story.replayed("control-cancel", "slow", "read_uncommitted").await.len();
    assert_eq!(status.progress.map(|progress| progress.sent), Some(sent as i64));
    story.create_replay("rest", json!({"action": "Replay", "messagesPerSecond": 1000})).await;
    assert_eq!(story.finished("rest").await.0, "AllSettled");
    assert_eq!(story.replayed("control-cancel", "rest", "read_uncommitted").await.len(), 60 - sent);
}

#[tokio::test]
async fn two_replays_of_a_group_follow_each_other() {
    let story = Story::with_dead_letters("control-queue", 40).await;
    story.start_consumer(accept()).await;
    story.create_replay("first", json!({"action": "Replay", "messagesPerSecond": 5, "selection": {"limit": 20}})).await;
    story.until_replay("first", "something sent", |status| status.progress.as_ref().is_some_and(|p| p.sent >= 1)).await;
    story.create_replay("second", json!({"action": "Replay"})).await;
    let waiting = story.until_replay("second", "waiting", |status| reason(status) == "WaitingForReplay").await;
    assert!(message(&waiting.status.expect("a status")).contains("control-queue/first"));
    story.patch_replay("first", json!({"messagesPerSecond": 1000})).await;
    assert_eq!(story.finished("first").await.0, "AllSettled");
    let (reason, status) = story.finished("second").await;
    assert!(["SelectionChanged", "AllSettled"].contains(&reason.as_str()), "{reason} {}", message(&status));
}

#[tokio::test]
async fn deleting_a_running_replay_is_a_cancel() {
    let story = Story::with_dead_letters("control-delete", 40).await;
    story.start_consumer(accept()).await;
    story.create_replay("slow", json!({"action": "Replay", "messagesPerSecond": 5})).await;
    story.until_replay("slow", "something sent", |status| status.progress.as_ref().is_some_and(|p| p.sent >= 1)).await;
    let asked = Instant::now();
    story.replays().delete("slow", &Default::default()).await.expect("taken");
    until(
        "that it is gone",
        || async { story.replays().get_opt("slow").await.expect("an answer").is_none() },
        |gone| *gone,
    )
    .await;
    assert!(asked.elapsed().as_secs() < 10);
    let ledger = story.clients.read(&story.ledger(), "read_committed").await;
    let ends = ledger
        .iter()
        .filter(|entry| entry.key.as_ref().is_some_and(|key| String::from_utf8_lossy(key).contains("/end/")));
    assert_eq!(ends.count(), 1, "the ledger knows the end");
}

#[tokio::test]
async fn a_cancel_is_answered_while_kafka_is_silent_and_nothing_is_sent_after_it() {
    let kafka = Kafka::own(Options::default()).await;
    let story = Story::with_dead_letters_on(kafka, "control-silent", 60).await;
    story.start_consumer(accept()).await;
    story.create_replay("slow", json!({"action": "Replay", "messagesPerSecond": 5})).await;
    story.until_replay("slow", "something sent", |status| status.progress.as_ref().is_some_and(|p| p.sent >= 2)).await;
    kafka.proxy.freeze();
    let asked = Instant::now();
    story.patch_replay("slow", json!({"cancel": true})).await;
    let (reason, status) = story.finished("slow").await;
    assert!(asked.elapsed().as_secs() < 5, "it took {:?}", asked.elapsed());
    assert_eq!(reason, "Cancelled", "{}", message(&status));
    kafka.proxy.thaw();
    // What was in doubt is resolved once Kafka answers, and then the figures are those of an independent reader.
    let resolved = |status: &redrive::api::DLQReplayStatus| status.in_doubt.is_empty();
    let replay = story.until_replay("slow", "that nothing is in doubt", resolved).await;
    let ends = || async {
        let ledger = story.clients.read(&story.ledger(), "read_committed").await;
        let is_end = |key: &Vec<u8>| String::from_utf8_lossy(key).contains("/end/");
        ledger.iter().any(|entry| entry.key.as_ref().is_some_and(is_end))
    };
    until("the end in the ledger", ends, |ended| *ended).await;
    let sent = story.replayed("control-silent", "slow", "read_committed").await.len();
    let told =
        |replay: &redrive::api::DLQReplay| replay.status.as_ref().and_then(|s| s.progress.as_ref().map(|p| p.sent));
    let last = until("the last figures", || story.replay("slow"), |replay| told(replay) == Some(sent as i64)).await;
    assert_eq!(told(&last), Some(sent as i64), "{replay:?}");
    assert_eq!(crate::support::reason(&last.status.expect("a status")), "Cancelled");
}

#[tokio::test]
async fn a_broker_that_dies_and_comes_back_is_waited_for() {
    let kafka = Kafka::own(Options::default()).await;
    let story = Story::with_dead_letters_on(kafka, "control-broker", 40).await;
    story.start_consumer(accept()).await;
    story.create_replay("patient", json!({"action": "Replay", "messagesPerSecond": 5})).await;
    story
        .until_replay("patient", "something sent", |status| status.progress.as_ref().is_some_and(|p| p.sent >= 2))
        .await;
    kafka.kill(0);
    story.until_replay("patient", "that Kafka is missed", |status| reason(status) == "KafkaUnreachable").await;
    kafka.restart(0).await;
    story.patch_replay("patient", json!({"messagesPerSecond": 1000})).await;
    let (reason, status) = story.finished("patient").await;
    let told = status.progress.clone().unwrap_or_default();
    let committed = story.replayed("control-broker", "patient", "read_committed").await;
    assert_eq!(told.sent as usize, committed.len(), "{reason}: {}", message(&status));
    assert_eq!((told.sent + told.uncertain, told.remaining), (40, 0), "{reason}: {}", message(&status));
}

#[tokio::test]
async fn without_its_share_group_dlq_a_replay_stops() {
    let story = Story::with_dead_letters("control-gone", 40).await;
    story.start_consumer(accept()).await;
    story.create_replay("slow", json!({"action": "Replay", "messagesPerSecond": 5})).await;
    story.until_replay("slow", "something sent", |status| status.progress.as_ref().is_some_and(|p| p.sent >= 1)).await;
    story.dlqs().delete("control-gone", &Default::default()).await.expect("taken");
    let (reason, status) = story.finished("slow").await;
    assert_eq!(reason, "DLQGone", "{}", message(&status));
    let sent = story.replayed("control-gone", "slow", "read_uncommitted").await.len();
    assert_eq!(status.progress.map(|progress| progress.sent), Some(sent as i64));
}
