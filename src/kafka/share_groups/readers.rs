//! Who else reads a topic: what a record sent there reaches besides the group it is meant for.

use std::collections::{BTreeMap, BTreeSet};

use super::members::Members;
use super::{GroupKind, Listed};
use crate::kafka::TopicPartition;
use crate::kafka::admin::{Admin, AdminError};
use crate::kafka::connection::Deadline;

/// A group that reads some of the topics asked about, or did and kept its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    pub group: String,
    pub kind: GroupKind,
    /// Members of the whole group, whichever of its topics they read.
    pub members: usize,
    /// Those of the topics asked about that it reads.
    pub topics: BTreeSet<String>,
}

/// Topics by group.
type Places = BTreeMap<String, BTreeSet<String>>;

impl Admin {
    /// The groups of any kind that have offsets in one of the topics, or members that read it; also groups that are empty
    /// now. Groups the principal may not describe are not seen; of streams groups the offsets are seen, not the members.
    pub async fn readers(&self, topics: &BTreeSet<String>) -> Result<Vec<Reader>, AdminError> {
        let deadline = self.deadline();
        let listed = self.groups_within(deadline).await?;
        let of = |kinds: &[GroupKind]| names(&listed, kinds);
        let (share, consumer, classic) =
            (of(&[GroupKind::Share]), of(&[GroupKind::Consumer]), of(&[GroupKind::Classic]));
        let committing = of(&[GroupKind::Consumer, GroupKind::Classic, GroupKind::Streams]);
        let (share_members, consumer_members, classic_members, share_places, committed_places) = futures::try_join!(
            self.share_members(&share, deadline),
            self.consumer_members(&consumer, deadline),
            self.classic_members(&classic, deadline),
            self.share_places(&share, deadline),
            self.committed_places(&committing, deadline),
        )?;
        let members = share_members.into_iter().chain(consumer_members).chain(classic_members).collect();
        let places = share_places.into_iter().chain(committed_places).collect();
        Ok(select(listed, &members, &places, topics))
    }

    async fn share_places(&self, groups: &BTreeSet<String>, deadline: Deadline) -> Result<Places, AdminError> {
        let wanted = groups.iter().map(|group| (group.clone(), None)).collect();
        let mut places = Places::new();
        for (group, offsets) in self.share_offsets_within(&wanted, deadline).await? {
            let action = || format!("read the offsets of share group {group}");
            let offsets = offsets.map_err(|refusal| AdminError::refused(action(), refusal))?;
            places.insert(group, topics_of(offsets.keys()));
        }
        Ok(places)
    }

    async fn committed_places(&self, groups: &BTreeSet<String>, deadline: Deadline) -> Result<Places, AdminError> {
        let committed = self.committed_within(groups, deadline).await?;
        Ok(committed.into_iter().map(|(group, offsets)| (group, topics_of(offsets.keys()))).collect())
    }
}

fn names(listed: &[Listed], kinds: &[GroupKind]) -> BTreeSet<String> {
    listed.iter().filter(|group| kinds.contains(&group.kind)).map(|group| group.id.clone()).collect()
}

fn topics_of<'a>(partitions: impl Iterator<Item = &'a TopicPartition>) -> BTreeSet<String> {
    partitions.map(|partition| partition.topic.clone()).collect()
}

fn select(
    listed: Vec<Listed>,
    members: &BTreeMap<String, Members>,
    places: &Places,
    topics: &BTreeSet<String>,
) -> Vec<Reader> {
    let reader = |group: Listed| {
        let members = members.get(&group.id);
        let read = members.into_iter().flat_map(|members| &members.topics);
        let read = read.chain(places.get(&group.id).into_iter().flatten());
        let topics: BTreeSet<String> = read.filter(|topic| topics.contains(*topic)).cloned().collect();
        let members = members.map_or(0, |members| members.count);
        (!topics.is_empty()).then_some(Reader { group: group.id, kind: group.kind, members, topics })
    };
    listed.into_iter().filter_map(reader).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    fn listed(id: &str, kind: GroupKind) -> Listed {
        Listed { id: id.into(), kind, state: "Empty".into() }
    }

    #[test]
    fn groups_read_by_members_or_by_offsets() {
        let groups =
            vec![listed("a", GroupKind::Share), listed("b", GroupKind::Classic), listed("c", GroupKind::Consumer)];
        let members = BTreeMap::from([
            ("a".into(), Members { count: 2, topics: set(&["t", "x"]) }),
            ("c".into(), Members { count: 1, topics: set(&["x"]) }),
        ]);
        let places = BTreeMap::from([("a".into(), set(&["u"])), ("b".into(), set(&["u", "y"]))]);
        let readers = select(groups, &members, &places, &set(&["t", "u"]));
        let reader = |group: &str, kind, members, topics: &[&str]| Reader {
            group: group.into(),
            kind,
            members,
            topics: set(topics),
        };
        assert_eq!(
            readers,
            [reader("a", GroupKind::Share, 2, &["t", "u"]), reader("b", GroupKind::Classic, 0, &["u"])]
        );
    }
}
