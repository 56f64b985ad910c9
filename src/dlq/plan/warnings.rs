//! What does not make the object unready, but may lose dead letters or surprise.

use super::{Reason, Warning};
use crate::api::{ACCEPT_LEDGER, ShareGroupDLQ};
use crate::dlq::config;
use crate::dlq::observe::{Observed, Seen};
use crate::dlq::peers::Peer;
use crate::kafka::admin::TopicLookup;
use kube::ResourceExt;
use std::collections::BTreeSet;

/// The gravest first: its reason is the condition's.
pub fn of(object: &ShareGroupDLQ, observed: &Observed, seen: &Seen) -> Vec<Warning> {
    let rules = [ledger_lost(object, seen), under_replicated(seen), prefixes_differ(seen), shared(observed, seen)];
    rules.into_iter().flatten().collect()
}

fn ledger_lost(object: &ShareGroupDLQ, seen: &Seen) -> Option<Warning> {
    let remembered = super::remembered_ledger(object, seen)?;
    let found = seen.cluster.ledger.map(|id| id.to_string());
    let way_out = match &found {
        Some(id) if *id == remembered => return None,
        other => other.as_deref().unwrap_or(super::NO_LEDGER),
    };
    let way_out = format!(
        "Accept that: kubectl -n {} annotate sharegroupdlq {} --overwrite {ACCEPT_LEDGER}={way_out}",
        object.namespace().unwrap_or_default(),
        object.name_any()
    );
    Some(Warning {
        reason: Reason::LedgerLost,
        message: format!(
            "the ledger that was here had topic id {remembered} and is gone: what was replayed before is not known any \
             more, so no replay begins. {way_out}"
        ),
    })
}

fn under_replicated(seen: &Seen) -> Option<Warning> {
    let TopicLookup::Found(topic) = &seen.topic else { return None };
    let weak = topic.partitions.iter().filter(|p| p.leader.is_none() || p.isr.len() < p.replicas.len());
    let weak: Vec<_> = weak.map(|partition| partition.id.to_string()).collect();
    (!weak.is_empty()).then(|| Warning {
        reason: Reason::UnderReplicated,
        message: format!(
            "partitions {} of {} lack a leader or replicas in sync: below min.insync.replicas dead letters are dropped. \
             Bring the missing brokers back",
            weak.join(", "),
            topic.name
        ),
    })
}

fn prefixes_differ(seen: &Seen) -> Option<Warning> {
    let prefixes: BTreeSet<_> = seen.cluster.brokers.values().map(|broker| broker.prefix.as_str()).collect();
    (prefixes.len() > 1).then(|| Warning {
        reason: Reason::PrefixDiffersBetweenBrokers,
        message: format!(
            "the brokers' {} differ ({}): whether a dead letter is kept may depend on the broker. Set the same on all",
            config::PREFIX,
            prefixes.iter().map(|prefix| format!("'{prefix}'")).collect::<Vec<_>>().join(", ")
        ),
    })
}

fn shared(observed: &Observed, seen: &Seen) -> Option<Warning> {
    let sharers = observed.peers.iter().filter_map(|peer| match peer {
        Peer::Sharer { name } => Some(name.as_str()),
        Peer::Rival { .. } => None,
    });
    let sharers: Vec<_> = sharers.collect();
    (!sharers.is_empty()).then(|| Warning {
        reason: Reason::SharedTopic,
        message: format!(
            "{} also send dead letters to {}: the backlog counts those too. Give each group a topic of its own",
            sharers.join(", "),
            seen.topic_name
        ),
    })
}
