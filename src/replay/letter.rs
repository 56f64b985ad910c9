//! A dead letter as a replay carries it: what is needed to find, order and send the message, and nothing more.

use crate::kafka::Coordinates;
use crate::kafka::dead_letter::{Cause, DeadLetter};
use crate::kafka::record::Header;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Where the dead letter is in the dead-letter topic.
    pub partition: i32,
    pub offset: i64,
    /// When it was dead-lettered, in milliseconds since the epoch.
    pub timestamp: i64,
    /// Where the message was when it failed.
    pub source: Coordinates,
    pub cause: Cause,
    pub deliveries: Option<i32>,
    /// Which replay of the message sending it now would be: 1 unless it was replayed before and came back.
    pub attempt: u32,
    pub has_copy: bool,
    /// The context headers of the dead letter, where they are to be sent along.
    pub error_headers: Vec<Header>,
}

impl Letter {
    pub fn new(letter: DeadLetter, attempt: u32) -> Self {
        let DeadLetter { partition, offset, timestamp, source, cause, deliveries, has_copy, .. } = letter;
        Self { partition, offset, timestamp, source, cause, deliveries, attempt, has_copy, error_headers: Vec::new() }
    }
}
