//! Watching what was sent: the group's offsets, and the dead-letter topic for messages that come back.

use crate::kafka::admin::{Admin, AdminError, OffsetSpec, Refusal, TopicLookup};
use crate::kafka::dead_letter::{self, DeadLetter};
use crate::kafka::ledger::Move;
use crate::kafka::reader::{Order, ReadError, Reader};
use crate::kafka::settings::Settings;
use crate::kafka::{Coordinates, Isolation, Span, TopicId, TopicPartition};
use crate::replay::settle::{GroupSample, PartitionSample, Sample};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    AskKafka(#[from] AdminError),
    #[error("the offsets of {partition} can't be read: {refusal}")]
    ReadOffsets { partition: TopicPartition, refusal: Refusal },
    #[error("topic {topic} is gone")]
    LoseTopic { topic: String },
    #[error("the dead-letter topic can't be read: {0}")]
    ReadDeadLetters(#[from] ReadError),
    #[error(
        "dead letters of {partition} from offset {from} on were deleted before they were looked at (the log now starts at {log_start}), so a message that came back may have been missed"
    )]
    MissDeadLetters { partition: TopicPartition, from: i64, log_start: i64 },
}

/// Looks at the settling group and the given partitions of the targets.
pub async fn sample(admin: &Admin, group: &str, partitions: &BTreeSet<TopicPartition>) -> Result<Sample, WatchError> {
    let names: BTreeSet<String> = partitions.iter().map(|p| p.topic.clone()).collect();
    let groups = BTreeSet::from([group.to_string()]);
    let (cluster, topics, described, configs, offsets, starts, ends, stable) = tokio::try_join!(
        admin.cluster(),
        admin.topics(&names),
        admin.share_groups(&groups),
        admin.group_configs(&groups),
        admin.share_group_offsets(group, Some(partitions)),
        admin.offsets(partitions, OffsetSpec::Earliest, Isolation::ReadUncommitted),
        admin.offsets(partitions, OffsetSpec::Latest, Isolation::ReadUncommitted),
        admin.offsets(partitions, OffsetSpec::Latest, Isolation::ReadCommitted),
    )?;
    let described = described.into_values().flatten().next();
    let configs = configs.into_values().find_map(Result::ok).unwrap_or_default();
    let config = |name| configs.value(name).unwrap_or_default().to_string();
    let group = GroupSample {
        members: described.as_ref().map_or(0, |group| group.members.len()),
        epoch: described.as_ref().map_or(0, |group| group.epoch),
        isolation: config("share.isolation.level"),
        dead_letter_topic: config("errors.deadletterqueue.topic.name"),
        share_version: cluster.share_version,
    };
    let mut seen = BTreeMap::new();
    for partition in partitions {
        let Some(TopicLookup::Found(topic)) = topics.get(&partition.topic) else {
            return Err(WatchError::LoseTopic { topic: partition.topic.clone() });
        };
        let share = offsets.get(partition);
        let one = PartitionSample {
            topic_id: topic.id,
            log_start: offset(&starts, partition)?,
            high_watermark: offset(&ends, partition)?,
            stable: offset(&stable, partition)?,
            start: share.and_then(|share| share.start),
            lag: share.and_then(|share| share.lag),
        };
        seen.insert(partition.clone(), one);
    }
    Ok(Sample { group, partitions: seen })
}

type Offsets = BTreeMap<TopicPartition, Result<i64, Refusal>>;

fn offset(of: &Offsets, partition: &TopicPartition) -> Result<i64, WatchError> {
    match of.get(partition) {
        Some(Ok(offset)) => Ok(*offset),
        Some(Err(refusal)) => Err(WatchError::ReadOffsets { partition: partition.clone(), refusal: refusal.clone() }),
        None => Err(WatchError::LoseTopic { topic: partition.topic.clone() }),
    }
}

/// Which dead letter a target offset was sent for, for everything one replay has sent.
#[derive(Clone, Debug, Default)]
pub struct SentIndex {
    moves: BTreeMap<TopicPartition, Vec<Move>>,
}

impl SentIndex {
    pub fn add(&mut self, one: Move) {
        self.moves.entry(one.target.clone()).or_default().push(one);
    }

    /// The dead letter that was sent to exactly these coordinates: its partition and offset. Never a range: markers of
    /// transactions lie between, and the phantoms they give must not match.
    pub fn letter_sent_to(&self, target: &Coordinates) -> Option<(i32, i64)> {
        let moves = self.moves.get(&target.topic_partition())?;
        moves.iter().find_map(|one| {
            let rank = one.target_offsets.rank_of(target.offset)?;
            Some((one.letter_partition, one.letters.nth(rank)?))
        })
    }
}

