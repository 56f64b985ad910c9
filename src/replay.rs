//! The DLQReplay controller: select, preview, send step by step, see what settles, report.

mod backoff;
pub mod canary;
pub mod controller;
mod farewell;
mod letter;
mod look;
mod outgoing;
mod pace;
mod plan;
mod quote;
mod report;
pub mod run;
mod runs;
mod scribe;
mod selection;
mod settle;
mod start;
mod survey;
mod token;
mod unimplemented;
mod wishes;

/// The controller's name in metrics.
const CONTROLLER: &str = "dlqreplay";

/// Milliseconds since the epoch. For records and deadlines in them, never for deciding who leads.
fn now() -> canary::Millis {
    jiff::Timestamp::now().as_millisecond()
}
