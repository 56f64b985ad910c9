//! Groups: share groups with their members, offsets and lag (KIP-932, KIP-1226), and who else reads a topic.

mod committed;
mod listing;
mod members;
mod offsets;
mod readers;

pub use listing::{GroupKind, Listed};
pub use offsets::{OffsetsWanted, ShareOffset, ShareOffsets};
pub use readers::Reader;

use kafka_protocol::messages::share_group_describe_response as described;
use kafka_protocol::messages::{ShareGroupDescribeRequest, ShareGroupDescribeResponse};
use std::collections::{BTreeMap, BTreeSet};

use super::TopicPartition;
use super::admin::{Admin, AdminError, Refusal};
use super::connection::{Call, Deadline, group_id};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGroup {
    /// `Stable`, `Empty` or `Dead`.
    pub state: String,
    /// Rises with every member that comes or goes.
    pub epoch: i32,
    pub assignment_epoch: i32,
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: String,
    pub client_id: String,
    pub host: String,
    pub partitions: Vec<TopicPartition>,
}

impl Admin {
    /// None: there is no share group of that name, though there may be a group of another kind.
    pub async fn share_groups(
        &self,
        ids: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Option<ShareGroup>>, AdminError> {
        let described = self.describe_share_groups(ids, self.deadline()).await?;
        described.into_iter().map(|(id, group)| Ok((id.clone(), unless_unknown(&id, group)?.map(read_group)))).collect()
    }

    async fn describe_share_groups(
        &self,
        ids: &BTreeSet<String>,
        deadline: Deadline,
    ) -> Result<BTreeMap<String, Result<described::DescribedGroup, Refusal>>, AdminError> {
        let request = |ids: &[String]| {
            ShareGroupDescribeRequest::default().with_group_ids(ids.iter().map(|id| group_id(id)).collect())
        };
        let split = |answer: ShareGroupDescribeResponse| {
            let by_group = answer.groups.into_iter().map(|group| {
                let refusal = Refusal::from_code(group.error_code, group.error_message.as_deref());
                (group.group_id.to_string(), refusal.map_or(Ok(group), Err))
            });
            by_group.collect()
        };
        self.ask_groups(ids, deadline, request, split).await
    }

    /// As the connection's call, and every group is in the answer.
    async fn ask_groups<C: Call, A>(
        &self,
        ids: &BTreeSet<String>,
        deadline: Deadline,
        request: impl Fn(&[String]) -> C,
        split: impl Fn(C::Answer) -> Vec<(String, Result<A, Refusal>)>,
    ) -> Result<BTreeMap<String, Result<A, Refusal>>, AdminError> {
        let answers = self.connection.ask_coordinators(ids, deadline, request, split).await?;
        match ids.iter().find(|id| !answers.contains_key(*id)) {
            None => Ok(answers),
            Some(missing) => Err(AdminError::LeftOut { action: C::name(), what: format!("group {missing}") }),
        }
    }
}

/// None for a group that does not exist.
fn unless_unknown<A>(group: &str, answer: Result<A, Refusal>) -> Result<Option<A>, AdminError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(refusal) if refusal.is_unknown() => Ok(None),
        Err(refusal) => Err(AdminError::refused(format!("describe group {group}"), refusal)),
    }
}

fn read_group(group: described::DescribedGroup) -> ShareGroup {
    ShareGroup {
        state: group.group_state.to_string(),
        epoch: group.group_epoch,
        assignment_epoch: group.assignment_epoch,
        members: group.members.iter().map(read_member).collect(),
    }
}

fn read_member(member: &described::Member) -> Member {
    let assigned = member.assignment.topic_partitions.iter();
    let partitions =
        assigned.flat_map(|topic| topic.partitions.iter().map(|p| TopicPartition::new(topic.topic_name.as_str(), *p)));
    Member {
        id: member.member_id.to_string(),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
        partitions: partitions.collect(),
    }
}
