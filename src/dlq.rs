//! The ShareGroupDLQ controller: observe, plan, apply, report; in this order and no other.
//!
//! `observe` does all the reading and judges nothing. `plan` holds every rule and does no I/O. `apply` carries a plan out,
//! each action safe to repeat. `report` writes the status, if it says anything new.

mod apply;
mod brokers;
pub mod connection;
pub mod controller;
mod memory;
mod naming;
mod observe;
mod peers;
mod plan;
mod report;
mod unimplemented;

/// The controller's name in metrics.
const CONTROLLER: &str = "sharegroupdlq";

/// Kafka's names of what makes a dead-letter topic (KIP-1191).
mod config {
    /// Broker: whether brokers create missing dead-letter topics.
    pub const AUTO_CREATE: &str = "errors.deadletterqueue.auto.create.topics.enable";
    /// Broker: what names of dead-letter topics must begin with; empty: anything.
    pub const PREFIX: &str = "errors.deadletterqueue.topic.name.prefix";
    /// Topic: its consent to receive dead letters.
    pub const CONSENT: &str = "errors.deadletterqueue.group.enable";
    /// Group: where its dead letters go.
    pub const TOPIC_NAME: &str = "errors.deadletterqueue.topic.name";
    /// Group: whether a dead letter holds a copy of key and value.
    pub const COPY: &str = "errors.deadletterqueue.copy.record.enable";
    /// Topic: delete, compact or both.
    pub const CLEANUP: &str = "cleanup.policy";
}

/// The first `share.version` with dead letters.
const SHARE_VERSION: i16 = 2;
