//! Tests of the whole on real parts: one program, so that what takes long to start is started once.

mod api_dlq;
mod api_replay;
mod dlq;
mod kafka_admin;
mod kafka_facts;
mod kafka_ledger;
mod kafka_reader;
mod kafka_sender;
mod kafka_tools;
mod replay_canary;
mod replay_control;
mod replay_preview;
mod replay_records;
mod replay_takeover;
mod replay_token;
mod support;
