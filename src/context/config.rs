//! What the operator is told at its start: flags, each with an environment variable of the same name.

use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::time::Duration;

/// The flags of `redrive run`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Namespaces to work in, separated by commas. None: all of them
    #[arg(long, env = "REDRIVE_NAMESPACES", value_delimiter = ',')]
    pub namespaces: Vec<String>,
    /// Name of the Lease that decides which operator process acts
    #[arg(long, env = "REDRIVE_LEASE_NAME", default_value = "redrive")]
    pub lease_name: String,
    /// Namespace of the Lease. Default: the operator's own
    #[arg(long, env = "REDRIVE_LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// How long others wait for a silent leader before one of them takes over, in seconds
    #[arg(long, env = "REDRIVE_LEASE_SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u16).range(3..=600))]
    pub lease_seconds: u16,
    /// Name of this process among the candidates, unique to it. Default: host name and a random part
    #[arg(long, env = "REDRIVE_IDENTITY")]
    pub identity: Option<String>,
    /// Kafka topic that records what was sent. One per Kafka cluster
    #[arg(long, env = "REDRIVE_LEDGER_TOPIC", default_value = "redrive.ledger")]
    pub ledger_topic: String,
    /// Partitions of the ledger topic where it is to be created
    #[arg(long, env = "REDRIVE_LEDGER_PARTITIONS", default_value_t = 8, value_parser = clap::value_parser!(i32).range(1..=1000))]
    pub ledger_partitions: i32,
    /// Replication factor of the ledger topic where it is to be created. Default: the brokers' default
    #[arg(long, env = "REDRIVE_LEDGER_REPLICATION_FACTOR", value_parser = clap::value_parser!(i16).range(1..=100))]
    pub ledger_replication_factor: Option<i16>,
    /// What names of dead-letter topics must begin with where the brokers ask for no prefix
    #[arg(long, env = "REDRIVE_REQUIRED_PREFIX", default_value = "dlq.")]
    pub required_prefix: String,
    /// How often Kafka is compared with what is declared, in seconds
    #[arg(long, env = "REDRIVE_RESYNC_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86400))]
    pub resync_seconds: u32,
    /// Address of /healthz, /readyz and /metrics
    #[arg(long, env = "REDRIVE_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
    /// Format of the log on stderr
    #[arg(long, env = "REDRIVE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl Config {
    pub fn resync(&self) -> Duration {
        Duration::from_secs(self.resync_seconds.into())
    }

    pub fn lease_duration(&self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }
}
