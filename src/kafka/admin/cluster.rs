//! The cluster as a whole: its brokers, the level of its features, what each broker is set to.

use futures::future::try_join_all;
use kafka_protocol::messages::{ApiVersionsResponse, DescribeConfigsResponse, MetadataRequest, MetadataResponse};
use std::collections::BTreeMap;

use super::configs::{Configs, Resource, all_settled, describe_request, read_result};
use super::{Admin, AdminError};
use crate::kafka::connection::{ConnectionError, Deadline, Route, api_versions};

const SHARE_VERSION: &str = "share.version";

/// The cluster as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub id: String,
    /// The broker that takes changes; under KRaft any live one, which hands them on.
    pub controller: i32,
    /// The live ones; a broker the controller has fenced off is not among them.
    pub brokers: Vec<Broker>,
    /// Level of the finalized feature `share.version`; 0 where the cluster has none (KIP-584, KIP-932).
    pub share_version: i16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    pub id: i32,
    pub host: String,
    pub port: u16,
}

impl Admin {
    /// Asks every live broker, and fails naming the first that does not answer.
    pub async fn cluster(&self) -> Result<Cluster, AdminError> {
        let deadline = self.deadline();
        let metadata = self.brokers(deadline).await?;
        let brokers = read_brokers(&metadata);
        let asked = brokers.iter().map(|broker| self.features(broker.id, deadline));
        let answers = try_join_all(asked).await?;
        Ok(Cluster {
            id: metadata.cluster_id.map(|id| id.to_string()).unwrap_or_default(),
            controller: metadata.controller_id.0,
            brokers,
            share_version: finalized_level(&answers, SHARE_VERSION),
        })
    }

    /// Every broker is asked for its own values, as they may differ. No `names`: all settings.
    pub async fn broker_configs(&self, names: &[&str]) -> Result<BTreeMap<i32, Configs>, AdminError> {
        let deadline = self.deadline();
        let brokers = read_brokers(&self.brokers(deadline).await?);
        let asked = brokers.iter().map(|broker| self.configs_of_broker(broker.id, names, deadline));
        Ok(try_join_all(asked).await?.into_iter().collect())
    }

    pub(in crate::kafka) async fn brokers(&self, deadline: Deadline) -> Result<MetadataResponse, ConnectionError> {
        let request = MetadataRequest::default().with_topics(Some(Vec::new())).with_allow_auto_topic_creation(false);
        let has_brokers = |answer: &MetadataResponse| !answer.brokers.is_empty();
        let answer = self.connection.ask_until(Route::Any, &request, deadline, has_brokers).await?;
        self.connection.learn(&answer);
        Ok(answer)
    }

    async fn features(&self, broker: i32, deadline: Deadline) -> Result<ApiVersionsResponse, AdminError> {
        let answer = self.connection.ask(Route::Broker(broker), &api_versions(), deadline).await;
        answer.map_err(|error| of_broker(broker, error))
    }

    async fn configs_of_broker(
        &self,
        broker: i32,
        names: &[&str],
        deadline: Deadline,
    ) -> Result<(i32, Configs), AdminError> {
        let action = || format!("read the settings of broker {broker}");
        let request = describe_request(Resource::Broker, [broker.to_string().as_str()].into_iter(), names);
        let answer = self.connection.ask_until(Route::Broker(broker), &request, deadline, all_settled).await;
        let DescribeConfigsResponse { results, .. } = answer.map_err(|error| of_broker(broker, error))?;
        let left_out = || AdminError::LeftOut { action: action(), what: "its settings".into() };
        let result = results.into_iter().next().ok_or_else(left_out)?;
        let (_, configs) = read_result(Resource::Broker, result);
        Ok((broker, configs.map_err(|refusal| AdminError::refused(action(), refusal))?))
    }
}

fn read_brokers(metadata: &MetadataResponse) -> Vec<Broker> {
    let read = metadata.brokers.iter().filter_map(|broker| {
        let port = u16::try_from(broker.port).ok()?;
        Some(Broker { id: broker.node_id.0, host: broker.host.to_string(), port })
    });
    let mut brokers: Vec<Broker> = read.collect();
    brokers.sort_by_key(|broker| broker.id);
    brokers
}

/// The level of a feature by the broker that has heard the most: brokers learn of a change one after the other.
fn finalized_level(answers: &[ApiVersionsResponse], feature: &str) -> i16 {
    let newest = answers.iter().max_by_key(|answer| answer.finalized_features_epoch);
    let found = newest.and_then(|answer| answer.finalized_features.iter().find(|known| known.name.as_str() == feature));
    found.map_or(0, |known| known.max_version_level)
}

/// The broker's number goes with its address, which alone says little where all brokers share a host.
fn of_broker(broker: i32, error: ConnectionError) -> AdminError {
    match AdminError::from(error) {
        AdminError::Unreachable { address, reason } if address != broker.to_string() => {
            AdminError::Unreachable { address: format!("{broker} at {address}"), reason }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::api_versions_response::FinalizedFeatureKey;
    use kafka_protocol::protocol::StrBytes;

    fn answer(epoch: i64, level: i16) -> ApiVersionsResponse {
        let feature = FinalizedFeatureKey::default()
            .with_name(StrBytes::from_static_str(SHARE_VERSION))
            .with_max_version_level(level)
            .with_min_version_level(level);
        ApiVersionsResponse::default().with_finalized_features_epoch(epoch).with_finalized_features(vec![feature])
    }

    #[test]
    fn the_broker_that_has_heard_the_most_tells_the_level() {
        assert_eq!(finalized_level(&[answer(9, 1), answer(4, 2), answer(4, 2)], SHARE_VERSION), 1);
        assert_eq!(finalized_level(&[answer(9, 1)], "kraft.version"), 0);
        assert_eq!(finalized_level(&[], SHARE_VERSION), 0);
    }

    #[test]
    fn an_unreachable_broker_is_named_with_its_address() {
        let lost = ConnectionError::ReachBroker { address: "a:1".into(), reason: "refused".into() };
        assert_eq!(of_broker(2, lost).to_string(), "Kafka does not answer: broker 2 at a:1: refused");
        let gone = of_broker(2, ConnectionError::FindBroker { id: 2 });
        let told = "Kafka does not answer: broker 2: it is not among the cluster's live brokers";
        assert_eq!(gone.to_string(), told);
    }
}
