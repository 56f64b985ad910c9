//! Objects and observations to start tests from.

use crate::api::ShareGroupDLQ;
use crate::dlq::brokers::{BrokerSettings, ClusterFacts};
use crate::dlq::config;
use crate::dlq::observe::{KafkaSeen, Letters, Observed, Recent, Seen};
use crate::kafka::TopicId;
use crate::kafka::admin::{ConfigEntry, ConfigSource, Configs, Operations, Partition, Topic, TopicLookup};
use crate::kafka::share_groups::GroupKind;
use std::sync::Arc;

pub const TOPIC_ID: TopicId = TopicId::from_u128(0xd1);

/// A ShareGroupDLQ for the group `orders`, brand-new, generation 1.
pub fn object() -> ShareGroupDLQ {
    let object = serde_json::json!({
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "ShareGroupDLQ",
        "metadata": {"name": "orders", "namespace": "shop", "uid": "u1", "generation": 1, "resourceVersion": "7"},
        "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, "groupId": "orders"},
        "status": {"observedGeneration": -1}
    });
    serde_json::from_value(object).expect("a sample object parses")
}

pub fn configs(of: &[(&str, &str)]) -> Configs {
    let entry = |value: &str| ConfigEntry { value: Some(value.into()), is_default: false, source: ConfigSource::Topic };
    Configs(of.iter().map(|(name, value)| ((*name).to_owned(), entry(value))).collect())
}

/// The topic `dlq.orders` with two partitions of two replicas.
pub fn topic() -> Topic {
    let partition = |id| Partition { id, leader: Some(1), replicas: vec![1, 2], isr: vec![1, 2] };
    let operations = Operations::default();
    Topic { name: "dlq.orders".into(), id: TOPIC_ID, partitions: vec![partition(0), partition(1)], operations }
}

/// Two brokers, everything as `object` asks for.
pub fn seen() -> Seen {
    let broker = || BrokerSettings { auto_create: false, prefix: "dlq.".into() };
    let cluster = ClusterFacts {
        id: "c1".into(),
        share_version: 2,
        brokers: [(1, broker()), (2, broker())].into(),
        groups: [("orders".to_owned(), GroupKind::Share)].into(),
        ledger: None,
    };
    Seen {
        cluster: Arc::new(cluster),
        topic_name: "dlq.orders".into(),
        topic: TopicLookup::Found(topic()),
        topic_configs: Some(Ok(configs(&[(config::CONSENT, "true"), (config::CLEANUP, "delete")]))),
        group_configs: Ok(configs(&[(config::TOPIC_NAME, "dlq.orders"), (config::COPY, "false")])),
        sources: ["orders".to_owned()].into(),
        backlog: Some(Letters { messages: 40, oldest: Some(1_001), newest: Some(2_999) }),
    }
}

pub fn observed(seen: Seen) -> Observed {
    let kafka = KafkaSeen::Seen(Box::new(seen));
    Observed { kafka, peers: vec![], recent: Recent::default(), required_prefix: "dlq.".into() }
}

pub fn in_order() -> Observed {
    observed(seen())
}

/// Brokers that create topics, and none there yet.
pub fn without_topic() -> Observed {
    let mut seen = seen();
    (seen.topic, seen.topic_configs, seen.backlog) = (TopicLookup::Missing, None, None);
    seen.group_configs = Ok(configs(&[(config::TOPIC_NAME, ""), (config::COPY, "false")]));
    let cluster = Arc::make_mut(&mut seen.cluster);
    cluster.brokers.values_mut().for_each(|broker| broker.auto_create = true);
    observed(seen)
}
