//! Where the messages would go, and who would read them there.

use super::{Asked, signed, target};
use crate::api::{GroupType, PreviewTarget, TargetGroup};
use crate::kafka::TopicPartition;
use crate::kafka::share_groups::{GroupKind, Reader};
use crate::replay::look::{Scene, TopicFacts};
use std::collections::BTreeMap;

/// The group whose progress settles a message: the one asked for, else that of the ShareGroupDLQ for the sources, else
/// the only live share group of the other topic.
pub fn settling_group(asked: &Asked<'_>, scene: &Scene) -> Option<String> {
    let named = asked.spec.target.as_ref().and_then(|target| target.settling_group());
    match (named, target(asked.spec)) {
        (Some(named), _) => Some(named.into()),
        (None, None) => Some(asked.group.into()),
        (None, Some(topic)) => {
            let live = |reader: &&Reader| {
                reader.kind == GroupKind::Share && reader.members > 0 && reader.topics.contains(topic)
            };
            let mut live = scene.readers.iter().filter(live);
            live.next().filter(|_| live.next().is_none()).map(|reader| reader.group.clone())
        }
    }
}

pub fn targets(asked: &Asked<'_>, scene: &Scene, settling_group: Option<&str>) -> Vec<PreviewTarget> {
    let mut messages: BTreeMap<&str, u64> = BTreeMap::new();
    for (source, offsets) in &scene.survey.sources {
        *messages.entry(target(asked.spec).unwrap_or(&source.topic)).or_default() += offsets.len();
    }
    messages.into_iter().map(|(topic, count)| one(scene, settling_group, topic, count)).collect()
}

fn one(scene: &Scene, settling_group: Option<&str>, topic: &str, messages: u64) -> PreviewTarget {
    let found = scene.topics.get(topic).and_then(TopicFacts::found);
    let readers = scene.readers.iter().filter(|reader| reader.topics.contains(topic));
    PreviewTarget {
        topic: topic.into(),
        exists: found.is_some(),
        authorized: found.is_some_and(|topic| topic.operations.write),
        messages: signed(messages),
        live_consumers: settling_group.map_or(0, |group| live_consumers(scene, group, topic)),
        groups: readers.map(group).collect(),
    }
}

fn live_consumers(scene: &Scene, group: &str, topic: &str) -> i32 {
    let reads = |partitions: &[TopicPartition]| partitions.iter().any(|partition| partition.topic == topic);
    let members = scene.groups.get(group).and_then(Option::as_ref).map(|group| group.members.as_slice());
    let live = members.unwrap_or_default().iter().filter(|member| reads(&member.partitions)).count();
    i32::try_from(live).unwrap_or(i32::MAX)
}

fn group(reader: &Reader) -> TargetGroup {
    let type_ = match reader.kind {
        GroupKind::Share => GroupType::Share,
        GroupKind::Consumer => GroupType::Consumer,
        GroupKind::Classic => GroupType::Classic,
        GroupKind::Streams => GroupType::Streams,
        GroupKind::Other => GroupType::Other,
    };
    // Whoever is empty now and comes back receives them too: its offsets are kept.
    let members = i32::try_from(reader.members).unwrap_or(i32::MAX);
    TargetGroup { group_id: reader.group.clone(), type_, members, will_receive: true }
}
