//! One admin connection per Kafka cluster and credentials, shared by all objects that name them.

use crate::kafka::admin::Admin;
use crate::kafka::settings::Settings;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A connection nobody asked for this long is closed.
const IDLE: Duration = Duration::from_secs(15 * 60);

struct Entry {
    admin: Admin,
    used: Instant,
}

/// The pool; clones share it.
#[derive(Clone, Default)]
pub struct Clusters {
    entries: Arc<Mutex<HashMap<Settings, Entry>>>,
}

impl Clusters {
    /// The shared connection for these settings; connects lazily, so this never waits or fails.
    pub fn admin(&self, settings: &Settings) -> Admin {
        let now = Instant::now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|known, entry| known == settings || now.duration_since(entry.used) < IDLE);
        let new = || Entry { admin: Admin::connect(settings), used: now };
        let entry = entries.entry(settings.clone()).or_insert_with(new);
        entry.used = now;
        entry.admin.clone()
    }
}
