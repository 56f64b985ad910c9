//! The offsets consumer groups have committed.

use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse};
use std::collections::{BTreeMap, BTreeSet};

use crate::kafka::TopicPartition;
use crate::kafka::admin::{Admin, AdminError, Refusal};
use crate::kafka::connection::{Deadline, group_id};

/// Stands for a group that is not asked by one of its members.
const NO_EPOCH: i32 = -1;

pub(super) type Committed = BTreeMap<TopicPartition, i64>;

impl Admin {
    /// Of a consumer, classic or streams group. A group that does not exist has none.
    pub async fn consumer_group_offsets(&self, group: &str) -> Result<BTreeMap<TopicPartition, i64>, AdminError> {
        let mut committed = self.committed_within(&BTreeSet::from([group.into()]), self.deadline()).await?;
        Ok(committed.remove(group).unwrap_or_default())
    }

    /// Groups that do not exist are left out.
    pub(super) async fn committed_within(
        &self,
        groups: &BTreeSet<String>,
        deadline: Deadline,
    ) -> Result<BTreeMap<String, Committed>, AdminError> {
        let split = |answer: OffsetFetchResponse| answer.groups.into_iter().map(read_group).collect();
        let answers = self.ask_groups(groups, deadline, request, split).await?;
        let known = answers.into_iter().filter(|(_, answer)| !answer.as_ref().is_err_and(Refusal::is_unknown));
        let told = known.map(|(group, answer)| match answer {
            Ok(committed) => Ok((group, committed)),
            Err(refusal) => Err(AdminError::refused(format!("read the offsets of group {group}"), refusal)),
        });
        told.collect()
    }
}

fn request(groups: &[String]) -> OffsetFetchRequest {
    let group = |id: &String| {
        let all = OffsetFetchRequestGroup::default().with_topics(None);
        all.with_group_id(group_id(id)).with_member_id(None).with_member_epoch(NO_EPOCH)
    };
    OffsetFetchRequest::default().with_groups(groups.iter().map(group).collect())
}

fn read_group(group: OffsetFetchResponseGroup) -> (String, Result<Committed, Refusal>) {
    let id = group.group_id.to_string();
    if let Some(refusal) = Refusal::from_code(group.error_code, None) {
        return (id, Err(refusal));
    }
    let mut committed = Committed::new();
    for topic in &group.topics {
        for partition in topic.partitions.iter().filter(|partition| partition.error_code == 0) {
            if partition.committed_offset >= 0 {
                let at = TopicPartition::new(topic.name.as_str(), partition.partition_index);
                committed.insert(at, partition.committed_offset);
            }
        }
    }
    (id, Ok(committed))
}
