//! Everything a preview is made from: the look at Kafka, without judgement. Nothing is changed, not even created.

use super::letter::Letter;
use super::selection::{Matcher, ParseSelectionError};
use super::survey::{Earlier, Payload, Survey};
use crate::kafka::admin::{Admin, AdminError, Configs, OffsetSpec, Refusal, Topic, TopicLookup};
use crate::kafka::dead_letter::{self, Cause, DeadLetter};
use crate::kafka::ledger::{History, Ledger, LedgerError, Replayed};
use crate::kafka::reader::{Fetcher, Order, ReadError, Reader};
use crate::kafka::record::Record;
use crate::kafka::settings::Settings;
use crate::kafka::share_groups::{Reader as GroupReader, ShareGroup, ShareOffset};
use crate::kafka::{Isolation, Span, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, thiserror::Error)]
pub enum LookError {
    #[error(transparent)]
    AskKafka(#[from] AdminError),
    #[error(transparent)]
    ReadTopic(#[from] ReadError),
    #[error(transparent)]
    ReadLedger(#[from] LedgerError),
    #[error(transparent)]
    ParseSelection(#[from] ParseSelectionError),
    #[error("the dead-letter topic {topic} is not there ({lookup:?}); see the conditions of the ShareGroupDLQ")]
    FindDeadLetterTopic { topic: String, lookup: Option<TopicLookup> },
    #[error("the offsets of {partition} can't be read: {refusal}")]
    ReadOffsets { partition: TopicPartition, refusal: Refusal },
    #[error("the configs of {of} can't be read: {refusal}")]
    ReadConfigs { of: String, refusal: Refusal },
}

/// Where to look, as the ShareGroupDLQ and the DLQReplay say.
pub struct Where<'a> {
    pub admin: &'a Admin,
    pub settings: &'a Settings,
    pub dead_letter_topic: &'a str,
    pub group: &'a str,
    pub ledger_topic: &'a str,
    /// Another target than the sources.
    pub target: Option<&'a str>,
    /// The group whose progress settles, if it was named.
    pub settling_group: Option<&'a str>,
    /// The part of the dead-letter topic to look at; absent: all there is now.
    pub bounds: Option<Vec<Span>>,
}

/// What is so.
pub struct Scene {
    pub cluster_id: String,
    pub dead_letter_topic: Topic,
    pub dead_letter_configs: Configs,
    pub bounds: Vec<Span>,
    pub ledger: Option<Ledger>,
    pub history: History,
    pub survey: Survey,
    /// The topics that dead letters name, and the target.
    pub topics: BTreeMap<String, TopicFacts>,
    /// The groups that read the targets.
    pub readers: Vec<GroupReader>,
    pub group_configs: Configs,
    /// All that the failing group reads: where else could its dead letters come from?
    pub group_offsets: BTreeMap<TopicPartition, ShareOffset>,
    /// The failing group and the one named for settling, as far as they exist.
    pub groups: BTreeMap<String, Option<ShareGroup>>,
    pub settling_offsets: BTreeMap<String, BTreeMap<TopicPartition, ShareOffset>>,
    pub settling_configs: BTreeMap<String, Configs>,
    /// Brokers on which a fenced producer could still write.
    pub unverifying_brokers: Vec<i32>,
}

pub struct TopicFacts {
    pub lookup: TopicLookup,
    pub configs: Option<Configs>,
    /// First offset and the one after the last, by partition.
    pub extents: BTreeMap<i32, (i64, i64)>,
}

impl TopicFacts {
    pub fn found(&self) -> Option<&Topic> {
        match &self.lookup {
            TopicLookup::Found(topic) => Some(topic),
            _ => None,
        }
    }

    fn is_compacted(&self) -> bool {
        let policy = self.configs.as_ref().and_then(|configs| configs.value("cleanup.policy"));
        policy.is_some_and(|policy| policy.contains("compact"))
    }
}

/// Looks at everything.
pub async fn look(at: &Where<'_>, matcher: &Matcher) -> Result<Scene, LookError> {
    let admin = at.admin;
    let cluster = admin.cluster().await?;
    let (dead_letter_topic, dead_letter_configs) = find_dead_letter_topic(at).await?;
    let ledger = Ledger::find(admin, at.ledger_topic).await?;
    let history = match &ledger {
        Some(ledger) => ledger.read(admin, at.settings, dead_letter_topic.id).await?,
        None => History::default(),
    };
    let index = history.index(at.group);
    let bounds = match &at.bounds {
        Some(bounds) => bounds.clone(),
        None => extent(admin, &dead_letter_topic).await?.into_iter().map(span).collect(),
    };
    let mut surveyor = Surveyor::new(at, matcher, &index)?;
    surveyor.survey(&bounds).await?;
    let Surveyor { survey, mut topics, .. } = surveyor;
    if let Some(target) = at.target {
        topics.extend(look_up(admin, &BTreeSet::from([target.to_string()])).await?);
    }
    let targets = targets(at, &survey);
    let readers = if targets.is_empty() { Vec::new() } else { admin.readers(&targets).await? };
    let groups = groups_of_interest(at, &readers);
    let (described, configs, group_offsets) = tokio::try_join!(
        admin.share_groups(&groups),
        admin.group_configs(&groups),
        admin.share_group_offsets(at.group, None),
    )?;
    let settling_configs = readable(configs)?;
    let mut settling_offsets = BTreeMap::new();
    for group in &groups {
        settling_offsets.insert(group.clone(), admin.share_group_offsets(group, None).await?);
    }
    Ok(Scene {
        cluster_id: cluster.id,
        group_configs: settling_configs.get(at.group).cloned().unwrap_or_default(),
        unverifying_brokers: find_unverifying(admin).await?,
        groups: described,
        dead_letter_topic,
        dead_letter_configs,
        bounds,
        ledger,
        history,
        survey,
        topics,
        readers,
        group_offsets,
        settling_offsets,
        settling_configs,
    })
}

fn span((partition, (from, until)): (i32, (i64, i64))) -> Span {
    Span { partition, from, until }
}

async fn find_dead_letter_topic(at: &Where<'_>) -> Result<(Topic, Configs), LookError> {
    let name = BTreeSet::from([at.dead_letter_topic.to_string()]);
    let (mut topics, configs) = tokio::try_join!(at.admin.topics(&name), at.admin.topic_configs(&name))?;
    match topics.remove(at.dead_letter_topic) {
        Some(TopicLookup::Found(topic)) => {
            let configs = readable(configs)?.remove(at.dead_letter_topic).unwrap_or_default();
            Ok((topic, configs))
        }
        lookup => Err(LookError::FindDeadLetterTopic { topic: at.dead_letter_topic.into(), lookup }),
    }
}

fn readable(configs: BTreeMap<String, Result<Configs, Refusal>>) -> Result<BTreeMap<String, Configs>, LookError> {
    let readable = |(of, configs): (String, Result<Configs, Refusal>)| match configs {
        Ok(configs) => Ok((of, configs)),
        Err(refusal) => Err(LookError::ReadConfigs { of, refusal }),
    };
    configs.into_iter().map(readable).collect()
}

fn targets(at: &Where<'_>, survey: &Survey) -> BTreeSet<String> {
    match at.target {
        Some(target) => BTreeSet::from([target.to_string()]),
        None => survey.sources.keys().map(|partition| partition.topic.clone()).collect(),
    }
}

/// The failing group, the group named for settling, and every share group that reads a target.
fn groups_of_interest(at: &Where<'_>, readers: &[GroupReader]) -> BTreeSet<String> {
    let named = [Some(at.group), at.settling_group].into_iter().flatten().map(str::to_string);
    let share = readers.iter().filter(|reader| reader.kind == crate::kafka::share_groups::GroupKind::Share);
    named.chain(share.map(|reader| reader.group.clone())).collect()
}

async fn find_unverifying(admin: &Admin) -> Result<Vec<i32>, AdminError> {
    const VERIFICATION: &str = "transaction.partition.verification.enable";
    let brokers = admin.broker_configs(&[VERIFICATION]).await?;
    Ok(brokers.into_iter().filter(|(_, configs)| !configs.is_true(VERIFICATION)).map(|(id, _)| id).collect())
}

async fn look_up(admin: &Admin, names: &BTreeSet<String>) -> Result<BTreeMap<String, TopicFacts>, LookError> {
    let (topics, mut configs) = tokio::try_join!(admin.topics(names), admin.topic_configs(names))?;
    let mut facts = BTreeMap::new();
    for (name, lookup) in topics {
        let extents = match &lookup {
            TopicLookup::Found(topic) => extent(admin, topic).await?,
            _ => BTreeMap::new(),
        };
        let configs = configs.remove(&name).and_then(Result::ok);
        facts.insert(name, TopicFacts { lookup, configs, extents });
    }
    Ok(facts)
}

async fn extent(admin: &Admin, topic: &Topic) -> Result<BTreeMap<i32, (i64, i64)>, LookError> {
    let partitions = topic.partitions.iter().map(|p| TopicPartition::new(&topic.name, p.id)).collect();
    let (starts, ends) = tokio::try_join!(
        admin.offsets(&partitions, OffsetSpec::Earliest, Isolation::ReadUncommitted),
        admin.offsets(&partitions, OffsetSpec::Latest, Isolation::ReadUncommitted),
    )?;
    let mut extents = BTreeMap::new();
    for (partition, start) in starts {
        let refused = |refusal| LookError::ReadOffsets { partition: partition.clone(), refusal };
        let start = start.map_err(refused)?;
        let end = ends
            .get(&partition)
            .cloned()
            .unwrap_or(Ok(start))
            .map_err(|refusal| LookError::ReadOffsets { partition: partition.clone(), refusal })?;
        extents.insert(partition.partition, (start, end));
    }
    Ok(extents)
}

/// One pass over the dead-letter topic.
struct Surveyor<'a> {
    at: &'a Where<'a>,
    matcher: &'a Matcher,
    index: &'a Replayed,
    fetcher: Fetcher,
    survey: Survey,
    topics: BTreeMap<String, TopicFacts>,
}

impl<'a> Surveyor<'a> {
    fn new(at: &'a Where<'a>, matcher: &'a Matcher, index: &'a Replayed) -> Result<Self, LookError> {
        let fetcher = Fetcher::new(at.settings)?;
        Ok(Self { at, matcher, index, fetcher, survey: Survey::default(), topics: BTreeMap::new() })
    }

    async fn survey(&mut self, bounds: &[Span]) -> Result<(), LookError> {
        // Only a limit asks for the oldest first.
        let order = if self.matcher.limit().is_some() { Order::ByTime } else { Order::ByPartition };
        let spans = bounds.iter().copied().filter(|span| span.from < span.until).collect();
        let (settings, topic) = (self.at.settings, self.at.dead_letter_topic);
        let mut reader = Reader::open(settings, topic, spans, Isolation::ReadUncommitted, order)?;
        while let Some(batch) = reader.next_batch().await {
            let letters = self.choose(batch?);
            self.look_up_sources(&letters).await?;
            let missing = self.find_missing(&letters).await?;
            for letter in letters {
                if self.matcher.limit().is_some_and(|limit| self.survey.messages >= limit) {
                    return Ok(());
                }
                self.add(letter, &missing);
            }
        }
        Ok(())
    }

    /// The dead letters of the batch that are selected.
    fn choose(&mut self, batch: Vec<Record>) -> Vec<DeadLetter> {
        let mut chosen = Vec::new();
        for record in batch {
            match dead_letter::read(&record) {
                Err(error) => self.survey.leave_out_unreadable(error),
                Ok(letter) if letter.group != self.at.group => self.survey.of_other_groups += 1,
                Ok(letter) if !self.matcher.matches(&letter, self.index.attempt_of(&letter.source)) => {}
                Ok(letter) => match self.earlier(&letter) {
                    Some(earlier) if !self.matcher.includes_replayed() => self.survey.leave_out_replayed(earlier),
                    _ => chosen.push(letter),
                },
            }
        }
        chosen
    }

    /// Whether this very message, and not one it came back as, was replayed.
    fn earlier(&self, letter: &DeadLetter) -> Option<Earlier> {
        let seen = self.index.was_sent(&letter.source).or_else(|| self.index.was_uncertain(&letter.source))?;
        Some(Earlier { at: seen.at, replay: seen.replay.to_string() })
    }

    async fn look_up_sources(&mut self, letters: &[DeadLetter]) -> Result<(), LookError> {
        let names = letters.iter().map(|letter| &letter.source.topic);
        let new: BTreeSet<_> = names.filter(|name| !self.topics.contains_key(*name)).cloned().collect();
        if !new.is_empty() {
            self.topics.extend(look_up(self.at.admin, &new).await?);
        }
        Ok(())
    }

    /// Of the letters for which it is in doubt, those whose source has no record at their offset: a lock that timed out
    /// over a transaction marker leaves a dead letter of no message, and compaction takes messages away.
    async fn find_missing(&mut self, letters: &[DeadLetter]) -> Result<BTreeSet<crate::kafka::Coordinates>, LookError> {
        let in_doubt = letters.iter().filter(|letter| {
            let facts = self.topics.get(&letter.source.topic);
            let compacted = facts.is_some_and(TopicFacts::is_compacted);
            self.is_in_log(letter) && (compacted || letter.cause != Cause::Rejected)
        });
        let wanted: BTreeSet<_> = in_doubt.map(|letter| letter.source.clone()).collect();
        if wanted.is_empty() {
            return Ok(wanted);
        }
        let found = self.fetcher.fetch(&wanted).await?;
        Ok(wanted.into_iter().filter(|at| !found.contains_key(at)).collect())
    }

    fn is_in_log(&self, letter: &DeadLetter) -> bool {
        let extent =
            self.topics.get(&letter.source.topic).and_then(|facts| facts.extents.get(&letter.source.partition));
        extent.is_some_and(|(start, end)| (*start..*end).contains(&letter.source.offset))
    }

    fn add(&mut self, letter: DeadLetter, missing: &BTreeSet<crate::kafka::Coordinates>) {
        let gone = missing.contains(&letter.source);
        if gone && !letter.has_copy && letter.cause == Cause::DeliveryLimit {
            self.survey.phantoms += 1;
            return;
        }
        let payload = match (self.is_in_log(&letter) && !gone, letter.has_copy) {
            (true, _) => Payload::Original,
            (false, true) => Payload::Copy,
            (false, false) => Payload::Unavailable,
        };
        let facts = self.topics.get(&letter.source.topic);
        let end = facts.and_then(|facts| facts.extents.get(&letter.source.partition)).map(|(_, end)| *end);
        if end.is_some_and(|end| letter.source.offset >= end) {
            self.survey.past_end += 1;
        }
        let attempts = self.index.attempt_of(&letter.source);
        let earlier = self.earlier(&letter).or_else(|| self.came_back(&letter));
        let message = letter.message.clone();
        self.survey.add(Letter::new(letter, attempts + 1), &message, payload, earlier);
    }

    /// The replay after which the message came back as this dead letter.
    fn came_back(&self, letter: &DeadLetter) -> Option<Earlier> {
        let seen = self.index.came_back_from(&letter.source)?;
        Some(Earlier { at: seen.at, replay: seen.replay.to_string() })
    }
}
