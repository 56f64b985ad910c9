//! From `spec.kafka` to the settings of a Kafka client.

use crate::api::Kafka;
use crate::kafka::settings::Settings;

/// `None` where the spec names what this version can't connect to; `unimplemented` says so to the user.
pub fn settings(kafka: &Kafka) -> Option<Settings> {
    let plaintext = kafka.tls.is_none() && kafka.sasl.is_none();
    kafka.bootstrap_servers.as_ref().filter(|_| plaintext).map(Settings::plaintext)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Tls;

    #[test]
    fn only_what_can_be_connected_to_has_settings() {
        let plain = Kafka { bootstrap_servers: Some("kafka:9092".into()), ..Default::default() };
        assert_eq!(settings(&plain), Some(Settings::plaintext("kafka:9092")));
        assert_eq!(settings(&Kafka { tls: Some(Tls::default()), ..plain }), None);
        assert_eq!(settings(&Kafka::default()), None);
    }
}