/// A message of ours that is a dead letter again.
#[derive(Clone, Debug)]
pub struct Returned {
    /// The dead letter it was sent for.
    pub letter: (i32, i64),
    /// The dead letter it is now.
    pub now: DeadLetter,
}

/// Follows the dead-letter topic from where it ended before the first send.
pub struct Tail {
    topic: String,
    id: TopicId,
    group: String,
    positions: BTreeMap<i32, i64>,
}

impl Tail {
    /// Starts at the present end of the topic.
    pub async fn start(admin: &Admin, topic: &str, group: &str) -> Result<Self, WatchError> {
        let mut tail =
            Self { topic: topic.into(), id: TopicId::default(), group: group.into(), positions: BTreeMap::new() };
        let (id, partitions) = tail.look_up(admin).await?;
        tail.id = id;
        let ends = admin.offsets(&partitions, OffsetSpec::Latest, Isolation::ReadUncommitted).await?;
        for partition in &partitions {
            tail.positions.insert(partition.partition, offset(&ends, partition)?);
        }
        Ok(tail)
    }

    /// Starts at known positions: those that an earlier owner of the same replay began at.
    pub fn from(topic: &str, id: TopicId, group: &str, positions: BTreeMap<i32, i64>) -> Self {
        Self { topic: topic.into(), id, group: group.into(), positions }
    }

    pub fn positions(&self) -> &BTreeMap<i32, i64> {
        &self.positions
    }

    /// Reads to the end the topic has now and gives what came back of what was sent. A partition that was added since
    /// is read from its beginning.
    pub async fn read(
        &mut self,
        admin: &Admin,
        settings: &Settings,
        sent: &SentIndex,
    ) -> Result<Vec<Returned>, WatchError> {
        let (id, partitions) = self.look_up(admin).await?;
        if id != self.id {
            return Err(WatchError::LoseTopic { topic: self.topic.clone() });
        }
        let spans = self.unread(admin, &partitions).await?;
        if spans.is_empty() {
            return Ok(Vec::new());
        }
        let mut returned = Vec::new();
        let mut reader =
            Reader::open(settings, &self.topic, spans.clone(), Isolation::ReadUncommitted, Order::ByPartition)?;
        while let Some(batch) = reader.next_batch().await {
            // A record that is no dead letter is nobody's return.
            let letters = batch?.into_iter().filter_map(|record| dead_letter::read(&record).ok());
            returned.extend(letters.filter_map(|letter| self.match_letter(letter, sent)));
        }
        self.positions.extend(spans.iter().map(|span| (span.partition, span.until)));
        Ok(returned)
    }

    fn match_letter(&self, letter: DeadLetter, sent: &SentIndex) -> Option<Returned> {
        if letter.group != self.group {
            return None;
        }
        Some(Returned { letter: sent.letter_sent_to(&letter.source)?, now: letter })
    }

    async fn look_up(&self, admin: &Admin) -> Result<(TopicId, BTreeSet<TopicPartition>), WatchError> {
        let found = admin.topics(&BTreeSet::from([self.topic.clone()])).await?.remove(&self.topic);
        let Some(TopicLookup::Found(topic)) = found else {
            return Err(WatchError::LoseTopic { topic: self.topic.clone() });
        };
        Ok((topic.id, topic.partitions.iter().map(|p| TopicPartition::new(&self.topic, p.id)).collect()))
    }

    async fn unread(&self, admin: &Admin, partitions: &BTreeSet<TopicPartition>) -> Result<Vec<Span>, WatchError> {
        let (starts, ends) = tokio::try_join!(
            admin.offsets(partitions, OffsetSpec::Earliest, Isolation::ReadUncommitted),
            admin.offsets(partitions, OffsetSpec::Latest, Isolation::ReadUncommitted),
        )?;
        let mut spans = Vec::new();
        for partition in partitions {
            let (log_start, until) = (offset(&starts, partition)?, offset(&ends, partition)?);
            let from = self.positions.get(&partition.partition).copied().unwrap_or(log_start);
            if log_start > from {
                return Err(WatchError::MissDeadLetters { partition: partition.clone(), from, log_start });
            }
            if until > from {
                spans.push(Span { partition: partition.partition, from, until });
            }
        }
        Ok(spans)
    }
}
