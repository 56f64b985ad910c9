//! How a Kafka cluster is reached: the one description from which both the wire client and librdkafka are set up.

use rdkafka::ClientConfig;

/// The name brokers show for us in their logs, quotas and group members.
const CLIENT_ID: &str = "redrive";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// `host:port`, several of them separated by commas. IPv6 addresses stand in brackets.
    pub bootstrap_servers: String,
    pub security: Security,
    pub client_id: String,
}

/// How the connection is secured. A new variant has two places to be honoured in: [`Settings::rdkafka`] and the wire
/// client's transport.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Security {
    Plaintext,
}

impl Settings {
    pub fn plaintext(bootstrap: impl Into<String>) -> Self {
        Self { bootstrap_servers: bootstrap.into(), security: Security::Plaintext, client_id: CLIENT_ID.into() }
    }

    /// The same connection for librdkafka. What a producer or consumer needs beyond it is set by whoever makes one.
    pub fn rdkafka(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap_servers).set("client.id", &self.client_id);
        match self.security {
            Security::Plaintext => config.set("security.protocol", "plaintext"),
        };
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn librdkafka_is_given_the_same_brokers_and_name() {
        let config = Settings::plaintext("a:9092,b:9092").rdkafka();
        assert_eq!(config.get("bootstrap.servers"), Some("a:9092,b:9092"));
        assert_eq!(config.get("client.id"), Some("redrive"));
        assert_eq!(config.get("security.protocol"), Some("plaintext"));
    }
}
