//! How far share groups are, with lag: DescribeShareGroupOffsets, whose version 1 kafka-protocol does not have yet.

use bytes::BytesMut;
use kafka_protocol::messages::describe_share_group_offsets_request::{
    DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsRequestTopic,
};
use kafka_protocol::messages::{ApiKey, DescribeShareGroupOffsetsRequest};
use kafka_protocol::protocol::Encodable;
use std::collections::{BTreeMap, BTreeSet};

use crate::kafka::TopicPartition;
use crate::kafka::admin::{Admin, AdminError, Refusal};
use crate::kafka::connection::{Call, Deadline, FieldError, Fields, Guarded, group_id, topic_name};

/// The version that brings the lag (KIP-1226).
const WITH_LAG: i16 = 1;

/// How far a share group is with a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareOffset {
    /// One state write behind, and for good on an idle partition. None where the group has not begun with it.
    pub start: Option<i64>,
    /// Records neither settled nor archived yet. None where the broker does not know.
    pub lag: Option<i64>,
}

pub type ShareOffsets = BTreeMap<TopicPartition, ShareOffset>;

/// For each group the partitions asked about; None for all it has an offset for.
pub type OffsetsWanted = BTreeMap<String, Option<BTreeSet<TopicPartition>>>;

impl Admin {
    /// None: all partitions the group has an offset for. Topics the principal may not describe are then left out without a
    /// word from the broker; named in `of`, they are an error. A group that does not exist has no offsets.
    pub async fn share_group_offsets(
        &self,
        group: &str,
        of: Option<&BTreeSet<TopicPartition>>,
    ) -> Result<ShareOffsets, AdminError> {
        let mut offsets = self.share_group_offsets_of(&BTreeMap::from([(group.into(), of.cloned())])).await?;
        let action = || format!("read the offsets of share group {group}");
        match offsets.remove(group) {
            Some(offsets) => offsets.map_err(|refusal| AdminError::refused(action(), refusal)),
            None => Err(AdminError::LeftOut { action: action(), what: "the group".into() }),
        }
    }

    /// Of many groups at once; see [`Self::share_group_offsets`].
    pub async fn share_group_offsets_of(
        &self,
        wanted: &OffsetsWanted,
    ) -> Result<BTreeMap<String, Result<ShareOffsets, Refusal>>, AdminError> {
        self.share_offsets_within(wanted, self.deadline()).await
    }

    pub(super) async fn share_offsets_within(
        &self,
        wanted: &OffsetsWanted,
        deadline: Deadline,
    ) -> Result<BTreeMap<String, Result<ShareOffsets, Refusal>>, AdminError> {
        let request = |groups: &[String]| DescribeOffsets::of(groups, wanted);
        let split = |answer: Vec<GroupOffsets>| answer.into_iter().map(GroupOffsets::read).collect();
        self.ask_groups(&wanted.keys().cloned().collect(), deadline, request, split).await
    }
}

/// The request, the same in both versions.
#[derive(Debug)]
struct DescribeOffsets(DescribeShareGroupOffsetsRequest);

#[derive(Debug, PartialEq, Eq)]
struct GroupOffsets {
    group: String,
    partitions: Vec<PartitionOffset>,
    refusal: Option<Refusal>,
}

#[derive(Debug, PartialEq, Eq)]
struct PartitionOffset {
    partition: TopicPartition,
    offset: ShareOffset,
    refusal: Option<Refusal>,
}

impl DescribeOffsets {
    fn of(groups: &[String], wanted: &OffsetsWanted) -> Self {
        let group = |id: &String| {
            let topics = wanted.get(id).and_then(|partitions| partitions.as_ref()).map(topics);
            DescribeShareGroupOffsetsRequestGroup::default().with_group_id(group_id(id)).with_topics(topics)
        };
        Self(DescribeShareGroupOffsetsRequest::default().with_groups(groups.iter().map(group).collect()))
    }
}

fn topics(partitions: &BTreeSet<TopicPartition>) -> Vec<DescribeShareGroupOffsetsRequestTopic> {
    let mut by_topic = BTreeMap::<&str, Vec<i32>>::new();
    for partition in partitions {
        by_topic.entry(&partition.topic).or_default().push(partition.partition);
    }
    let topic = |(name, partitions)| {
        DescribeShareGroupOffsetsRequestTopic::default().with_topic_name(topic_name(name)).with_partitions(partitions)
    };
    by_topic.into_iter().map(topic).collect()
}

impl Call for DescribeOffsets {
    type Answer = Vec<GroupOffsets>;
    const API: ApiKey = ApiKey::DescribeShareGroupOffsets;
    const VERSIONS: (i16, i16) = (0, WITH_LAG);

    fn write(&self, out: &mut BytesMut, _version: i16) -> Result<(), String> {
        self.0.encode(out, 0).map_err(|error| error.to_string())
    }

    fn read(answer: &mut Guarded, version: i16) -> Result<Self::Answer, String> {
        read_answer(&mut Fields(answer), version).map_err(|error| error.to_string())
    }
}

fn read_answer(fields: &mut Fields, version: i16) -> Result<Vec<GroupOffsets>, FieldError> {
    let _throttled = fields.i32()?;
    let groups = fields.compact_array(|fields| read_group(fields, version))?;
    fields.tags()?;
    Ok(groups)
}

fn read_group(fields: &mut Fields, version: i16) -> Result<GroupOffsets, FieldError> {
    let group = fields.compact_text()?;
    let topics = fields.compact_array(|fields| read_topic(fields, version))?;
    let refusal = read_refusal(fields)?;
    fields.tags()?;
    Ok(GroupOffsets { group, partitions: topics.into_iter().flatten().collect(), refusal })
}

