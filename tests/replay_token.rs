//! A replay that quotes a token sends exactly what that preview showed.

use crate::support::{Story, accept, message, reject};
use serde_json::json;

#[tokio::test]
async fn a_replay_quoting_a_token_applies_exactly_the_previewed_messages_after_more_were_dead_lettered() {
    let story = Story::with_dead_letters("token-exact", 40).await;
    story.create_replay("looked", json!({})).await;
    let token = story.previewed("looked").await.token;
    story.clients.produce("token-exact", 25, 2).await;
    story.reject_until(65).await;

    story.start_consumer(accept()).await;
    story.patch_replay("looked", json!({"action": "Replay", "previewToken": token})).await;
    let (reason, status) = story.finished("looked").await;
    assert_eq!(reason, "AllSettled", "{}", message(&status));
    let sent = story.replayed("token-exact", "looked", "read_committed").await;
    let mut expected: Vec<_> = (0..40).map(|offset| format!("dlq.token-exact-0@{offset}")).collect();
    expected.sort();
    assert_eq!(sent, expected);

    story.create_replay("rest", json!({"action": "Replay"})).await;
    assert_eq!(story.finished("rest").await.0, "AllSettled");
    assert_eq!(story.replayed("token-exact", "rest", "read_committed").await.len(), 25);
}

#[tokio::test]
async fn the_token_of_another_object_can_be_quoted_and_an_unknown_one_is_refused() {
    let story = Story::with_dead_letters("token-quoted", 10).await;
    story.create_replay("looked", json!({"selection": {"limit": 3}})).await;
    let token = story.previewed("looked").await.token;
    story.start_consumer(accept()).await;
    story
        .create_replay("unknown", json!({"action": "Replay", "previewToken": "pv1-00000000000000000000000000000000"}))
        .await;
    assert_eq!(story.finished("unknown").await.0, "TokenUnknown");
    story.create_replay("quoting", json!({"action": "Replay", "previewToken": token})).await;
    assert_eq!(story.finished("quoting").await.0, "AllSettled");
    assert_eq!(story.replayed("token-quoted", "quoting", "read_committed").await.len(), 3);
    // Replayed since: the same token stands for messages that are not all there to be replayed any more.
    story.patch_replay("looked", json!({"action": "Replay"})).await;
    assert_eq!(story.finished("looked").await.0, "SelectionChanged");
    assert!(story.replayed("token-quoted", "looked", "read_uncommitted").await.is_empty());
}

#[tokio::test]
async fn an_object_made_anew_from_the_same_manifest_sends_nothing() {
    let story = Story::with_dead_letters("token-anew", 5).await;
    story.start_consumer(accept()).await;
    story.create_replay("once", json!({"action": "Replay"})).await;
    assert_eq!(story.finished("once").await.0, "AllSettled");
    story.replays().delete("once", &Default::default()).await.expect("deleted");
    let gone = || async { story.replays().get_opt("once").await.expect("an answer").is_none() };
    crate::support::until("the object's end", gone, |gone| *gone).await;
    story.clients.stop_share_consumer("token-anew").await;
    story.clients.produce("token-anew", 4, 2).await;
    story.clients.start_share_consumer("again", "token-anew", "token-anew", reject()).await;
    crate::support::until("new dead letters", || story.dead_letters(), |letters| letters.len() == 9).await;
    story.create_replay("once", json!({"action": "Replay"})).await;
    assert_eq!(story.finished("once").await.0, "AlreadyReplayed");
    assert_eq!(story.replayed("token-anew", "once", "read_uncommitted").await.len(), 5);
}
