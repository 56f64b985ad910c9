//! Redrive: the dead-letter queues of Kafka share groups (KIP-1191), declared and replayed safely.
