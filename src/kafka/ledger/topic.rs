//! The topic that holds the ledger: made, found, checked and read.

use super::codec;
use super::error::LedgerError;
use super::history::History;
use crate::kafka::admin::{Admin, AdminError, Configs, NewTopic, OffsetSpec, Topic, TopicLookup};
use crate::kafka::reader::{Order, Reader};
use crate::kafka::settings::Settings;
use crate::kafka::{Coordinates, Isolation, Span, TopicId, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The largest entry: a frozen selection of tens of millions of scattered dead letters fits.
pub const MAX_ENTRY_BYTES: usize = 8 << 20;
const LEADERS_WITHIN: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// An open transaction of an owner that went silent is aborted after its time-out, at the latest on the coordinator's next
/// round (every 10 s by default). Until then committed entries behind it are not to be read.
const TRANSACTIONS_WITHIN: Duration = Duration::from_secs(45);

/// What to make the topic like, if it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerSpec {
    pub topic: String,
    pub partitions: i32,
    /// None: the brokers' default.
    pub replication_factor: Option<i16>,
}

/// The topic as it was found. Its id is to be remembered: under another one it is another ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub topic: String,
    pub id: TopicId,
    partitions: i32,
}

impl Ledger {
    /// None if there is no such topic.
    pub async fn find(admin: &Admin, topic: &str) -> Result<Option<Self>, LedgerError> {
        Ok(look_up(admin, topic).await?.as_ref().map(Self::of))
    }

    /// Finds the topic, or makes it and waits until it can be written. Fails if it is not fit to be relied on: compacted, never
    /// led by a replica that lags behind, and with the replicas that were asked for.
    pub async fn ensure(admin: &Admin, spec: &LedgerSpec) -> Result<Self, LedgerError> {
        let topic = find_or_create(admin, spec).await?;
        check(admin, spec, &topic).await?;
        Ok(Self::of(&topic))
    }

    fn of(topic: &Topic) -> Self {
        let partitions = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        Self { topic: topic.name.clone(), id: topic.id, partitions }
    }

    /// The one partition that takes all entries about a dead-letter topic, so that their order is that of their commits.
    pub fn partition_of(&self, dlq: TopicId) -> i32 {
        // Topic ids are random, so no hash is needed to spread them. The remainder is below an i32.
        i32::try_from(dlq.as_u128() % u128::from(self.partitions.max(1).unsigned_abs())).unwrap_or(0)
    }

    /// Everything committed about a dead-letter topic, up to the end of the ledger as it is now.
    ///
    /// All partitions are read: their number may have been raised since. To be called after taking over the transactional
    /// id, so that nothing can be added behind the end.
    pub async fn read(&self, admin: &Admin, settings: &Settings, dlq: TopicId) -> Result<History, LedgerError> {
        // The end is asked for uncommitted: the answer for committed records stops at the first open transaction.
        let spans = self.spans(admin).await?;
        let (isolation, order) = (Isolation::ReadCommitted, Order::ByTime);
        let mut reader = Reader::open_patiently(settings, &self.topic, spans, isolation, order, TRANSACTIONS_WITHIN)?;
        let mut history = History::default();
        while let Some(batch) = reader.next_batch().await {
            for record in batch? {
                let entry = codec::decode(dlq, record.key.as_deref(), record.value.as_deref());
                let at = || Coordinates::new(&self.topic, record.partition, record.offset);
                if let Some(entry) = entry.map_err(|source| LedgerError::DecodeEntry { at: at(), source })? {
                    history.add(entry);
                }
            }
        }
        self.check_kept(admin).await?;
        Ok(history)
    }

    async fn spans(&self, admin: &Admin) -> Result<Vec<Span>, LedgerError> {
        let starts = self.offsets(admin, OffsetSpec::Earliest).await?;
        let ends = self.offsets(admin, OffsetSpec::Latest).await?;
        let span = |(partition, from): (&i32, &i64)| {
            ends.get(partition).map(|until| Span { partition: *partition, from: *from, until: *until })
        };
        Ok(starts.iter().filter_map(span).collect())
    }

    async fn offsets(&self, admin: &Admin, spec: OffsetSpec) -> Result<BTreeMap<i32, i64>, LedgerError> {
        let all: BTreeSet<_> =
            (0..self.partitions).map(|partition| TopicPartition::new(&self.topic, partition)).collect();
        let answer = admin.offsets(&all, spec, Isolation::ReadUncommitted).await;
        let answer = answer.map_err(|source| LedgerError::AskBroker { topic: self.topic.clone(), source })?;
        let offset = |(at, offset): (TopicPartition, Result<i64, _>)| match offset {
            Ok(offset) => Ok((at.partition, offset)),
            Err(refusal) => Err(LedgerError::AskOffsets { at, refusal }),
        };
        answer.into_iter().map(offset).collect()
    }

