//! Asking and changing a Kafka cluster: brokers, features, topics, settings, offsets. Bulk calls where Kafka has them.
//! The calls that only share and consumer groups have are in [`super::share_groups`].

mod cluster;
mod configs;
mod error;
mod lookups;
mod offsets;
mod topics;

pub use cluster::{Broker, Cluster};
pub use configs::{ConfigChange, ConfigEntry, ConfigSource, Configs};
pub use error::AdminError;
pub use lookups::{Operations, Partition, Topic, TopicLookup};
pub use offsets::{OffsetSpec, Position};
pub use topics::NewTopic;

pub use super::connection::Refusal;

use std::time::Duration;

use super::connection::{Connection, Deadline};
use super::settings::Settings;

/// How long one call may take, with all reconnecting and repeating in it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A cheap handle: clones share the connections and what is known about the cluster's brokers.
///
/// Every call ends within the time-out, with an answer or an error, and may be dropped at any time. A change whose
/// answer was lost is asked again, so that a call may be made twice; each is worded so that this does no harm.
#[derive(Clone, Debug)]
pub struct Admin {
    pub(super) connection: Connection,
    timeout: Duration,
}

impl Admin {
    /// Makes no connection yet: the first call does, within a tokio runtime.
    pub fn connect(settings: &Settings) -> Admin {
        Admin { connection: Connection::new(settings), timeout: TIMEOUT }
    }

    /// The same connections, with another time for each call.
    pub fn with_timeout(&self, timeout: Duration) -> Admin {
        Admin { connection: self.connection.clone(), timeout }
    }

    pub(super) fn deadline(&self) -> Deadline {
        Deadline::within(self.timeout)
    }
}
