//! The log: to stderr, as text or as JSON lines. `RUST_LOG` chooses what is told.

use crate::context::LogFormat;
use std::io::{IsTerminal, stderr};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Call once, before anything logs.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).from_env_lossy();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    match format {
        LogFormat::Text => log.with_ansi(stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
