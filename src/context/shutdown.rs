//! The wish that work ends in good order: no new work is begun, what is in hand is finished within a few seconds.

use tokio::sync::watch;

/// Says when. Dropped, it counts as said.
#[derive(Debug)]
pub struct Trigger(watch::Sender<bool>);

/// Hears it; clones hear the same.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    pub fn new() -> (Trigger, Self) {
        let (sender, receiver) = watch::channel(false);
        (Trigger(sender), Self(receiver))
    }

    pub fn is_requested(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Returns once the end is asked for.
    pub async fn requested(mut self) {
        // An error means that the trigger is gone, which is a request too.
        let _ = self.0.wait_for(|requested| *requested).await;
    }
}

impl Trigger {
    pub fn request(&self) {
        self.0.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_and_a_lost_trigger_are_both_heard() {
        let (trigger, shutdown) = Shutdown::new();
        assert!(!shutdown.is_requested());
        trigger.request();
        assert!(shutdown.is_requested());
        shutdown.requested().await;

        let (trigger, shutdown) = Shutdown::new();
        drop(trigger);
        assert!(shutdown.is_requested());
        shutdown.requested().await;
    }
}
