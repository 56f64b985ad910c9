//! The operator is killed in the middle of a replay, at the worst moments, and another takes over.
//!
//! What reached the target is counted by an independent consumer: readers with read_committed must find exactly what is
//! listed as sent, readers with read_uncommitted exactly that and what is listed as uncertain, and nothing twice.

use crate::support::proxy::{END_TXN, Gate, PRODUCE, Side};
use crate::support::{Operator, Story, accept, message};
use redrive::api::{DLQReplayStatus, PartitionRanges};
use redrive::kafka::offset_set::OffsetSet;
use serde_json::json;

fn letters(topic: &str, lists: &[&[PartitionRanges]]) -> Vec<String> {
    let one = |list: &PartitionRanges| {
        let set = OffsetSet::parse(&list.ranges).expect("ranges");
        set.iter().map(|offset| format!("{topic}-{}@{offset}", list.partition)).collect::<Vec<_>>()
    };
    let mut letters: Vec<_> = lists.iter().flat_map(|list| list.iter()).flat_map(one).collect();
    letters.sort();
    letters
}

/// What Kafka holds is what the status says, to both kinds of readers.
async fn is_told_truly(story: &Story, replay: &str, status: &DLQReplayStatus) {
    let dlq = story.dead_letter_topic();
    let committed = story.replayed(&story.name, replay, "read_committed").await;
    let appended = story.replayed(&story.name, replay, "read_uncommitted").await;
    assert_eq!(committed, letters(&dlq, &[&status.sent]), "sent");
    assert_eq!(appended, letters(&dlq, &[&status.sent, &status.uncertain]), "sent and uncertain");
}

/// When what was held of a killed operator arrives after all.
#[derive(PartialEq)]
enum Arrives {
    /// Before another has taken over.
    Early,
    /// When another has already found out what was sent: too late to change it.
    Late,
    /// While the operator still runs, but can't reach the API server any more.
    Alive,
}

/// Kills the operator once `gate` is reached; a second one takes over, and a new DLQReplay sends exactly the rest.
async fn kill_at(name: &str, gate: impl FnOnce(&Story) -> Gate, arrives: Arrives) -> DLQReplayStatus {
    let story = Story::with_dead_letters(name, 60).await;
    story.start_consumer(accept()).await;
    let held = story.kafka.proxy.hold(gate(&story));
    story.create_replay("cut", json!({"action": "Replay", "messagesPerSecond": 1000})).await;
    held.reached().await;
    if arrives == Arrives::Alive {
        story.operator.api.freeze();
        held.release();
        // The ledger has the slice when read_committed readers see it.
        let see = || story.replayed(&story.name, "cut", "read_committed");
        crate::support::until("the committed slice", see, |seen| !seen.is_empty()).await;
    }
    story.operator.kill();
    story.operator.ended().await;
    if arrives == Arrives::Early {
        held.release();
    }
    let _second = Operator::start(name, &[]).await;
    let (reason, status) = story.finished("cut").await;
    assert_eq!(reason, "Interrupted", "{}", message(&status));
    held.release();
    is_told_truly(&story, "cut", &status).await;
    finish_the_rest(&story, &status).await;
    status
}

async fn finish_the_rest(story: &Story, interrupted: &DLQReplayStatus) {
    story.create_replay("rest", json!({"action": "Replay", "messagesPerSecond": 1000})).await;
    let (reason, status) = story.finished("rest").await;
    assert_eq!(reason, "AllSettled", "{}", message(&status));
    let dlq = story.dead_letter_topic();
    let mut all = letters(&dlq, &[&interrupted.sent, &interrupted.uncertain, &status.sent]);
    let expected: Vec<_> = (0..60).map(|offset| format!("{dlq}-0@{offset}")).collect();
    all.sort_by_key(|letter| letter.rsplit('@').next().and_then(|offset| offset.parse::<i64>().ok()));
    assert_eq!(all, expected, "each message once, in one of the two");
    let rest = story.replayed(&story.name, "rest", "read_uncommitted").await;
    assert_eq!(rest, letters(&dlq, &[&status.sent]));
}

fn gate(api: i16, nth: u32, side: Side, contains: Vec<String>) -> Gate {
    Gate { api, contains, nth, side }
}

