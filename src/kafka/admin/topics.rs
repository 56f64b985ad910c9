//! Topics created, grown and deleted.

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::{CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest};
use std::collections::{BTreeMap, BTreeSet};

use super::{Admin, AdminError, Refusal};
use crate::kafka::TopicId;
use crate::kafka::connection::{Deadline, Pauses, Route, settled, text, topic_name};

const TOPIC_ALREADY_EXISTS: i16 = 36;
const INVALID_PARTITIONS: i16 = 37;
/// Stands for the brokers' default in CreateTopics (KIP-464).
const BROKER_DEFAULT: i16 = -1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    pub name: String,
    /// None leaves it to the brokers' `num.partitions`.
    pub partitions: Option<i32>,
    /// None leaves it to the brokers' `default.replication.factor`.
    pub replication_factor: Option<i16>,
    pub configs: BTreeMap<String, String>,
}

impl Admin {
    /// Creates a topic and waits until all of its partitions have leaders.
    ///
    /// Fails with [`AdminError::TopicExists`] where it was there before, or where the answer to a first request was lost
    /// and a second one found the topic made.
    pub async fn create_topic(&self, new: &NewTopic) -> Result<TopicId, AdminError> {
        let deadline = self.deadline();
        let request =
            CreateTopicsRequest::default().with_topics(vec![creatable(new)]).with_timeout_ms(milliseconds(deadline));
        let answer = self
            .connection
            .ask_until(Route::Controller, &request, deadline, |a| {
                a.topics.iter().all(|topic| settled(topic.error_code))
            })
            .await?;
        let action = || format!("create topic {}", new.name);
        let topic = answer.topics.first().ok_or_else(|| left_out(action(), &new.name))?;
        match Refusal::from_code(topic.error_code, topic.error_message.as_deref()) {
            None => self.await_leaders(&new.name, topic.topic_id, deadline).await,
            Some(refusal) if refusal.code == TOPIC_ALREADY_EXISTS => {
                Err(AdminError::TopicExists { topic: new.name.clone() })
            }
            Some(refusal) => Err(AdminError::refused(action(), refusal)),
        }
    }

    async fn await_leaders(&self, topic: &str, id: TopicId, deadline: Deadline) -> Result<TopicId, AdminError> {
        let names = BTreeSet::from([topic.to_string()]);
        let mut pauses = Pauses::default();
        loop {
            let topics = self.topics_within(&names, deadline).await?;
            let found = topics.get(topic).and_then(|lookup| lookup.found());
            // A topic of another id is one that stood there before, or that came after: ours is not to be seen yet, or any more.
            let led = |found: &super::Topic| found.id == id && found.partitions.iter().all(|p| p.leader.is_some());
            if found.is_some_and(led) {
                return Ok(id);
            }
            if !pauses.pause(deadline).await {
                return Err(AdminError::AwaitLeaders { topic: topic.into() });
            }
        }
    }

    /// Brings a topic to `count` partitions. No error where it has that many already; one where it has more.
    pub async fn grow_partitions(&self, topic: &str, count: i32) -> Result<(), AdminError> {
        let deadline = self.deadline();
        let wanted =
            CreatePartitionsTopic::default().with_name(topic_name(topic)).with_count(count).with_assignments(None);
        let request =
            CreatePartitionsRequest::default().with_topics(vec![wanted]).with_timeout_ms(milliseconds(deadline));
        let answer = self
            .connection
            .ask_until(Route::Controller, &request, deadline, |a| a.results.iter().all(|r| settled(r.error_code)))
            .await?;
        let action = || format!("grow topic {topic} to {count} partitions");
        let result = answer.results.first().ok_or_else(|| left_out(action(), topic))?;
        match Refusal::from_code(result.error_code, result.error_message.as_deref()) {
            None => Ok(()),
            Some(refusal)
                if refusal.code == INVALID_PARTITIONS && self.has_partitions(topic, count, deadline).await? =>
            {
                Ok(())
            }
            Some(refusal) => Err(AdminError::refused(action(), refusal)),
        }
    }

    async fn has_partitions(&self, topic: &str, count: i32, deadline: Deadline) -> Result<bool, AdminError> {
        let topics = self.topics_within(&BTreeSet::from([topic.to_string()]), deadline).await?;
        let found = topics.get(topic).and_then(|lookup| lookup.found());
        Ok(found.is_some_and(|found| i32::try_from(found.partitions.len()) == Ok(count)))
    }

    /// Fails with an error that [`AdminError::is_unknown`] where there is no such topic.
    pub async fn delete_topic(&self, topic: &str) -> Result<(), AdminError> {
        let deadline = self.deadline();
        let wanted = DeleteTopicState::default().with_name(Some(topic_name(topic)));
        let request = DeleteTopicsRequest::default().with_topics(vec![wanted]).with_timeout_ms(milliseconds(deadline));
        let answer = self
            .connection
            .ask_until(Route::Controller, &request, deadline, |a| a.responses.iter().all(|r| settled(r.error_code)))
            .await?;
        let action = || format!("delete topic {topic}");
        let result = answer.responses.first().ok_or_else(|| left_out(action(), topic))?;
        let refusal = Refusal::from_code(result.error_code, result.error_message.as_deref());
        refusal.map_or(Ok(()), |refusal| Err(AdminError::refused(action(), refusal)))
    }
}

fn creatable(new: &NewTopic) -> CreatableTopic {
    let config = |(name, value): (&String, &String)| {
        CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
    };
    CreatableTopic::default()
        .with_name(topic_name(&new.name))
        .with_num_partitions(new.partitions.unwrap_or(BROKER_DEFAULT.into()))
        .with_replication_factor(new.replication_factor.unwrap_or(BROKER_DEFAULT))
        .with_configs(new.configs.iter().map(config).collect())
}

/// The time the broker may take itself.
fn milliseconds(deadline: Deadline) -> i32 {
    i32::try_from(deadline.remaining().as_millis()).unwrap_or(i32::MAX)
}

fn left_out(action: String, topic: &str) -> AdminError {
    AdminError::LeftOut { action, what: format!("topic {topic}") }
}
