//! Offsets of partitions' logs, asked of their leaders.

use futures::future::join_all;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{BrokerId, ListOffsetsRequest, ListOffsetsResponse};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Admin, AdminError, Refusal};
use crate::kafka::connection::{ConnectionError, Deadline, Route, Step, in_rounds, topic_name};
use crate::kafka::{Isolation, TopicPartition};

const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const LEADER_NOT_AVAILABLE: i16 = 5;

type Outcome = Result<Position, Refusal>;
type Steps = Vec<(TopicPartition, Step<Outcome>)>;

/// Which offset of a partition is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The log start: the first offset retention and deletion have left.
    Earliest,
    /// Behind the last record: the high watermark, or for read_committed the last stable offset.
    Latest,
    /// The first record at or after this time, in milliseconds since the epoch; -1 where there is none.
    AtTime(i64),
    /// The record with the highest timestamp; -1 where there is none (KIP-734).
    Newest,
}

/// A place in a partition's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub offset: i64,
    /// Of the record there, in milliseconds since the epoch; -1 where no record was looked for or found.
    pub timestamp: i64,
}

impl OffsetSpec {
    /// As ListOffsets has it: times that cannot be stand for the two ends.
    fn timestamp(self) -> i64 {
        match self {
            Self::Earliest => -2,
            Self::Latest => -1,
            Self::AtTime(time) => time.max(0),
            Self::Newest => -3,
        }
    }
}

impl Admin {
    /// One request for each leader. Partitions that are refused, or have no leader by the deadline, carry a refusal.
    pub async fn offsets(
        &self,
        of: &BTreeSet<TopicPartition>,
        spec: OffsetSpec,
        isolation: Isolation,
    ) -> Result<BTreeMap<TopicPartition, Result<i64, Refusal>>, AdminError> {
        let positions = self.positions(of, spec, isolation).await?;
        let offset = |outcome: Outcome| outcome.map(|position| position.offset);
        Ok(positions.into_iter().map(|(partition, outcome)| (partition, offset(outcome))).collect())
    }

    /// The same with the time of the record found.
    pub async fn positions(
        &self,
        of: &BTreeSet<TopicPartition>,
        spec: OffsetSpec,
        isolation: Isolation,
    ) -> Result<BTreeMap<TopicPartition, Outcome>, AdminError> {
        let deadline = self.deadline();
        let round = |open| self.offsets_round(open, spec, isolation, deadline);
        let offsets = in_rounds(of.clone(), deadline, round).await?;
        match of.iter().find(|partition| !offsets.contains_key(partition)) {
            None => Ok(offsets),
            Some(missing) => Err(AdminError::LeftOut { action: "read offsets".into(), what: missing.to_string() }),
        }
    }

    async fn offsets_round(
        &self,
        open: BTreeSet<TopicPartition>,
        spec: OffsetSpec,
        isolation: Isolation,
        deadline: Deadline,
    ) -> Steps {
        let (by_leader, mut steps) = match self.by_leader(&open, deadline).await {
            Ok(found) => found,
            Err(error) => return all_failed(open, &error),
        };
        let asked = by_leader.into_iter().map(|(leader, of)| async move {
            let request = offsets_request(&of, spec, isolation);
            match self.connection.attempt(Route::Broker(leader), &request, deadline).await {
                Ok(answer) => read_offsets(answer),
                Err(error) => all_failed(of, &error),
            }
        });
        steps.extend(join_all(asked).await.into_iter().flatten());
        steps
    }

    /// The partitions by the broker that leads them, and what came of those that have none.
    async fn by_leader(
        &self,
        open: &BTreeSet<TopicPartition>,
        deadline: Deadline,
    ) -> Result<(BTreeMap<i32, Vec<TopicPartition>>, Steps), ConnectionError> {
        let names: BTreeSet<String> = open.iter().map(|partition| partition.topic.clone()).collect();
        let answer = self.metadata_of(&names, deadline).await?;
        let topics: HashMap<&str, _> =
            answer.topics.iter().filter_map(|t| Some((t.name.as_ref()?.as_str(), t))).collect();
        let (mut by_leader, mut steps) = (BTreeMap::<i32, Vec<_>>::new(), Steps::new());
        for partition in open {
            match leader(topics.get(partition.topic.as_str()).copied(), partition.partition) {
                Ok(leader) => by_leader.entry(leader).or_default().push(partition.clone()),
                Err(refusal) => steps.push((partition.clone(), weigh(Err(refusal)))),
            }
        }
        Ok((by_leader, steps))
    }
}

