//! How long an object is left alone after looks that failed: twice as long each time, up to a minute.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Backoff {
    /// Failures in a row, by uid.
    failures: Mutex<HashMap<String, u32>>,
}

impl Backoff {
    pub fn failed(&self, uid: &str) -> Duration {
        let mut failures = self.lock();
        let count = failures.entry(uid.to_owned()).or_default();
        let pause = FIRST.saturating_mul(2u32.saturating_pow(*count)).min(LAST);
        *count += 1;
        pause
    }

    pub fn succeeded(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_of_failures_are_at_most_twenty_looks() {
        let backoff = Backoff::default();
        let pauses: Vec<_> = (0..20).map(|_| backoff.failed("a")).collect();
        assert_eq!(pauses[..3], [1, 2, 4].map(Duration::from_secs));
        assert!(pauses.iter().sum::<Duration>() > Duration::from_secs(600));
        backoff.succeeded("a");
        assert_eq!(backoff.failed("a"), FIRST);
    }
}
