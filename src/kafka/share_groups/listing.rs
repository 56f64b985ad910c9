//! All groups of the cluster, of whichever kind.

use futures::future::try_join_all;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{ListGroupsRequest, ListGroupsResponse};
use std::collections::BTreeMap;

use crate::kafka::admin::{Admin, AdminError, Refusal};
use crate::kafka::connection::{Deadline, Route, settled};

/// What kind a group is of (KIP-848, KIP-932, KIP-1071).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKind {
    Share,
    Consumer,
    Classic,
    Streams,
    Other,
}

/// A group as the cluster's list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    pub kind: GroupKind,
    pub state: String,
}

impl GroupKind {
    fn named(name: &str) -> Self {
        let kinds = [
            ("share", Self::Share),
            ("consumer", Self::Consumer),
            ("classic", Self::Classic),
            ("streams", Self::Streams),
        ];
        let found = kinds.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or(Self::Other, |(_, kind)| kind)
    }
}

impl Admin {
    /// All groups the principal may describe, in the order of their names. Every live broker is asked, as each lists only
    /// the groups it coordinates.
    pub async fn groups(&self) -> Result<Vec<Listed>, AdminError> {
        self.groups_within(self.deadline()).await
    }

    pub(super) async fn groups_within(&self, deadline: Deadline) -> Result<Vec<Listed>, AdminError> {
        let metadata = self.brokers(deadline).await?;
        let asked = metadata.brokers.iter().map(|broker| self.groups_of_broker(broker.node_id.0, deadline));
        let listed = try_join_all(asked).await?.into_iter().flatten();
        // A group that moves between two answers is in both.
        let once: BTreeMap<String, Listed> = listed.map(|group| (group.id.clone(), group)).collect();
        Ok(once.into_values().collect())
    }

    async fn groups_of_broker(&self, broker: i32, deadline: Deadline) -> Result<Vec<Listed>, AdminError> {
        let is_final = |answer: &ListGroupsResponse| settled(answer.error_code);
        let request = ListGroupsRequest::default();
        let answer = self.connection.ask_until(Route::Broker(broker), &request, deadline, is_final).await?;
        match Refusal::from_code(answer.error_code, None) {
            None => Ok(answer.groups.iter().map(read_listed).collect()),
            Some(refusal) => Err(AdminError::refused(format!("list the groups of broker {broker}"), refusal)),
        }
    }
}

fn read_listed(group: &ListedGroup) -> Listed {
    Listed {
        id: group.group_id.to_string(),
        kind: GroupKind::named(&group.group_type),
        state: group.group_state.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_in_any_case() {
        assert_eq!(GroupKind::named("Share"), GroupKind::Share);
        assert_eq!(GroupKind::named("classic"), GroupKind::Classic);
        assert_eq!(GroupKind::named(""), GroupKind::Other);
    }
}
