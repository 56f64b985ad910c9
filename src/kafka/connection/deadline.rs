//! The time a call has, and the growing pauses between its attempts.

use std::time::Duration;
use tokio::time::{Instant, sleep};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// An attempt with less time than this is not worth making: what it failed with would only be its own haste.
const SHORTEST_ATTEMPT: Duration = Duration::from_secs(1);

/// When a call gives up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn within(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// This deadline, or `time` from now if that is earlier.
    pub fn sooner(self, time: Duration) -> Self {
        Self(self.0.min(Instant::now() + time))
    }

    /// Half of the time that is left: what one attempt may take where another broker could do it as well.
    pub fn half(self) -> Self {
        self.sooner((self.remaining() / 2).max(SHORTEST_ATTEMPT))
    }
}

impl From<Deadline> for Instant {
    fn from(deadline: Deadline) -> Self {
        deadline.0
    }
}

/// Pauses between attempts, each twice as long as the one before.
#[derive(Debug)]
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    /// Waits. False, without waiting, where not enough time for another attempt would be left.
    pub async fn pause(&mut self, deadline: Deadline) -> bool {
        let fits = self.0 + SHORTEST_ATTEMPT <= deadline.remaining();
        if fits {
            sleep(self.0).await;
            self.0 = (self.0 * 2).min(LONGEST_PAUSE);
        }
        fits
    }
}
