//! Topics looked up in bulk, with their ids, leaders, and what the principal may do with them.

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use kafka_protocol::messages::{MetadataRequest, MetadataResponse};
use std::collections::{BTreeMap, BTreeSet};

use super::{Admin, AdminError, Refusal};
use crate::kafka::TopicId;
use crate::kafka::connection::{ConnectionError, Deadline, Route, settled, topic_name};

const LEADER_NOT_AVAILABLE: i16 = 5;
const INVALID_TOPIC: i16 = 17;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicLookup {
    Found(Topic),
    Missing,
    /// The principal may not describe it, whether it exists or not.
    NotAuthorized,
    /// The name cannot be a topic's.
    Invalid,
}

impl TopicLookup {
    pub fn found(&self) -> Option<&Topic> {
        match self {
            Self::Found(topic) => Some(topic),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: String,
    pub id: TopicId,
    /// In ascending order of their numbers.
    pub partitions: Vec<Partition>,
    pub operations: Operations,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub id: i32,
    /// None while no replica can lead it.
    pub leader: Option<i32>,
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
}

/// What the principal may do with a topic (KIP-430). Without an authorizer: everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    pub read: bool,
    pub write: bool,
    pub create: bool,
    pub delete: bool,
    pub alter: bool,
    pub describe: bool,
    pub describe_configs: bool,
    pub alter_configs: bool,
}

impl Operations {
    /// Kafka's bit field: one bit per AclOperation code.
    fn from_bits(bits: i32) -> Self {
        let has = |operation: u32| bits & (1 << operation) != 0;
        Self {
            read: has(3),
            write: has(4),
            create: has(5),
            delete: has(6),
            alter: has(7),
            describe: has(8),
            describe_configs: has(10),
            alter_configs: has(11),
        }
    }
}

impl Admin {
    /// All in one call. Every name asked for is in the answer. A topic made a moment ago may still be missing at a broker
    /// that has not heard of it.
    pub async fn topics(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, TopicLookup>, AdminError> {
        self.topics_within(names, self.deadline()).await
    }

    pub(super) async fn topics_within(
        &self,
        names: &BTreeSet<String>,
        deadline: Deadline,
    ) -> Result<BTreeMap<String, TopicLookup>, AdminError> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let answer = self.metadata_of(names, deadline).await?;
        let named = answer.topics.into_iter().filter_map(|topic| Some((topic.name.as_ref()?.to_string(), topic)));
        let mut found: BTreeMap<_, _> = named.collect();
        let take = |name: &String| match found.remove(name) {
            Some(topic) => Ok((name.clone(), looked_up(name, topic)?)),
            None => Err(AdminError::LeftOut { action: "look up topics".into(), what: format!("topic {name}") }),
        };
        names.iter().map(take).collect()
    }

    /// All topics the principal may describe, with the brokers' own.
    pub async fn list_topics(&self) -> Result<BTreeMap<String, TopicId>, AdminError> {
        let answer = self.metadata(None, self.deadline()).await?;
        let named = answer.topics.into_iter().filter_map(|topic| Some((topic.name?.to_string(), topic.topic_id)));
        Ok(named.collect())
    }

    /// The topics' names now. None: there is no topic of that id, or the principal may not describe it.
    pub async fn topic_names_by_id(
        &self,
        ids: &BTreeSet<TopicId>,
    ) -> Result<BTreeMap<TopicId, Option<String>>, AdminError> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let wanted = ids.iter().map(|id| MetadataRequestTopic::default().with_topic_id(*id).with_name(None));
        let answer = self.metadata(Some(wanted.collect()), self.deadline()).await?;
        let mut names: BTreeMap<_, _> = ids.iter().map(|id| (*id, None)).collect();
        for topic in answer.topics.into_iter().filter(|topic| topic.error_code == 0) {
            names.insert(topic.topic_id, topic.name.map(|name| name.to_string()));
        }
        Ok(names)
    }

