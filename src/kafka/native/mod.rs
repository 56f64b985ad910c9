//! The calls of librdkafka that its safe wrapper lacks, behind safe functions: the only unsafe code of the crate.
//!
//! - Headers as bytes. The wrapper takes and gives keys as `str` and panics on others.
//! - Consuming single partitions without a group. The wrapper's `assign` wants a `group.id`, and with one librdkafka asks
//!   for that group's coordinator: a needless right to ask for, and it makes the broker create `__consumer_offsets`.
//! - Whole batches of messages at a time, and commit without the wrapper's polling in steps of 100 ms.

pub mod consumer;
mod headers;
pub mod producer;
