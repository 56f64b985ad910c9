//! Kubernetes Events: the turns a user wants to hear of, in `kubectl describe` and `kubectl events`.
//!
//! The same reason again for the same object, within six minutes, counts up one Event's series instead of adding another.

use super::Metrics;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use std::time::Duration;
use tokio::time::timeout;

/// How long an Event may hold up what it tells of.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the API server takes as a note (events.k8s.io/v1), in bytes.
const LONGEST_NOTE: usize = 1024;

#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
    metrics: Metrics,
}

impl Events {
    /// Events reported by `identity`, the operator process.
    pub fn new(client: Client, identity: &str, metrics: Metrics) -> Self {
        let reporter = Reporter { controller: "redrive.dev/operator".into(), instance: Some(identity.into()) };
        Self { recorder: Recorder::new(client, reporter), metrics }
    }

    /// Something went as it should. `reason` and `action` are CamelCase words, `note` a sentence.
    pub async fn normal(&self, of: &ObjectReference, reason: &str, action: &str, note: impl Into<String>) {
        self.publish(EventType::Normal, of, reason, action, note.into()).await;
    }

    /// Something a user should look at.
    pub async fn warning(&self, of: &ObjectReference, reason: &str, action: &str, note: impl Into<String>) {
        self.publish(EventType::Warning, of, reason, action, note.into()).await;
    }

    /// An Event that can't be written is logged and counted: it must not hold up what it tells of.
    async fn publish(&self, type_: EventType, of: &ObjectReference, reason: &str, action: &str, note: String) {
        let note = Some(shortened(note));
        let event = Event { type_, reason: reason.into(), note, action: action.into(), secondary: None };
        let obstacle = match timeout(PATIENCE, self.recorder.publish(&event, of)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {PATIENCE:?}"),
        };
        self.metrics.failed("events", "PublishEvent");
        tracing::warn!(obstacle, reason, object = of.name, "an Event could not be written");
    }
}

fn shortened(mut note: String) -> String {
    if note.len() > LONGEST_NOTE {
        let whole = |at: &usize| note.is_char_boundary(*at);
        let end = (0..=LONGEST_NOTE - '…'.len_utf8()).rev().find(whole).unwrap_or(0);
        note.truncate(end);
        note.push('…');
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let short = shortened("ä".repeat(1000));
        assert!(short.len() <= LONGEST_NOTE && short.ends_with('…'));
        assert_eq!(shortened("as it is".into()), "as it is");
    }
}
