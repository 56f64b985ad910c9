//! Waiting for conditions: never for a time.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long a test waits for what should be so before long.
pub const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

/// Looks again and again until `found` holds, and gives what was seen then. `what` is told if it never does.
pub async fn until<T: Debug, F: Future<Output = T>>(what: &str, look: impl Fn() -> F, found: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = look().await;
        if found(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what} did not come about in {PATIENCE:?}; last seen: {seen:#?}");
        tokio::time::sleep(LOOK).await;
    }
}
