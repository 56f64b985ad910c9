//! What is so, in Kubernetes and in Kafka. All the reading, no judgement.

use super::brokers::{ClusterFacts, Facts};
use super::peers::{self, Peer};
use super::{connection, naming};
use crate::api::ShareGroupDLQ;
use crate::context::Context;
use crate::kafka::admin::{Admin, AdminError, Configs, OffsetSpec, Position, Refusal, Topic, TopicLookup};
use crate::kafka::{Isolation, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything a plan is made from, besides the object itself.
#[derive(Clone, Debug)]
pub struct Observed {
    pub kafka: KafkaSeen,
    /// Other objects that want the same group of the same cluster, or use the same topic.
    pub peers: Vec<Peer>,
    pub recent: Recent,
    pub required_prefix: String,
}

/// What Redrive itself changed a moment ago: brokers may still answer what was before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    pub topic: bool,
    pub group: bool,
}

#[derive(Clone, Debug)]
pub enum KafkaSeen {
    /// The spec names no cluster that can be asked.
    NotAsked,
    Trouble(Arc<AdminError>),
    Seen(Box<Seen>),
}

/// What Kafka answered.
#[derive(Clone, Debug)]
pub struct Seen {
    pub cluster: Arc<ClusterFacts>,
    pub topic_name: String,
    pub topic: TopicLookup,
    pub topic_configs: Option<Result<Configs, Refusal>>,
    pub group_configs: Result<Configs, Refusal>,
    /// The topics the group has offsets for or members reading.
    pub sources: BTreeSet<String>,
    /// `None` while a partition can't tell.
    pub backlog: Option<Letters>,
}

/// The records between log start and end of the topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Letters {
    pub messages: i64,
    /// In milliseconds since the epoch.
    pub oldest: Option<i64>,
    pub newest: Option<i64>,
}

/// Reads all that concerns one object. `others`: every ShareGroupDLQ there is.
pub async fn observe(
    context: &Context,
    facts: &Facts,
    object: &ShareGroupDLQ,
    others: &[&ShareGroupDLQ],
    recent: Recent,
) -> Observed {
    let required_prefix = context.config.required_prefix.clone();
    let kafka = ask_kafka(context, facts, object).await;
    let peers = match &kafka {
        KafkaSeen::Seen(seen) => peers::find(facts, object, &seen.cluster.id, seen.topic_id().as_deref(), others),
        _ => vec![],
    };
    Observed { kafka, peers, recent, required_prefix }
}

async fn ask_kafka(context: &Context, facts: &Facts, object: &ShareGroupDLQ) -> KafkaSeen {
    let Some(settings) = connection::settings(&object.spec.kafka) else {
        return KafkaSeen::NotAsked;
    };
    let admin = context.clusters.admin(&settings);
    let cluster = match facts.of(&settings, &admin, &context.config.ledger_topic).await {
        Ok(cluster) => cluster,
        Err(error) => return KafkaSeen::Trouble(error),
    };
    match read(&admin, cluster, object, &context.config.required_prefix).await {
        Ok(seen) => KafkaSeen::Seen(Box::new(seen)),
        Err(error) => KafkaSeen::Trouble(Arc::new(error)),
    }
}

impl Seen {
    fn topic_id(&self) -> Option<String> {
        match &self.topic {
            TopicLookup::Found(topic) => Some(topic.id.to_string()),
            _ => None,
        }
    }
}

async fn read(
    admin: &Admin,
    cluster: Arc<ClusterFacts>,
    object: &ShareGroupDLQ,
    required_prefix: &str,
) -> Result<Seen, AdminError> {
    let topic_name = naming::topic_name(object, &cluster.brokers, required_prefix);
    let group = &object.spec.group_id;
    let (topic, group_configs, sources) =
        tokio::try_join!(lookup(admin, &topic_name), group_configs(admin, group), sources(admin, group))?;
    let (topic_configs, backlog) = match &topic {
        TopicLookup::Found(topic) => {
            let (configs, backlog) = tokio::try_join!(topic_configs(admin, &topic_name), backlog(admin, topic))?;
            (Some(configs), backlog)
        }
        _ => (None, None),
    };
    Ok(Seen { cluster, topic_name, topic, topic_configs, group_configs, sources, backlog })
}

async fn lookup(admin: &Admin, name: &str) -> Result<TopicLookup, AdminError> {
    let mut found = admin.topics(&BTreeSet::from([name.to_owned()])).await?;
    Ok(found.remove(name).unwrap_or(TopicLookup::Missing))
}

async fn topic_configs(admin: &Admin, name: &str) -> Result<Result<Configs, Refusal>, AdminError> {
    let mut configs = admin.topic_configs(&BTreeSet::from([name.to_owned()])).await?;
    Ok(configs.remove(name).unwrap_or_else(|| Ok(Configs::default())))
}

async fn group_configs(admin: &Admin, group: &str) -> Result<Result<Configs, Refusal>, AdminError> {
    let mut configs = admin.group_configs(&BTreeSet::from([group.to_owned()])).await?;
    Ok(configs.remove(group).unwrap_or_else(|| Ok(Configs::default())))
}

async fn sources(admin: &Admin, group: &str) -> Result<BTreeSet<String>, AdminError> {
    let ids = BTreeSet::from([group.to_owned()]);
    let (offsets, groups) = tokio::try_join!(admin.share_group_offsets(group, None), admin.share_groups(&ids))?;
    let members = groups.into_values().flatten().flat_map(|group| group.members);
    let assigned = members.flat_map(|member| member.partitions);
    Ok(offsets.into_keys().chain(assigned).map(|partition| partition.topic).collect())
}

async fn backlog(admin: &Admin, topic: &Topic) -> Result<Option<Letters>, AdminError> {
    let partitions = topic.partitions.iter().map(|partition| TopicPartition::new(&topic.name, partition.id));
    let partitions: BTreeSet<_> = partitions.collect();
    let positions = |spec| admin.positions(&partitions, spec, Isolation::ReadUncommitted);
    let (starts, ends) = tokio::try_join!(positions(OffsetSpec::Earliest), positions(OffsetSpec::Latest))?;
    let (Some(starts), Some(ends)) = (all(starts), all(ends)) else { return Ok(None) };
    let offsets = |positions: Vec<Position>| positions.iter().map(|position| position.offset).sum::<i64>();
    let messages = offsets(ends) - offsets(starts);
    if messages == 0 {
        return Ok(Some(Letters::default()));
    }
    let (oldest, newest) = tokio::try_join!(positions(OffsetSpec::AtTime(0)), positions(OffsetSpec::Newest))?;
    let (oldest, newest) = (times(oldest).min(), times(newest).max());
    Ok(Some(Letters { messages, oldest, newest }))
}

type Positions = BTreeMap<TopicPartition, Result<Position, Refusal>>;

fn all(positions: Positions) -> Option<Vec<Position>> {
    positions.into_values().collect::<Result<_, _>>().ok()
}

/// Those of the records that were found.
fn times(positions: Positions) -> impl Iterator<Item = i64> {
    positions.into_values().flatten().map(|position| position.timestamp).filter(|time| *time >= 0)
}
