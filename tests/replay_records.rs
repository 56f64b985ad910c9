//! What is sent is the record as it was, byte for byte, and only what is this group's and can be had.

use crate::support::{Found, Story, accept, message, until};
use redrive::api::ProblemType;
use serde_json::{Value, json};

/// The record without its place and the headers that Redrive adds.
fn as_it_was(record: &Found) -> Found {
    let own = record.headers.iter().filter(|(key, _)| !key.starts_with(b"redrive."));
    Found { offset: 0, headers: own.cloned().collect(), ..record.clone() }
}

#[tokio::test]
async fn null_and_empty_and_headers_of_any_kind_are_replayed_as_they_were() {
    let story = Story::begin("records-exact").await;
    story.apply_dlq(json!({})).await;
    story.until_dlq("Ready", "True").await;
    // Base64: "a", nothing at all, bytes that are no UTF-8.
    let headers = json!([["a", "MQ=="], ["b", null], ["a", "Mg=="], ["c", ""], ["d", "//79"]]);
    let records = json!([
        {"partition": 0, "key": "YQ==", "value": "YQ==", "headers": headers},
        {"partition": 0, "key": null, "value": "YQ=="},
        {"partition": 0, "key": "", "value": "YQ=="},
        {"partition": 0, "key": "YQ==", "value": null},
        {"partition": 0, "key": "YQ==", "value": ""},
        {"partition": 0, "key": "//79", "value": "AAEC", "headers": [["redrive.attempt", "OTk="]]},
    ]);
    for codec in ["none", "zstd", "gzip", "lz4", "snappy"] {
        let properties = json!({"compression.type": codec});
        let arguments = json!({"topic": "records-exact", "records": records, "properties": properties});
        story.clients.ask("produce", arguments).await;
    }
    story.reject_until(30).await;
    story.start_consumer(accept()).await;
    story.create_replay("try", json!({"action": "Replay", "messagesPerSecond": 1000})).await;
    let (reason, status) = story.finished("try").await;
    assert_eq!(reason, "AllSettled", "{}", message(&status));
    let found = story.clients.read("records-exact", "read_committed").await;
    let (originals, replayed): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|record| record.header("redrive.replay").is_none());
    assert_eq!((originals.len(), replayed.len()), (30, 30));
    for record in &replayed {
        let from = record.header("redrive.replayed_from").unwrap_or_default();
        let original = originals.iter().find(|one| from == format!("records-exact-0@{}", one.offset));
        assert_eq!(as_it_was(record), as_it_was(original.expect("its original")), "from {from}");
        assert_eq!(record.header("redrive.attempt").as_deref(), Some("1"), "ours takes the place of another's");
        assert_eq!(record.headers.iter().filter(|(key, _)| key == b"redrive.attempt").count(), 1);
    }
}

#[tokio::test]
async fn a_message_that_nobody_has_any_more_blocks_and_can_be_left_out() {
    let story = Story::with_dead_letters("records-gone", 10).await;
    // Partition 0 holds five of them, and loses the first two.
    story.clients.ask("deleteRecords", json!({"topic": "records-gone", "partition": 0, "before": 2})).await;
    story.start_consumer(accept()).await;
    story.create_replay("try", json!({"action": "Replay"})).await;
    let (reason, status) = story.finished("try").await;
    assert_eq!(reason, "Blocked", "{}", message(&status));
    let preview = status.preview.expect("a preview");
    assert_eq!(preview.payload.map(|payload| (payload.original, payload.unavailable)), Some((8, 2)));
    let problem = preview.problems.iter().find(|problem| problem.type_ == ProblemType::PayloadUnavailable);
    assert_eq!(problem.map(|problem| problem.messages), Some(2), "{:?}", preview.problems);
    assert!(story.replayed("records-gone", "try", "read_uncommitted").await.is_empty());

    let letters = story.dead_letters().await;
    let gone = |letter: &&Found| {
        letter.header("__dlq.errors.partition").as_deref() == Some("0")
            && letter.header("__dlq.errors.offset").is_some_and(|offset| ["0", "1"].contains(&offset.as_str()))
    };
    let offsets: Vec<_> = letters.iter().filter(gone).map(|letter| letter.offset.to_string()).collect();
    let exclude = json!([{"partition": 0, "ranges": offsets.join(",")}]);
    story.create_replay("rest", json!({"action": "Replay", "selection": {"excludeOffsets": exclude}})).await;
    let (reason, status) = story.finished("rest").await;
    assert_eq!(reason, "AllSettled", "{}", message(&status));
    assert_eq!(story.replayed("records-gone", "rest", "read_committed").await.len(), 8);
}

#[tokio::test]
async fn of_a_shared_dead_letter_topic_only_the_groups_own_messages_are_selected_and_junk_is_left_out() {
    let story = Story::with_dead_letters("records-shared", 6).await;
    let clients = &story.clients;
    let configs = json!({
        "share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": "dlq.records-shared",
    });
    let other = json!({"resource": "GROUP", "name": "records-other", "set": configs});
    clients.ask("alterConfigs", other).await;
    clients.start_share_consumer("records-other", "records-other", "records-shared", crate::support::reject()).await;
    until("the other group's dead letters", || story.dead_letters(), |letters| letters.len() == 12).await;
    clients.stop_share_consumer("records-other").await;
    let junk: Vec<Value> = vec![
        json!({"value": "anVuaw=="}),
        json!({"headers": [["__dlq.errors.topic", "eA=="], ["__dlq.errors.offset", "eA=="]]}),
        json!({"headers": [["__dlq.errors.topic", "//79"], ["__dlq.errors.group", null]]}),
    ];
    clients.ask("produce", json!({"topic": "dlq.records-shared", "records": junk})).await;
    story.create_replay("look", json!({})).await;
    let preview = story.previewed("look").await;
    assert_eq!(preview.messages, 6, "{}", preview.summary);
    assert!(preview.summary.contains("6 dead letters of other groups, left out"), "{}", preview.summary);
    assert!(preview.summary.contains("3 records that are no dead letters, left out"), "{}", preview.summary);
}