#[tokio::test]
async fn an_owner_killed_before_an_acknowledgement_is_told_as_interrupted_with_the_sent_messages_listed() {
    // Appended to the target, not acknowledged: nothing is sent, the slice is uncertain.
    let at = |story: &Story| gate(PRODUCE, 1, Side::Answer, vec![story.ledger(), "redrive.dead_letter".into()]);
    let status = kill_at("takeover-unacked", at, Arrives::Early).await;
    assert_eq!(letters("", &[&status.sent]).len(), 0);
    assert!(!status.uncertain.is_empty());
}

#[tokio::test]
async fn an_owner_killed_after_the_acknowledgement_and_before_the_ledger_is_told_as_interrupted_with_the_sent_messages_listed()
 {
    let at = |story: &Story| gate(PRODUCE, 1, Side::Request, vec![story.ledger(), "\"kind\":\"outcome\"".into()]);
    let status = kill_at("takeover-unledgered", at, Arrives::Late).await;
    assert_eq!(letters("", &[&status.sent]).len(), 0);
    assert!(!status.uncertain.is_empty());
}

#[tokio::test]
async fn an_owner_killed_before_the_commit_is_told_as_interrupted_with_the_sent_messages_listed() {
    // Claim, start and intent are transactions of their own; the fourth is the first slice.
    let at = |story: &Story| gate(END_TXN, 4, Side::Request, vec![story.ledger()]);
    let status = kill_at("takeover-uncommitted", at, Arrives::Late).await;
    assert_eq!(letters("", &[&status.sent]).len(), 0);
}

#[tokio::test]
async fn an_owner_killed_with_the_answer_of_the_commit_on_its_way_is_told_as_interrupted_with_the_sent_messages_listed()
{
    let at = |story: &Story| gate(END_TXN, 4, Side::Answer, vec![story.ledger()]);
    let status = kill_at("takeover-committed", at, Arrives::Early).await;
    assert_eq!(letters("", &[&status.sent]).len(), 10, "committed is sent, whoever heard of it");
}

#[tokio::test]
async fn an_owner_killed_after_the_ledger_and_before_the_status_is_told_as_interrupted_with_the_sent_messages_listed() {
    let at = |story: &Story| gate(END_TXN, 4, Side::Answer, vec![story.ledger()]);
    let status = kill_at("takeover-unreported", at, Arrives::Alive).await;
    assert!(letters("", &[&status.sent]).len() >= 10);
}

#[tokio::test]
async fn a_stopped_leader_that_wakes_up_sends_nothing_more() {
    let story = Story::with_dead_letters("takeover-stopped", 60).await;
    story.start_consumer(accept()).await;
    let held =
        story.kafka.proxy.hold(gate(PRODUCE, 2, Side::Request, vec![story.ledger(), "redrive.dead_letter".into()]));
    story.create_replay("cut", json!({"action": "Replay", "messagesPerSecond": 1000})).await;
    held.reached().await;
    story.operator.stop();
    let _second = Operator::start("takeover-stopped", &[]).await;
    let (reason, status) = story.finished("cut").await;
    assert_eq!(reason, "Interrupted", "{}", message(&status));
    held.release();
    story.operator.cont();
    let metrics = || async { story.operator.get("/metrics").await.unwrap_or_default() };
    crate::support::until("that it knows it leads no more", metrics, |page: &String| page.contains("redrive_leader 0"))
        .await;
    is_told_truly(&story, "cut", &status).await;
    finish_the_rest(&story, &status).await;
}

#[tokio::test]
async fn a_graceful_end_hands_over_and_is_no_interruption() {
    let story = Story::with_dead_letters("takeover-graceful", 60).await;
    story.start_consumer(accept()).await;
    story.create_replay("goes-on", json!({"action": "Replay", "messagesPerSecond": 10})).await;
    story
        .until_replay("goes-on", "something sent", |status| status.progress.as_ref().is_some_and(|p| p.sent >= 10))
        .await;
    story.operator.terminate();
    story.operator.ended().await;
    let _second = Operator::start("takeover-graceful", &[]).await;
    story.patch_replay("goes-on", json!({"messagesPerSecond": 1000})).await;
    let (reason, status) = story.finished("goes-on").await;
    assert_eq!(reason, "AllSettled", "{}", message(&status));
    assert_eq!(story.replayed("takeover-graceful", "goes-on", "read_uncommitted").await.len(), 60);
}