fn read_topic(fields: &mut Fields, version: i16) -> Result<Vec<PartitionOffset>, FieldError> {
    let topic = fields.compact_text()?;
    let _id = fields.uuid()?;
    let partitions = fields.compact_array(|fields| read_partition(fields, &topic, version))?;
    fields.tags()?;
    Ok(partitions)
}

fn read_partition(fields: &mut Fields, topic: &str, version: i16) -> Result<PartitionOffset, FieldError> {
    let partition = TopicPartition::new(topic, fields.i32()?);
    let start = fields.i64()?;
    let _leader_epoch = fields.i32()?;
    let lag = if version >= WITH_LAG { fields.i64()? } else { -1 };
    let refusal = read_refusal(fields)?;
    fields.tags()?;
    let known = |number: i64| Some(number).filter(|number| *number >= 0);
    Ok(PartitionOffset { partition, offset: ShareOffset { start: known(start), lag: known(lag) }, refusal })
}

fn read_refusal(fields: &mut Fields) -> Result<Option<Refusal>, FieldError> {
    let code = fields.i16()?;
    let message = fields.compact_nullable_text()?;
    Ok(Refusal::from_code(code, message.as_deref()))
}

impl GroupOffsets {
    /// One refused partition refuses the group, unless the partition does not exist.
    fn read(self) -> (String, Result<ShareOffsets, Refusal>) {
        let offsets = match self.refusal {
            Some(refusal) if refusal.is_unknown() => Ok(ShareOffsets::new()),
            Some(refusal) => Err(refusal),
            None => self.partitions.into_iter().filter_map(PartitionOffset::read).collect(),
        };
        (self.group, offsets)
    }
}

impl PartitionOffset {
    fn read(self) -> Option<Result<(TopicPartition, ShareOffset), Refusal>> {
        match self.refusal {
            None => Some(Ok((self.partition, self.offset))),
            Some(refusal) if refusal.is_unknown() => None,
            Some(refusal) => Some(Err(refusal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{BufMut, Bytes};
    use proptest::prelude::*;

    /// One partition of an answer, as Kafka 4.4's schema has it.
    fn partition(out: &mut BytesMut, version: i16, index: i32, start: i64, lag: i64, code: i16) {
        out.put_i32(index);
        out.put_i64(start);
        out.put_i32(0);
        if version >= WITH_LAG {
            out.put_i64(lag);
        }
        out.put_i16(code);
        out.put_slice(b"\0\0");
    }

    fn answer(version: i16, code: i16, partitions: &[(i32, i64, i64, i16)]) -> Vec<GroupOffsets> {
        let mut out = BytesMut::new();
        out.put_slice(b"\0\0\0\0\x02\x02g\x02\x02t");
        out.put_u128(7);
        out.put_u8(u8::try_from(partitions.len() + 1).unwrap());
        for &(index, start, lag, code) in partitions {
            partition(&mut out, version, index, start, lag, code);
        }
        out.put_u8(0);
        out.put_i16(code);
        out.put_slice(b"\x03no\0\0");
        let mut guarded = Guarded::new(out.freeze());
        let read = DescribeOffsets::read(&mut guarded, version).unwrap();
        assert_eq!(bytes::Buf::remaining(&guarded), 0);
        read
    }

    fn only(groups: Vec<GroupOffsets>) -> Result<ShareOffsets, Refusal> {
        groups.into_iter().next().unwrap().read().1
    }

    fn offset(start: Option<i64>, lag: Option<i64>) -> ShareOffset {
        ShareOffset { start, lag }
    }

    #[test]
    fn version_1_brings_the_lag() {
        let offsets = only(answer(1, 0, &[(0, 5, 0, 0), (1, -1, -1, 0), (2, 9, 4, 0)])).unwrap();
        let at = |partition| offsets[&TopicPartition::new("t", partition)];
        assert_eq!(at(0), offset(Some(5), Some(0)));
        assert_eq!(at(1), offset(None, None));
        assert_eq!(at(2), offset(Some(9), Some(4)));
    }

    #[test]
    fn version_0_has_no_lag() {
        let offsets = only(answer(0, 0, &[(0, 5, 4711, 0)])).unwrap();
        assert_eq!(offsets[&TopicPartition::new("t", 0)], offset(Some(5), None));
    }

    #[test]
    fn what_does_not_exist_is_left_out_and_what_is_forbidden_is_told() {
        assert!(only(answer(1, 69, &[])).unwrap().is_empty());
        assert_eq!(only(answer(1, 0, &[(0, 5, 0, 0), (1, -1, -1, 3)])).unwrap().len(), 1);
        assert!(only(answer(1, 0, &[(0, 5, 0, 0), (1, -1, -1, 29)])).is_err_and(|refusal| refusal.is_not_authorized()));
        assert!(only(answer(1, 30, &[])).is_err_and(|refusal| refusal.message == "no"));
    }

    #[test]
    fn a_request_names_partitions_by_topic_or_asks_for_all() {
        let some =
            BTreeSet::from([TopicPartition::new("t", 1), TopicPartition::new("t", 0), TopicPartition::new("u", 0)]);
        let wanted = BTreeMap::from([("all".into(), None), ("some".into(), Some(some))]);
        let DescribeOffsets(request) = DescribeOffsets::of(&["all".into(), "some".into()], &wanted);
        assert_eq!(request.groups[0].topics, None);
        let topics = request.groups[1].topics.as_ref().unwrap();
        assert_eq!(topics.iter().map(|t| t.partitions.clone()).collect::<Vec<_>>(), [vec![0, 1], vec![0]]);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for version in 0..=1 {
                let _unread = DescribeOffsets::read(&mut Guarded::new(Bytes::copy_from_slice(&bytes)), version);
            }
        }
    }
}
