//! The right to act, as one process holds it for one term of the lease.
//!
//! A term that was lost never comes back: who leads again does so under another `Leadership` with a higher term.
//! So work that was held up in the meantime can't mistake the new term for its own.

use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Timers stand still while the machine is suspended, the deadline does not: a waiter looks again at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Time since boot, including time the machine was suspended (CLOCK_BOOTTIME).
pub fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// One term of leadership; clones speak of the same term.
#[derive(Clone, Debug)]
pub struct Leadership {
    term: u64,
    identity: Arc<str>,
    installation: Arc<str>,
    /// By [`boot_time`]; zero once the term was given up.
    deadline: Arc<watch::Sender<Duration>>,
}

impl Leadership {
    /// A term held until `deadline` (by [`boot_time`]) unless it is extended.
    pub fn new(identity: &str, installation: &str, term: u64, deadline: Duration) -> Self {
        let deadline = Arc::new(watch::Sender::new(deadline));
        Self { term, identity: identity.into(), installation: installation.into(), deadline }
    }

    /// Whether this process may act: false before anybody else can take the lease.
    pub fn is_held(&self) -> bool {
        boot_time() < *self.deadline.borrow()
    }

    /// How often the lease has changed hands (`leaseTransitions`): higher than that of every holder before.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// This process among the candidates.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// What the candidates have in common: `<namespace>/<name>/<uid>` of the lease. Terms of two installations,
    /// or of a lease that was deleted and made anew, can't be compared.
    pub fn installation(&self) -> &str {
        &self.installation
    }

    /// Returns once the term is over.
    pub async fn lost(&self) {
        let mut changes = self.deadline.subscribe();
        while self.is_held() {
            let left = changes.borrow_and_update().saturating_sub(boot_time());
            // Either outcome is looked into by the loop's condition.
            let _ = tokio::time::timeout(left.min(LOOK_AGAIN), changes.changed()).await;
        }
    }

    /// Moves the deadline after a renewal. A term that is over stays over.
    pub fn extend(&self, deadline: Duration) {
        self.deadline.send_if_modified(|current| {
            let held = boot_time() < *current;
            if held {
                *current = deadline;
            }
            held
        });
    }

    /// Ends the term now.
    pub fn end(&self) {
        self.deadline.send_replace(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term_of(left: Duration) -> Leadership {
        Leadership::new("a", "ns/redrive/uid", 3, boot_time() + left)
    }

    #[tokio::test]
    async fn a_term_ends_at_its_deadline() {
        let term = term_of(Duration::from_millis(50));
        assert!(term.is_held());
        term.lost().await;
        assert!(!term.is_held());
    }

    #[tokio::test]
    async fn an_extended_term_lasts_longer() {
        let term = term_of(Duration::from_millis(50));
        term.extend(boot_time() + Duration::from_secs(60));
        let waited = tokio::time::timeout(Duration::from_millis(150), term.lost()).await;
        assert!(waited.is_err() && term.is_held());
    }

    #[test]
    fn a_lost_term_never_comes_back() {
        let term = term_of(Duration::from_secs(60));
        term.end();
        term.extend(boot_time() + Duration::from_secs(60));
        assert!(!term.is_held());
    }

    #[tokio::test]
    async fn giving_up_wakes_waiters() {
        let term = term_of(Duration::from_secs(60));
        let waiter = tokio::spawn({
            let term = term.clone();
            async move { term.lost().await }
        });
        term.end();
        assert!(tokio::time::timeout(Duration::from_secs(5), waiter).await.is_ok());
    }
}
