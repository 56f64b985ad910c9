//! The two resources as a user writes them, ShareGroupDLQ and DLQReplay: types, schema with CEL rules, conditions. No I/O, no client.

pub mod conditions;
mod crds;
pub mod dlq_replay;
pub mod outcome;
mod schema;
pub mod share_group_dlq;

pub use crds::{PrintCrdError, crd_files, crds, crds_yaml};
pub use dlq_replay::*;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
pub use share_group_dlq::*;

/// On a ShareGroupDLQ: the id of the Kafka cluster to accept in place of the one seen before.
pub const ACCEPT_CLUSTER: &str = "redrive.dev/accept-cluster";

/// On a ShareGroupDLQ: the topic id of the ledger to accept in place of the one seen before.
pub const ACCEPT_LEDGER: &str = "redrive.dev/accept-ledger";

/// On a ShareGroupDLQ that is being deleted, `true`: leave topic and group configs, do not wait for Kafka.
pub const ORPHAN: &str = "redrive.dev/orphan";

/// On a DLQReplay: who asked for the replay, as recorded by the API server.
pub const REPLAY_REQUESTED_BY: &str = "redrive.dev/replay-requested-by";

/// Longest text of a message taken over from elsewhere (a broker's answer, a dead letter's cause) into a status list, in characters.
pub const CLIPPED_MESSAGE: usize = 256;

/// Cuts `text` to at most `max` characters, the last of them an ellipsis where something was cut off.
/// A value longer than its schema allows would make the API server refuse the whole status.
pub fn clip(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn a_long_text_is_cut_at_a_character_and_says_so() {
        for (text, max, expected) in [("", 3, ""), ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("äöüß", 3, "äö…")]
        {
            assert_eq!(clip(text, max), expected, "{text} to {max}");
        }
    }
}
