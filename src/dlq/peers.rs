//! Other ShareGroupDLQs that touch what this one touches.

use super::brokers::Facts;
use super::connection;
use crate::api::ShareGroupDLQ;
use kube::{Resource, ResourceExt};

/// How another object stands to this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Wants the same group of the same cluster.
    Rival { name: String, wins: bool },
    /// Another group's dead letters go to the same topic.
    Sharer { name: String },
}

/// The peers of `object` among `others`. `topic_id` is that of its topic as just seen.
pub fn find(
    facts: &Facts,
    object: &ShareGroupDLQ,
    cluster_id: &str,
    topic_id: Option<&str>,
    others: &[&ShareGroupDLQ],
) -> Vec<Peer> {
    let mut peers = Vec::new();
    for other in others.iter().filter(|other| other.uid() != object.uid() && other.meta().deletion_timestamp.is_none())
    {
        let name = format!("{}/{}", other.namespace().unwrap_or_default(), other.name_any());
        if other.spec.group_id == object.spec.group_id {
            if cluster_of(facts, other).as_deref() == Some(cluster_id) {
                peers.push(Peer::Rival { name, wins: age(other) < age(object) });
            }
        } else if topic_id.is_some() && topic_of(other) == topic_id {
            peers.push(Peer::Sharer { name });
        }
    }
    peers.sort_by_key(|peer| match peer {
        Peer::Rival { name, wins } => (!wins, name.clone()),
        Peer::Sharer { name } => (true, name.clone()),
    });
    peers
}

/// The older object wins; of two of the same second the one with the lower uid.
fn age(object: &ShareGroupDLQ) -> (Option<jiff::Timestamp>, Option<String>) {
    (object.creation_timestamp().map(|time| time.0), object.uid())
}

/// By cluster id, not by address: one cluster has many addresses.
fn cluster_of(facts: &Facts, object: &ShareGroupDLQ) -> Option<String> {
    let known = connection::settings(&object.spec.kafka).and_then(|settings| facts.cluster_id(&settings));
    let reported = || object.status.as_ref()?.broker.as_ref()?.cluster_id.clone();
    known.or_else(reported)
}

fn topic_of(object: &ShareGroupDLQ) -> Option<&str> {
    object.status.as_ref()?.topic.as_ref()?.id.as_deref()
}
