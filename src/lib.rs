//! Redrive: the dead-letter queues of Kafka share groups (KIP-1191), declared and replayed safely.

pub mod api;
pub mod context;
pub mod dlq;
pub mod kafka;
pub mod operator;
pub mod replay;
