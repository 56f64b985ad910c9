//! A preview tells what a replay would do, and changes nothing.

use crate::support::{Story, accept, message, reason, until};
use redrive::api::{Preview, ProblemType};
use serde_json::{Value, json};

async fn snapshot(story: &Story) -> Value {
    story.clients.ask("snapshot", json!({"about": story.name})).await
}

fn has(preview: &Preview, problem: ProblemType) -> bool {
    preview.problems.iter().any(|one| one.type_ == problem)
}

#[tokio::test]
async fn a_preview_reports_missing_targets_targets_without_consumers_and_repeat_replays_and_changes_nothing() {
    let story = Story::with_dead_letters("preview-report", 12).await;
    let before = snapshot(&story).await;

    story.create_replay("idle", json!({})).await;
    let preview = story.previewed("idle").await;
    assert_eq!((preview.messages, preview.entries), (12, 12));
    assert!(has(&preview, ProblemType::NoLiveConsumers), "{:?}", preview.problems);
    assert!(
        preview.summary.starts_with("no member of group preview-report reads preview-report"),
        "{}",
        preview.summary
    );
    let target = &preview.targets[0];
    assert_eq!(
        (target.topic.as_str(), target.exists, target.authorized, target.live_consumers),
        ("preview-report", true, true, 0)
    );
    assert_eq!(preview.breakdown.iter().map(|row| row.count).sum::<i64>(), 12);
    assert_eq!(preview.payload.as_ref().map(|payload| payload.original), Some(12));

    story.create_replay("nowhere", json!({"target": {"topic": "preview-report-missing", "groupId": "x"}})).await;
    let preview = story.previewed("nowhere").await;
    assert!(has(&preview, ProblemType::TargetMissing), "{:?}", preview.problems);
    assert!(
        preview.summary.starts_with("target topic preview-report-missing does not exist (12 messages)"),
        "{}",
        preview.summary
    );
    assert_eq!(snapshot(&story).await, before, "a preview changed Kafka");

    story.start_consumer(crate::support::reject()).await;
    story.create_replay("again", json!({"action": "Replay", "selection": {"limit": 4}})).await;
    let (reason, _) = story.finished("again").await;
    assert_eq!(reason, "MessagesReturned");
    until("what came back", || story.dead_letters(), |letters| letters.len() == 16).await;
    story.create_replay("repeat", json!({})).await;
    let preview = story.previewed("repeat").await;
    let repeated = preview.already_replayed.clone().expect("earlier replays");
    assert_eq!(preview.messages, 12, "8 never replayed, 4 that came back");
    assert_eq!(repeated.last_replay.as_deref(), Some("preview-report/again"));
    assert!(has(&preview, ProblemType::AlreadyReplayed) && !has(&preview, ProblemType::NoLiveConsumers));
    assert_eq!(preview.sample.iter().filter(|one| one.attempt == 2).count(), 4);
}

#[tokio::test]
async fn a_preview_names_other_readers_and_they_block() {
    let story = Story::with_dead_letters("preview-readers", 4).await;
    story
        .clients
        .ask("startConsumer", json!({"name": "analytics", "group": "analytics-pr", "topics": ["preview-readers"]}))
        .await;
    let reads = || story.clients.ask("snapshot", json!({"about": "analytics-pr"}));
    until("the other reader's offsets", reads, |seen: &Value| {
        seen["groups"]["analytics-pr"]["offsets"].as_array().is_some_and(|list| !list.is_empty())
    })
    .await;
    story.start_consumer(accept()).await;
    story.create_replay("blocked", json!({"action": "Replay"})).await;
    let (reason, status) = story.finished("blocked").await;
    assert_eq!(reason, "Blocked");
    assert!(message(&status).contains("analytics-pr (Consumer"), "{}", message(&status));
    assert!(story.replayed("preview-readers", "blocked", "read_uncommitted").await.is_empty());
    story.create_replay("allowed", json!({"action": "Replay", "allowOtherReaders": ["analytics-pr"]})).await;
    assert_eq!(story.finished("allowed").await.0, "AllSettled");
}

#[tokio::test]
async fn a_selection_that_matches_nothing_is_finished_at_once() {
    let story = Story::with_dead_letters("preview-nothing", 2).await;
    for (name, action) in [("look", "Preview"), ("run", "Replay")] {
        story.create_replay(name, json!({"action": action, "selection": {"messageContains": "no such text"}})).await;
        assert_eq!(story.finished(name).await.0, "NothingSelected");
    }
}

#[tokio::test]
async fn fields_of_later_versions_are_refused_by_name() {
    let story = Story::with_dead_letters("preview-refused", 2).await;
    let uses = [
        ("dismiss", json!({"action": "Dismiss"}), "spec.action: Dismiss"),
        ("keys", json!({"selection": {"keys": ["a"]}}), "spec.selection.keys"),
        ("headers", json!({"selection": {"headers": [{"name": "a", "value": "b"}]}}), "spec.selection.headers"),
        ("at-once", json!({"strategy": "AllAtOnce"}), "spec.strategy: AllAtOnce"),
        ("skip", json!({"onUnsendable": "Skip"}), "spec.onUnsendable: Skip"),
        ("resume", json!({"onInterruption": "Resume"}), "spec.onInterruption: Resume"),
        ("by-key", json!({"target": {"topic": "t", "partitioning": "Key"}}), "spec.target.partitioning: Key"),
    ];
    for (name, spec, field) in uses {
        story.create_replay(name, spec).await;
        let (reason, status) = story.finished(name).await;
        assert_eq!(reason, "Blocked", "{name}");
        assert!(message(&status).contains(field), "{name}: {}", message(&status));
    }
}

#[tokio::test]
async fn a_preview_waits_for_its_share_group_dlq_and_is_taken_by_itself() {
    let story = Story::begin("preview-waits").await;
    story.create_replay("early", json!({})).await;
    story.until_replay("early", "WaitingForDLQ", |status| reason(status) == "WaitingForDLQ").await;
    story.apply_dlq(json!({})).await;
    assert_eq!(story.finished("early").await.0, "NothingSelected");
}