fn leader(topic: Option<&MetadataResponseTopic>, partition: i32) -> Result<i32, Refusal> {
    let unknown = || Refusal::new(UNKNOWN_TOPIC_OR_PARTITION, None);
    let topic = topic.ok_or_else(unknown)?;
    match topic.partitions.iter().find(|found| found.partition_index == partition) {
        Some(found) if found.leader_id.0 >= 0 => Ok(found.leader_id.0),
        Some(_) => Err(Refusal::new(LEADER_NOT_AVAILABLE, None)),
        None => Err(Refusal::from_code(topic.error_code, None).unwrap_or_else(unknown)),
    }
}

fn offsets_request(of: &[TopicPartition], spec: OffsetSpec, isolation: Isolation) -> ListOffsetsRequest {
    let mut topics = BTreeMap::<&str, Vec<ListOffsetsPartition>>::new();
    for partition in of {
        let wanted = ListOffsetsPartition::default()
            .with_partition_index(partition.partition)
            .with_current_leader_epoch(-1)
            .with_timestamp(spec.timestamp());
        topics.entry(&partition.topic).or_default().push(wanted);
    }
    let topic =
        |(name, partitions)| ListOffsetsTopic::default().with_name(topic_name(name)).with_partitions(partitions);
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_isolation_level(i8::from(isolation == Isolation::ReadCommitted))
        .with_topics(topics.into_iter().map(topic).collect())
}

fn read_offsets(answer: ListOffsetsResponse) -> Steps {
    let mut steps = Steps::new();
    for topic in &answer.topics {
        let named =
            |read: &ListOffsetsPartitionResponse| TopicPartition::new(topic.name.as_str(), read.partition_index);
        steps.extend(topic.partitions.iter().map(|read| (named(read), weigh(read_offset(read)))));
    }
    steps
}

fn read_offset(read: &ListOffsetsPartitionResponse) -> Outcome {
    Refusal::from_code(read.error_code, None)
        .map_or(Ok(Position { offset: read.offset, timestamp: read.timestamp }), Err)
}

fn weigh(outcome: Outcome) -> Step<Outcome> {
    match outcome {
        Err(refusal) if refusal.is_passing() => Step::Again(Err(refusal)),
        outcome => Step::Done(outcome),
    }
}

fn all_failed(of: impl IntoIterator<Item = TopicPartition>, error: &ConnectionError) -> Steps {
    of.into_iter().map(|partition| (partition, Step::Failed(error.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::metadata_response::MetadataResponsePartition;

    #[test]
    fn partitions_of_a_topic_go_in_one_request() {
        let of = [TopicPartition::new("a", 0), TopicPartition::new("b", 1), TopicPartition::new("a", 2)];
        let request = offsets_request(&of, OffsetSpec::Earliest, Isolation::ReadCommitted);
        assert_eq!(request.isolation_level, 1);
        let sizes: Vec<_> = request.topics.iter().map(|t| (t.name.to_string(), t.partitions.len())).collect();
        assert_eq!(sizes, [("a".into(), 2), ("b".into(), 1)]);
        assert!(request.topics.iter().flat_map(|t| &t.partitions).all(|p| p.timestamp == -2));
    }

    #[test]
    fn partitions_without_a_leader_say_why() {
        let topic = |code| MetadataResponseTopic::default().with_error_code(code);
        let led = |id: i32| MetadataResponsePartition::default().with_leader_id(BrokerId(id));
        let code = |topic: MetadataResponseTopic| leader(Some(&topic), 0).map_err(|refusal| refusal.code);
        assert_eq!(code(topic(29)), Err(29));
        assert_eq!(code(topic(0)), Err(UNKNOWN_TOPIC_OR_PARTITION));
        assert_eq!(code(topic(0).with_partitions(vec![led(-1)])), Err(LEADER_NOT_AVAILABLE));
        assert_eq!(code(topic(0).with_partitions(vec![led(3)])), Ok(3));
        assert!(leader(None, 0).is_err_and(|refusal| refusal.is_unknown()));
    }

    #[test]
    fn an_election_is_waited_for_and_an_unknown_partition_is_not() {
        assert!(matches!(weigh(Err(Refusal::new(6, None))), Step::Again(_)));
        assert!(matches!(weigh(Err(Refusal::new(3, None))), Step::Done(_)));
        let here = Position { offset: 7, timestamp: -1 };
        assert!(matches!(weigh(Ok(here)), Step::Done(Ok(found)) if found == here));
    }
}