    pub(super) async fn metadata_of(
        &self,
        names: &BTreeSet<String>,
        deadline: Deadline,
    ) -> Result<MetadataResponse, ConnectionError> {
        let wanted = names.iter().map(|name| MetadataRequestTopic::default().with_name(Some(topic_name(name))));
        self.metadata(Some(wanted.collect()), deadline).await
    }

    /// None: all topics.
    async fn metadata(
        &self,
        topics: Option<Vec<MetadataRequestTopic>>,
        deadline: Deadline,
    ) -> Result<MetadataResponse, ConnectionError> {
        let request = MetadataRequest::default()
            .with_topics(topics)
            .with_allow_auto_topic_creation(false)
            .with_include_topic_authorized_operations(true);
        let is_final = |answer: &MetadataResponse| {
            // A topic without a leader is an answer, not a reason to wait: it may stay so.
            answer.topics.iter().all(|topic| has_leader_error(topic) || settled(topic.error_code))
        };
        let answer = self.connection.ask_until(Route::Any, &request, deadline, is_final).await?;
        self.connection.learn(&answer);
        Ok(answer)
    }
}

fn looked_up(name: &str, topic: MetadataResponseTopic) -> Result<TopicLookup, AdminError> {
    match Refusal::from_code(topic.error_code, None) {
        None => Ok(TopicLookup::Found(read_topic(name, topic))),
        Some(_) if has_leader_error(&topic) => Ok(TopicLookup::Found(read_topic(name, topic))),
        Some(refusal) if refusal.is_unknown() => Ok(TopicLookup::Missing),
        Some(refusal) if refusal.is_not_authorized() => Ok(TopicLookup::NotAuthorized),
        Some(refusal) if refusal.code == INVALID_TOPIC => Ok(TopicLookup::Invalid),
        Some(refusal) => Err(AdminError::refused(format!("look up topic {name}"), refusal)),
    }
}

/// The topic is there, but not all of its partitions have a leader.
fn has_leader_error(topic: &MetadataResponseTopic) -> bool {
    topic.error_code == LEADER_NOT_AVAILABLE && !topic.partitions.is_empty()
}

fn read_topic(name: &str, topic: MetadataResponseTopic) -> Topic {
    let mut partitions: Vec<Partition> = topic.partitions.iter().map(read_partition).collect();
    partitions.sort_by_key(|partition| partition.id);
    let operations = Operations::from_bits(topic.topic_authorized_operations);
    Topic { name: name.into(), id: topic.topic_id, partitions, operations }
}

fn read_partition(partition: &MetadataResponsePartition) -> Partition {
    Partition {
        id: partition.partition_index,
        leader: Some(partition.leader_id.0).filter(|id| *id >= 0),
        replicas: partition.replica_nodes.iter().map(|id| id.0).collect(),
        isr: partition.isr_nodes.iter().map(|id| id.0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_the_bits_of_their_acl_codes() {
        let all = Operations::from_bits(0b1101_1111_1000);
        assert!(all.read && all.write && all.create && all.delete && all.alter && all.describe);
        assert!(all.describe_configs && all.alter_configs);
        let reader = Operations { read: true, describe: true, ..Operations::default() };
        assert_eq!(Operations::from_bits(1 << 3 | 1 << 8), reader);
    }

    #[test]
    fn lookups_tell_absent_from_forbidden() {
        let lookup = |code| looked_up("t", MetadataResponseTopic::default().with_error_code(code));
        assert_eq!(lookup(3).unwrap(), TopicLookup::Missing);
        assert_eq!(lookup(29).unwrap(), TopicLookup::NotAuthorized);
        assert_eq!(lookup(17).unwrap(), TopicLookup::Invalid);
        assert!(lookup(0).unwrap().found().is_some());
        assert_eq!(lookup(-1).unwrap_err().to_string(), "Kafka refuses to look up topic t: UNKNOWN_SERVER_ERROR");
    }
}
