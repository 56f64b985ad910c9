//! The operator's figures, in OpenMetrics. Labels stay few: only the backlog has one series per object.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Outcome {
    /// Looked, and nothing was to be done.
    Unchanged,
    /// Changed Kafka or the status.
    Changed,
    /// Ended early; the errors are counted by kind beside it.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    controller: String,
    outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    controller: String,
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectLabels {
    namespace: String,
    name: String,
}

/// All figures; clones count into the same ones.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    reconciles: Family<ReconcileLabels, Counter>,
    errors: Family<ErrorLabels, Counter>,
    sent: Counter,
    settled: Counter,
    returned: Counter,
    backlog: Family<ObjectLabels, Gauge>,
    leader: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("redrive");
        let (reconciles, errors, backlog) = (Family::default(), Family::default(), Family::default());
        let (sent, settled, returned, leader) =
            (Counter::default(), Counter::default(), Counter::default(), Gauge::default());
        registry.register("reconciles", "Reconciles, by controller and outcome", reconciles.clone());
        registry.register("errors", "Errors, by controller and kind", errors.clone());
        registry.register("messages_sent", "Messages sent by replays", sent.clone());
        registry.register("messages_settled", "Replayed messages a consumer has settled", settled.clone());
        registry.register("messages_returned", "Replayed messages that came back as dead letters", returned.clone());
        registry.register("backlog_messages", "Dead letters in the topic of a ShareGroupDLQ", backlog.clone());
        registry.register("leader", "1 while this process leads", leader.clone());
        Self { registry: Arc::new(registry), reconciles, errors, sent, settled, returned, backlog, leader }
    }
}

impl Metrics {
    pub fn reconciled(&self, controller: &str, outcome: Outcome) {
        self.reconciles.get_or_create(&ReconcileLabels { controller: controller.into(), outcome }).inc();
    }

    /// `kind` is the name of an error variant or of a condition's reason.
    pub fn failed(&self, controller: &str, kind: &str) {
        self.errors.get_or_create(&ErrorLabels { controller: controller.into(), kind: kind.into() }).inc();
    }

    pub fn sent(&self, messages: u64) {
        self.sent.inc_by(messages);
    }

    pub fn settled(&self, messages: u64) {
        self.settled.inc_by(messages);
    }

    pub fn returned(&self, messages: u64) {
        self.returned.inc_by(messages);
    }

    /// The backlog of one ShareGroupDLQ; `None` once it can't be told any more.
    pub fn backlog(&self, namespace: &str, name: &str, messages: Option<i64>) {
        let labels = ObjectLabels { namespace: namespace.into(), name: name.into() };
        match messages {
            Some(messages) => {
                self.backlog.get_or_create(&labels).set(messages);
            }
            None => {
                self.backlog.remove(&labels);
            }
        }
    }

    pub fn leads(&self, leading: bool) {
        self.leader.set(leading.into());
    }

    /// All figures as OpenMetrics text.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_appear_under_their_names() -> Result<(), fmt::Error> {
        let metrics = Metrics::default();
        metrics.reconciled("sharegroupdlq", Outcome::Changed);
        metrics.failed("sharegroupdlq", "KafkaUnreachable");
        metrics.sent(12);
        metrics.backlog("shop", "orders", Some(40));
        metrics.leads(true);
        let page = metrics.encode()?;
        for line in [
            r#"redrive_reconciles_total{controller="sharegroupdlq",outcome="Changed"} 1"#,
            r#"redrive_errors_total{controller="sharegroupdlq",kind="KafkaUnreachable"} 1"#,
            "redrive_messages_sent_total 12",
            r#"redrive_backlog_messages{namespace="shop",name="orders"} 40"#,
            "redrive_leader 1",
        ] {
            assert!(page.contains(line), "{line} is not in\n{page}");
        }
        metrics.backlog("shop", "orders", None);
        assert!(!metrics.encode()?.contains("orders"));
        Ok(())
    }
}
