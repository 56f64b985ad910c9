//! What became of messages that an owner had begun to send when it was cut off.
//!
//! Its open transaction was aborted by the fencing. Readers with read_uncommitted may have seen what was appended, so
//! the target's log is scanned for our headers: what is found is `uncertain`, what is not was never sent. Where the
//! log can no longer tell, everything that was begun is uncertain.

use super::moves::{Moves, Sent};
use super::owner::Place;
use crate::kafka::admin::{AdminError, OffsetSpec, Topic, TopicLookup};
use crate::kafka::ledger::{Entry, History, Intent, IntentTarget, Uncertain};
use crate::kafka::offset_set::PartitionSets;
use crate::kafka::reader::{Order, ReadError, Reader};
use crate::kafka::record::Record;
use crate::kafka::{Coordinates, Isolation, Span, TopicId, TopicPartition};
use crate::replay::now;
use crate::replay::outgoing::{ATTEMPT, DEAD_LETTER, REPLAY, REPLAYED_FROM};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    #[error("what the last owner sent can't be found out yet: {0}")]
    AskKafka(#[from] AdminError),
    #[error("what the last owner sent can't be found out yet: {0}")]
    ScanTarget(#[from] ReadError),
    #[error("what the last owner sent can't be found out yet: {partition} has no readable end")]
    FindEnd { partition: TopicPartition },
}

/// Messages of one replay that were begun and have no outcome.
pub struct Open {
    uid: String,
    intent: Intent,
    letters: PartitionSets,
    /// How often the replay was cut off before.
    before: u32,
}

/// Everything in the ledger that was begun and has no outcome, of all replays of the dead-letter topic.
pub fn find_open(history: &History) -> Vec<Open> {
    let open = |(uid, replay): (&String, &crate::kafka::ledger::ReplayHistory)| {
        let letters = replay.open_letters();
        let intent = replay.intent.clone().filter(|_| letters.values().any(|set| !set.is_empty()))?;
        let before = replay.uncertain.len() as u32;
        Some(Open { uid: uid.clone(), intent, letters, before })
    };
    history.replays.iter().filter(|(_, replay)| replay.end.is_none()).filter_map(open).collect()
}

/// The entries that close what is open. To be called after the fencing: only then is the end of the log the end of what
/// the old owner can have written.
pub async fn resolve(place: &Place, open: Vec<Open>) -> Result<Vec<Entry>, RecoverError> {
    let mut entries = Vec::new();
    for one in open {
        if let Some(uncertain) = resolve_one(place, one).await? {
            entries.push(Entry::Uncertain(uncertain));
        }
    }
    Ok(entries)
}

async fn resolve_one(place: &Place, open: Open) -> Result<Option<Uncertain>, RecoverError> {
    let names: BTreeSet<String> = open.intent.targets.iter().map(|target| target.topic.clone()).collect();
    let topics = place.admin.topics(&names).await?;
    let compacted = find_compacted(place, &names).await?;
    let mut found = Found::new(&open);
    for name in &names {
        let targets = open.intent.targets.iter().filter(|target| &target.topic == name);
        let spans = match topics.get(name) {
            Some(TopicLookup::Found(topic)) if !compacted.contains(name) => spans(place, topic, targets).await?,
            _ => None,
        };
        match spans {
            Some(spans) => scan(place, name, spans, &mut found).await?,
            None => found.log_is_gone = true,
        }
    }
    let ids = source_ids(place, &found).await?;
    Ok(found.into_uncertain(open, &ids))
}

/// A compacted log may have lost the records by now.
async fn find_compacted(place: &Place, names: &BTreeSet<String>) -> Result<BTreeSet<String>, RecoverError> {
    let configs = place.admin.topic_configs(names).await?;
    let compacted = |configs: &crate::kafka::admin::Configs| {
        configs.value("cleanup.policy").is_none_or(|policy| policy.contains("compact"))
    };
    let told = |name: &&String| !matches!(configs.get(*name), Some(Ok(configs)) if !compacted(configs));
    Ok(names.iter().filter(told).cloned().collect())
}

/// The part of a target's log that may hold what was begun; none where it is not all there any more.
async fn spans(
    place: &Place,
    topic: &Topic,
    targets: impl Iterator<Item = &IntentTarget>,
) -> Result<Option<Vec<Span>>, RecoverError> {
    let targets: Vec<_> = targets.collect();
    let partitions = targets.iter().map(|t| TopicPartition::new(&t.topic, t.partition)).collect();
    let starts = place.admin.offsets(&partitions, OffsetSpec::Earliest, Isolation::ReadUncommitted).await?;
    let ends = place.admin.offsets(&partitions, OffsetSpec::Latest, Isolation::ReadUncommitted).await?;
    let mut spans = Vec::new();
    for target in targets {
        let partition = TopicPartition::new(&target.topic, target.partition);
        let (Some(Ok(start)), Some(Ok(end))) = (starts.get(&partition), ends.get(&partition)) else {
            return Err(RecoverError::FindEnd { partition });
        };
        if target.id != topic.id || *start > target.end_offset {
            return Ok(None);
        }
        spans.push(Span { partition: target.partition, from: target.end_offset, until: *end });
    }
    Ok(Some(spans))
}

async fn scan(place: &Place, topic: &str, spans: Vec<Span>, found: &mut Found) -> Result<(), RecoverError> {
    let mut reader = Reader::open(&place.settings, topic, spans, Isolation::ReadUncommitted, Order::ByPartition)?;
    while let Some(batch) = reader.next_batch().await {
        for record in batch? {
            found.look_at(topic, &record);
        }
    }
    Ok(())
}

async fn source_ids(place: &Place, found: &Found) -> Result<BTreeMap<String, TopicId>, RecoverError> {
    let names: BTreeSet<String> = found.traces.iter().map(|trace| trace.source.topic.clone()).collect();
    let topics = place.admin.topics(&names).await?;
    let id = |(name, lookup)| match lookup {
        TopicLookup::Found(topic) => Some((name, topic.id)),
        _ => None,
    };
    Ok(topics.into_iter().filter_map(id).collect())
}

/// A record of ours on a target.
struct Trace {
    letter: Coordinates,
    source: Coordinates,
    attempt: u32,
    at: Coordinates,
}

struct Found {
    uid_suffix: String,
    wanted: PartitionSets,
    traces: Vec<Trace>,
    log_is_gone: bool,
}

impl Found {
    fn new(open: &Open) -> Self {
        let uid_suffix = format!("/{}", open.uid);
        Self { uid_suffix, wanted: open.letters.clone(), traces: Vec::new(), log_is_gone: false }
    }

    /// Only an outcome that is missing is of interest: slices of the step that were committed are in the ledger.
    fn look_at(&mut self, topic: &str, record: &Record) {
        let text = |key| record.header(key).and_then(|value| std::str::from_utf8(value).ok());
        let ours = text(REPLAY).is_some_and(|replay| replay.ends_with(&self.uid_suffix));
        let letter = text(DEAD_LETTER).and_then(Coordinates::parse);
        let source = text(REPLAYED_FROM).and_then(Coordinates::parse);
        let (true, Some(letter), Some(source)) = (ours, letter, source) else { return };
        if !self.wanted.get(&letter.partition).is_some_and(|set| set.contains(letter.offset)) {
            return;
        }
        let attempt = text(ATTEMPT).and_then(|attempt| attempt.parse().ok()).unwrap_or(1);
        self.traces.push(Trace {
            letter,
            source,
            attempt,
            at: Coordinates::new(topic, record.partition, record.offset),
        });
    }

    fn into_uncertain(self, open: Open, source_ids: &BTreeMap<String, TopicId>) -> Option<Uncertain> {
        let mut ids = source_ids.clone();
        ids.extend(open.intent.targets.iter().map(|target| (target.topic.clone(), target.id)));
        let (mut moves, mut located) = (Moves::new(&ids), PartitionSets::new());
        for trace in &self.traces {
            located.entry(trace.letter.partition).or_default().insert(trace.letter.offset);
            moves.add(Sent {
                letter_partition: trace.letter.partition,
                letter_offset: trace.letter.offset,
                source: &trace.source,
                target: trace.at.clone(),
                attempt: trace.attempt,
            });
        }
        let moves = moves.finish();
        let unlocated = if self.log_is_gone { without(open.letters, &located) } else { PartitionSets::new() };
        if moves.is_empty() && unlocated.is_empty() {
            return None;
        }
        let (uid, step) = (open.uid, open.intent.step);
        Some(Uncertain { uid, step, number: open.before, moves, unlocated, at: now() })
    }
}

fn without(mut letters: PartitionSets, located: &PartitionSets) -> PartitionSets {
    for (partition, set) in located {
        if let Some(open) = letters.get_mut(partition) {
            open.subtract(set);
        }
    }
    letters.retain(|_, set| !set.is_empty());
    letters
}
