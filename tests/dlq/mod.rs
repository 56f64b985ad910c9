//! ShareGroupDLQ and the operator that keeps it, as whole: the real program, a real API server, real brokers.

mod brokers;
mod declared;
mod operators;
mod repairs;
mod topics;
mod world;
