//! How many members a group has and which topics they read, for each kind of group that brokers describe.

use bytes::Bytes;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup as Classic, DescribedGroupMember};
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DescribeGroupsRequest, DescribeGroupsResponse,
};
use std::collections::{BTreeMap, BTreeSet};

use super::unless_unknown;
use crate::kafka::admin::{Admin, AdminError, Refusal};
use crate::kafka::connection::{Deadline, FieldError, Fields, Guarded, group_id};

/// The protocol type of classic groups whose members are consumers; others, such as Connect's, assign other things.
const CONSUMER_PROTOCOL: &str = "consumer";

/// What is known of a group's members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    pub count: usize,
    /// Subscribed to or assigned.
    pub topics: BTreeSet<String>,
}

type ByGroup = BTreeMap<String, Members>;

impl Admin {
    pub(super) async fn share_members(
        &self,
        groups: &BTreeSet<String>,
        deadline: Deadline,
    ) -> Result<ByGroup, AdminError> {
        present(self.describe_share_groups(groups, deadline).await?, |group| {
            let subscribed = group.members.iter().flat_map(|member| member.subscribed_topic_names.iter());
            let assigned = group.members.iter().flat_map(|member| &member.assignment.topic_partitions);
            let topics = subscribed.chain(assigned.map(|topic| &topic.topic_name));
            Members { count: group.members.len(), topics: topics.map(|name| name.to_string()).collect() }
        })
    }

    pub(super) async fn consumer_members(
        &self,
        groups: &BTreeSet<String>,
        deadline: Deadline,
    ) -> Result<ByGroup, AdminError> {
        let request = |ids: &[String]| {
            ConsumerGroupDescribeRequest::default().with_group_ids(ids.iter().map(|id| group_id(id)).collect())
        };
        let split = |answer: ConsumerGroupDescribeResponse| {
            let by_group = answer.groups.into_iter().map(|group| {
                let refusal = Refusal::from_code(group.error_code, group.error_message.as_deref());
                (group.group_id.to_string(), refusal.map_or(Ok(group), Err))
            });
            by_group.collect()
        };
        present(self.ask_groups(groups, deadline, request, split).await?, |group| {
            let subscribed = group.members.iter().flat_map(|member| member.subscribed_topic_names.iter());
            let assigned = group.members.iter().flat_map(|member| &member.assignment.topic_partitions);
            let topics = subscribed.chain(assigned.map(|topic| &topic.topic_name));
            Members { count: group.members.len(), topics: topics.map(|name| name.to_string()).collect() }
        })
    }

    pub(super) async fn classic_members(
        &self,
        groups: &BTreeSet<String>,
        deadline: Deadline,
    ) -> Result<ByGroup, AdminError> {
        let request =
            |ids: &[String]| DescribeGroupsRequest::default().with_groups(ids.iter().map(|id| group_id(id)).collect());
        let split = |answer: DescribeGroupsResponse| {
            let by_group = answer.groups.into_iter().map(|group| {
                let refusal = Refusal::from_code(group.error_code, group.error_message.as_deref());
                (group.group_id.to_string(), refusal.map_or(Ok(group), Err))
            });
            by_group.collect()
        };
        present(self.ask_groups(groups, deadline, request, split).await?, read_classic)
    }
}

/// Groups that have gone meanwhile are left out.
fn present<G>(
    described: BTreeMap<String, Result<G, Refusal>>,
    read: impl Fn(G) -> Members,
) -> Result<ByGroup, AdminError> {
    let mut members = ByGroup::new();
    for (id, group) in described {
        if let Some(group) = unless_unknown(&id, group)? {
            members.insert(id, read(group));
        }
    }
    Ok(members)
}

fn read_classic(group: Classic) -> Members {
    let mut members = Members { count: group.members.len(), topics: BTreeSet::new() };
    if group.protocol_type.as_str() == CONSUMER_PROTOCOL {
        members.topics.extend(group.members.iter().flat_map(topics_of_member));
    }
    members
}

/// What a classic member says of itself is made by its client: what cannot be read there names no topic.
fn topics_of_member(member: &DescribedGroupMember) -> Vec<String> {
    let read = |what, bytes: &Bytes, read: fn(&mut Fields) -> Result<Vec<String>, FieldError>| {
        if bytes.is_empty() {
            return Vec::new();
        }
        read(&mut Fields(&mut Guarded::new(bytes.clone()))).unwrap_or_else(|error| {
            tracing::debug!(member = %member.member_id, %error, "cannot read the {what} of a group member");
            Vec::new()
        })
    };
    let mut topics = read("subscription", &member.member_metadata, read_subscription);
    topics.extend(read("assignment", &member.member_assignment, read_assignment));
    topics
}

/// ConsumerProtocolSubscription: version, topics, and more that does not matter here.
fn read_subscription(fields: &mut Fields) -> Result<Vec<String>, FieldError> {
    let _version = fields.i16()?;
    fields.old_array(Fields::old_text)
}

/// ConsumerProtocolAssignment: version, partitions by topic, and more.
fn read_assignment(fields: &mut Fields) -> Result<Vec<String>, FieldError> {
    let _version = fields.i16()?;
    fields.old_array(|fields| {
        let topic = fields.old_text()?;
        let _partitions = fields.old_array(Fields::i32)?;
        Ok(topic)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::protocol::StrBytes;

    const SUBSCRIPTION: &[u8] = b"\0\x01\0\0\0\x02\0\x01a\0\x01b\xff\xff\xff\xff\0\0\0\0";
    const ASSIGNMENT: &[u8] = b"\0\x01\0\0\0\x01\0\x01c\0\0\0\x02\0\0\0\0\0\0\0\x01\xff\xff\xff\xff";

    fn classic(protocol: &'static str, metadata: &'static [u8], assignment: &'static [u8]) -> Members {
        let member = DescribedGroupMember::default()
            .with_member_metadata(Bytes::from_static(metadata))
            .with_member_assignment(Bytes::from_static(assignment));
        let group =
            Classic::default().with_protocol_type(StrBytes::from_static_str(protocol)).with_members(vec![member]);
        read_classic(group)
    }

    #[test]
    fn classic_consumers_read_what_they_subscribed_to_and_were_assigned() {
        let members = classic("consumer", SUBSCRIPTION, ASSIGNMENT);
        assert_eq!(members, Members { count: 1, topics: ["a", "b", "c"].map(String::from).into() });
    }

    #[test]
    fn other_protocols_and_garbage_name_no_topic() {
        assert!(classic("connect", SUBSCRIPTION, ASSIGNMENT).topics.is_empty());
        assert!(classic("consumer", b"", b"\0\x01\x7f\xff\xff\xff").topics.is_empty());
        assert_eq!(classic("consumer", b"\xff", ASSIGNMENT).topics.len(), 1);
    }
}