    /// Fails if the topic is not the one it was: then what was read may be a part only.
    pub async fn check_kept(&self, admin: &Admin) -> Result<(), LedgerError> {
        match look_up(admin, &self.topic).await? {
            Some(topic) if topic.id == self.id => Ok(()),
            _ => Err(LedgerError::KeepTopic { topic: self.topic.clone() }),
        }
    }
}

async fn look_up(admin: &Admin, name: &str) -> Result<Option<Topic>, LedgerError> {
    let topic = name.to_owned();
    let found = admin.topics(&BTreeSet::from([topic.clone()])).await;
    let mut found = found.map_err(|source| LedgerError::FindTopic { topic: topic.clone(), source })?;
    match found.remove(name) {
        Some(TopicLookup::Found(topic)) => Ok(Some(topic)),
        Some(TopicLookup::NotAuthorized) => Err(LedgerError::AuthorizeTopic { topic }),
        Some(TopicLookup::Invalid) => Err(LedgerError::NameTopic { topic }),
        Some(TopicLookup::Missing) | None => Ok(None),
    }
}

async fn create(admin: &Admin, spec: &LedgerSpec) -> Result<(), LedgerError> {
    let new = NewTopic {
        name: spec.topic.clone(),
        partitions: Some(spec.partitions),
        replication_factor: spec.replication_factor,
        configs: configs(spec.replication_factor),
    };
    match admin.create_topic(&new).await {
        Ok(_) => Ok(()),
        // Another operator was first.
        Err(AdminError::TopicExists { .. }) => Ok(()),
        Err(source) => Err(LedgerError::CreateTopic { topic: spec.topic.clone(), source }),
    }
}

fn configs(replication_factor: Option<i16>) -> BTreeMap<String, String> {
    let mut configs = vec![
        ("cleanup.policy", "compact".to_owned()),
        ("unclean.leader.election.enable", "false".to_owned()),
        ("max.message.bytes", (MAX_ENTRY_BYTES + (1 << 20)).to_string()),
        // Only closed segments are compacted; the default of 1 GiB would keep superseded entries for very long.
        ("segment.bytes", (64 << 20).to_string()),
    ];
    // An entry outlives the loss of a broker, and the loss of a broker does not stop the writing.
    let in_sync = replication_factor.map(|replicas| if replicas >= 3 { 2 } else { 1 });
    configs.extend(in_sync.map(|replicas| ("min.insync.replicas", replicas.to_string())));
    configs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Looks again after creating, and until every partition has a leader. A broker may still name a topic that is deleted, so one
/// that was there may be missing the next time.
async fn find_or_create(admin: &Admin, spec: &LedgerSpec) -> Result<Topic, LedgerError> {
    let since = Instant::now();
    let mut ticks = tokio::time::interval(LOOK_AGAIN);
    while since.elapsed() < LEADERS_WITHIN {
        ticks.tick().await;
        match look_up(admin, &spec.topic).await? {
            Some(topic) if is_led(&topic) => return Ok(topic),
            Some(_) => {}
            None => create(admin, spec).await?,
        }
    }
    Err(LedgerError::AwaitLeaders { topic: spec.topic.clone(), waited: since.elapsed() })
}

fn is_led(topic: &Topic) -> bool {
    !topic.partitions.is_empty() && topic.partitions.iter().all(|partition| partition.leader.is_some())
}

async fn check(admin: &Admin, spec: &LedgerSpec, topic: &Topic) -> Result<(), LedgerError> {
    let failed = |reason: String| LedgerError::ReadConfig { topic: spec.topic.clone(), reason };
    let configs = admin.topic_configs(&BTreeSet::from([spec.topic.clone()])).await;
    let configs = configs.map_err(|error| failed(error.to_string()))?.remove(&spec.topic);
    let configs = configs.ok_or_else(|| failed("the broker did not answer for it".to_owned()))?;
    let configs = configs.map_err(|refusal| failed(refusal.to_string()))?;
    let replicas = topic.partitions.iter().map(|partition| partition.replicas.len()).min().unwrap_or(0);
    let problem = config_problem(&configs).or_else(|| replica_problem(spec, replicas));
    problem.map_or(Ok(()), |problem| Err(LedgerError::TrustTopic { topic: spec.topic.clone(), problem }))
}

fn config_problem(configs: &Configs) -> Option<String> {
    let needed = [
        ("cleanup.policy", "compact", "entries would be deleted with time"),
        ("unclean.leader.election.enable", "false", "a replica that lags behind could become the leader"),
    ];
    needed.into_iter().find_map(|(name, value, otherwise)| {
        let found = configs.value(name).unwrap_or_default();
        (found != value).then(|| format!("its {name} is \"{found}\" instead of \"{value}\", so {otherwise}"))
    })
}

fn replica_problem(spec: &LedgerSpec, replicas: usize) -> Option<String> {
    let asked = usize::try_from(spec.replication_factor?).unwrap_or(0);
    (replicas < asked).then(|| format!("a partition of it has {replicas} replicas instead of {asked}"))
}
