//! What all objects of one Kafka cluster need to know about it, read once for all of them.

use super::config;
use crate::kafka::TopicId;
use crate::kafka::admin::{Admin, AdminError, TopicLookup};
use crate::kafka::settings::Settings;
use crate::kafka::share_groups::GroupKind;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Objects that are reconciled within this time share one answer; shorter than the shortest resync.
const FRESH: Duration = Duration::from_millis(500);

/// The settings of one broker that decide about dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSettings {
    pub auto_create: bool,
    pub prefix: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClusterFacts {
    pub id: String,
    /// The finalized level of the feature `share.version`.
    pub share_version: i16,
    pub brokers: BTreeMap<i32, BrokerSettings>,
    /// Every group that exists, of whatever kind.
    pub groups: HashMap<String, GroupKind>,
    /// The ledger topic's id; absent before the first replay on this cluster, or where it may not be seen.
    pub ledger: Option<TopicId>,
}

type Answer = Result<Arc<ClusterFacts>, Arc<AdminError>>;
type Slot = Arc<tokio::sync::Mutex<Option<(Instant, Answer)>>>;

/// The facts of every cluster in use; clones share them.
#[derive(Clone, Default)]
pub struct Facts {
    slots: Arc<std::sync::Mutex<HashMap<Settings, Slot>>>,
}

impl Facts {
    /// Failures are shared like answers: a cluster that is away is waited for once, not once per object.
    pub async fn of(&self, settings: &Settings, admin: &Admin, ledger: &str) -> Answer {
        let slot = self.slot(settings);
        let mut slot = slot.lock().await;
        if let Some((at, answer)) = &*slot
            && at.elapsed() < FRESH
        {
            return answer.clone();
        }
        let answer = read(admin, ledger).await.map(Arc::new).map_err(Arc::new);
        *slot = Some((Instant::now(), answer.clone()));
        answer
    }

    /// The id of the cluster behind these settings, if it was ever reached.
    pub fn cluster_id(&self, settings: &Settings) -> Option<String> {
        let slot = self.slot(settings);
        // A slot in use is being read anew: not worth waiting for.
        let slot = slot.try_lock().ok()?;
        slot.as_ref().and_then(|(_, answer)| answer.as_ref().ok()).map(|facts| facts.id.clone())
    }

    fn slot(&self, settings: &Settings) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(settings.clone()).or_default().clone()
    }
}

async fn read(admin: &Admin, ledger: &str) -> Result<ClusterFacts, AdminError> {
    let cluster = admin.cluster().await?;
    let configs = admin.broker_configs(&[config::AUTO_CREATE, config::PREFIX]).await?;
    let brokers = configs.into_iter().map(|(id, configs)| {
        let prefix = configs.value(config::PREFIX).unwrap_or("").to_owned();
        (id, BrokerSettings { auto_create: configs.is_true(config::AUTO_CREATE), prefix })
    });
    let brokers = brokers.collect();
    let groups = admin.groups().await?.into_iter().map(|group| (group.id, group.kind)).collect();
    let topics = admin.topics(&BTreeSet::from([ledger.to_owned()])).await?;
    let ledger = topics.into_values().find_map(|lookup| match lookup {
        TopicLookup::Found(topic) => Some(topic.id),
        _ => None,
    });
    Ok(ClusterFacts { id: cluster.id, share_version: cluster.share_version, brokers, groups, ledger })
}
