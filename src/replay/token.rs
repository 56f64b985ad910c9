//! The preview token: a short stand-in for exactly one set of messages. Pure.
//!
//! It is a hash of everything that decides what a replay would send and where. Whoever quotes it gets that set or
//! nothing; how many dead letters came since makes no difference, as the look-again stays within the preview's bounds.

use crate::kafka::offset_set::PartitionSets;
use crate::kafka::{Span, TopicId};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Marks the format. Another way of hashing gets another mark, so that no old token is taken for a changed selection.
const FORMAT: &str = "pv1-";
/// Bytes of the hash that are kept: enough that no two previews ever share a token, short enough to paste.
const KEPT: usize = 16;

#[derive(Serialize)]
pub struct Previewed<'a> {
    pub cluster_id: &'a str,
    pub group: &'a str,
    /// Absent while no ledger exists yet: the first replay of a cluster makes it.
    pub ledger: Option<TopicId>,
    pub dead_letter_topic: TopicId,
    /// By name; absent where the source topic is missing.
    pub source_topics: &'a BTreeMap<String, Option<TopicId>>,
    /// Selection and target as the user wrote them.
    pub selection: &'a serde_json::Value,
    pub target: &'a serde_json::Value,
    pub bounds: &'a [Span],
    pub offsets: &'a PartitionSets,
}

/// The token of what was previewed: `pv1-` and 32 hexadecimal digits.
pub fn token(previewed: &Previewed<'_>) -> Result<String, serde_json::Error> {
    let hash = Sha256::digest(serde_json::to_vec(previewed)?);
    Ok(format!("{FORMAT}{}", hex::encode(&hash[..KEPT])))
}

/// A digest of what of a DLQReplay's spec is fixed, by which an object made anew from the same manifest is recognised.
pub fn digest(fixed: &serde_json::Value) -> String {
    hex::encode(Sha256::digest(fixed.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    struct Case {
        group: &'static str,
        ledger: Option<TopicId>,
        sources: BTreeMap<String, Option<TopicId>>,
        target: Value,
        bounds: Vec<Span>,
        offsets: PartitionSets,
    }

    fn case() -> Case {
        Case {
            group: "orders",
            ledger: Some(TopicId::from_u128(1)),
            sources: BTreeMap::from([("orders".into(), Some(TopicId::from_u128(2)))]),
            target: Value::Null,
            bounds: vec![Span { partition: 0, from: 0, until: 40 }],
            offsets: BTreeMap::from([(0, (0..40).collect())]),
        }
    }

    fn token_of(case: &Case) -> String {
        let previewed = Previewed {
            cluster_id: "c",
            group: case.group,
            ledger: case.ledger,
            dead_letter_topic: TopicId::from_u128(3),
            source_topics: &case.sources,
            selection: &json!({"causes": ["Rejected"]}),
            target: &case.target,
            bounds: &case.bounds,
            offsets: &case.offsets,
        };
        token(&previewed).expect("plain data serialises")
    }

    #[test]
    fn the_same_preview_has_the_same_token_however_it_was_put_together() {
        let mut other = case();
        other.offsets = BTreeMap::from([(0, (0..40).rev().collect())]);
        assert_eq!(token_of(&case()), token_of(&other));
        assert!(token_of(&case()).len() == 36 && token_of(&case()).starts_with("pv1-"));
    }

    #[test]
    fn whatever_changes_what_would_be_sent_changes_the_token() {
        type Change = fn(&mut Case);
        let changes: [(&str, Change); 6] = [
            ("group", |c| c.group = "payments"),
            ("ledger", |c| c.ledger = Some(TopicId::from_u128(9))),
            ("source topic made anew", |c| c.sources = BTreeMap::from([("orders".into(), None)])),
            ("target", |c| c.target = json!({"topic": "scratch"})),
            ("bounds", |c| c.bounds[0].from = 1),
            ("offsets", |c| c.offsets = BTreeMap::from([(0, (0..39).collect())])),
        ];
        for (what, change) in changes {
            let mut changed = case();
            change(&mut changed);
            assert_ne!(token_of(&case()), token_of(&changed), "{what}");
        }
    }
}
