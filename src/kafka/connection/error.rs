//! What can go wrong between us and one broker.

use std::time::Duration;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    #[error("\"{server}\" in the bootstrap servers is not host:port")]
    ParseBootstrap { server: String },
    #[error("no bootstrap server is given")]
    FindBootstrap,
    #[error("the cluster has no live broker {id}")]
    FindBroker { id: i32 },
    #[error("Kafka broker {address} cannot be reached: {reason}")]
    ReachBroker { address: String, reason: String },
    #[error("Kafka broker {address} did not answer {api} within {}", seconds(.after))]
    AwaitAnswer { address: String, api: String, after: Duration },
    #[error("the connection to Kafka broker {address} broke: {reason}")]
    KeepConnection { address: String, reason: String },
    #[error(
        "Kafka broker {address} speaks {api} in versions {offered}, and {known} is needed; Kafka 4.2 or later is required"
    )]
    AgreeVersion { address: String, api: String, offered: String, known: String },
    #[error("Kafka broker {address} sent an answer to {api} that cannot be read: {reason}")]
    ReadAnswer { address: String, api: String, reason: String },
    #[error("the request {api} cannot be written: {reason}")]
    WriteRequest { api: String, reason: String },
}

impl ConnectionError {
    /// Another attempt, maybe on a new connection or at another broker, may well succeed.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::FindBroker { .. } | Self::ReachBroker { .. } | Self::AwaitAnswer { .. } | Self::KeepConnection { .. }
        )
    }

    /// `host:port` of the broker it is about; empty where it is about none.
    pub fn address(&self) -> &str {
        match self {
            Self::ReachBroker { address, .. }
            | Self::AwaitAnswer { address, .. }
            | Self::KeepConnection { address, .. }
            | Self::AgreeVersion { address, .. }
            | Self::ReadAnswer { address, .. } => address,
            Self::ParseBootstrap { .. } | Self::FindBootstrap | Self::FindBroker { .. } | Self::WriteRequest { .. } => {
                ""
            }
        }
    }

    /// Why, without the address.
    pub fn reason(&self) -> String {
        match self {
            Self::ReachBroker { reason, .. } => reason.clone(),
            Self::KeepConnection { reason, .. } => format!("the connection broke: {reason}"),
            Self::AwaitAnswer { api, after, .. } => format!("no answer to {api} within {}", seconds(after)),
            other => other.to_string(),
        }
    }
}

fn seconds(time: &Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
