//! Which dead letters a DLQReplay is about. Pure.

use crate::api::{self, Cause};
use crate::kafka::dead_letter::{self, DeadLetter};
use crate::kafka::offset_set::{ParseOffsets, parse_ranges};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

#[derive(Debug, thiserror::Error)]
#[error("spec.selection.{field}: the ranges of partition {partition} can't be read: {source}")]
pub struct ParseSelectionError {
    field: &'static str,
    partition: i32,
    source: ParseOffsets,
}

/// A selection as it is asked for each dead letter.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    asked: api::Selection,
    offsets: Option<Ranges>,
    excluded: Ranges,
}

/// Ranges by partition, in ascending order and apart from each other.
type Ranges = BTreeMap<i32, Vec<RangeInclusive<i64>>>;

impl Matcher {
    pub fn new(selection: Option<&api::Selection>) -> Result<Self, ParseSelectionError> {
        let asked = selection.cloned().unwrap_or_default();
        let offsets = parse("offsets", &asked.offsets)?;
        let excluded = parse("excludeOffsets", &asked.exclude_offsets)?;
        Ok(Self { offsets: Some(offsets).filter(|ranges| !ranges.is_empty()), excluded, asked })
    }

    /// Whether messages are selected that were replayed before.
    pub fn includes_replayed(&self) -> bool {
        self.asked.include_replayed
    }

    /// The most messages that may be selected.
    pub fn limit(&self) -> Option<u64> {
        self.asked.limit.map(|limit| limit.unsigned_abs().into())
    }

    /// Whether every part of the selection matches. `attempts`: how often the message was replayed before and came back.
    pub fn matches(&self, letter: &DeadLetter, attempts: u32) -> bool {
        let asked = &self.asked;
        self.matches_offset(letter)
            && one_of(&asked.causes, &cause(letter.cause))
            && asked.message_contains.as_ref().is_none_or(|text| letter.message.contains(text.as_str()))
            && asked.min_deliveries.is_none_or(|least| letter.deliveries.is_some_and(|count| count >= least))
            && asked.max_attempts.is_none_or(|most| attempts < most.unsigned_abs())
            && one_of(&asked.source_topics, &letter.source.topic)
            && one_of(&asked.source_partitions, &letter.source.partition)
            && self.matches_time(letter.timestamp)
    }

    fn matches_offset(&self, letter: &DeadLetter) -> bool {
        let within = |of: &Ranges| of.get(&letter.partition).is_some_and(|ranges| contains(ranges, letter.offset));
        self.offsets.as_ref().is_none_or(within) && !within(&self.excluded)
    }

    fn matches_time(&self, timestamp: i64) -> bool {
        let Some(period) = &self.asked.dead_lettered else { return true };
        let millis = |time: &api::Time| time.0.as_millisecond();
        period.from.as_ref().is_none_or(|from| millis(from) <= timestamp)
            && period.until.as_ref().is_none_or(|until| timestamp < millis(until))
    }
}

fn parse(field: &'static str, list: &[api::PartitionRanges]) -> Result<Ranges, ParseSelectionError> {
    let parse = |one: &api::PartitionRanges| {
        let error = |source| ParseSelectionError { field, partition: one.partition, source };
        Ok((one.partition, merged(parse_ranges(&one.ranges).map_err(error)?)))
    };
    list.iter().map(parse).collect()
}

/// Overlapping ranges made one, so that one look finds whether an offset is in any.
fn merged(mut ranges: Vec<RangeInclusive<i64>>) -> Vec<RangeInclusive<i64>> {
    ranges.sort_by_key(|range| *range.start());
    let mut merged: Vec<RangeInclusive<i64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start() <= last.end() => *last = *last.start()..=*last.end().max(range.end()),
            _ => merged.push(range),
        }
    }
    merged
}

fn contains(ranges: &[RangeInclusive<i64>], offset: i64) -> bool {
    let at = ranges.partition_point(|range| *range.end() < offset);
    ranges.get(at).is_some_and(|range| range.contains(&offset))
}

fn one_of<T: PartialEq>(list: &[T], value: &T) -> bool {
    list.is_empty() || list.contains(value)
}

/// The cause as the API names it.
pub fn cause(cause: dead_letter::Cause) -> Cause {
    match cause {
        dead_letter::Cause::Rejected => Cause::Rejected,
        dead_letter::Cause::DeliveryLimit => Cause::DeliveryLimit,
        dead_letter::Cause::Other => Cause::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::Coordinates;
    use serde_json::{Value, json};

    fn letter() -> DeadLetter {
        DeadLetter {
            partition: 0,
            offset: 7,
            timestamp: 1_000,
            group: "orders".into(),
            source: Coordinates::new("orders", 1, 70),
            cause: dead_letter::Cause::Rejected,
            message: "Offset rejected by client.".into(),
            deliveries: Some(2),
            has_copy: false,
        }
    }

    fn matches(selection: Value) -> bool {
        let selection: api::Selection = serde_json::from_value(selection).expect("a selection");
        Matcher::new(Some(&selection)).expect("ranges that can be read").matches(&letter(), 1)
    }

    #[test]
    fn every_part_must_match() {
        let table = [
            (json!({}), true),
            (json!({"offsets": [{"partition": 0, "ranges": "0-9"}]}), true),
            (json!({"offsets": [{"partition": 0, "ranges": "8,9"}]}), false),
            (json!({"offsets": [{"partition": 0, "ranges": "0-9223372036854775807"}]}), true),
            (json!({"offsets": [{"partition": 0, "ranges": "20-30,6-8,0-3,7-9"}]}), true),
            (json!({"offsets": [{"partition": 0, "ranges": "20-30,8-9,0-6"}]}), false),
            (json!({"offsets": [{"partition": 1, "ranges": "0-9"}]}), false),
            (json!({"excludeOffsets": [{"partition": 0, "ranges": "7"}]}), false),
            (json!({"excludeOffsets": [{"partition": 1, "ranges": "7"}]}), true),
            (json!({"causes": ["Rejected"]}), true),
            (json!({"causes": ["DeliveryLimit"]}), false),
            (json!({"messageContains": "rejected"}), true),
            (json!({"messageContains": "timed out"}), false),
            (json!({"minDeliveries": 2}), true),
            (json!({"minDeliveries": 3}), false),
            (json!({"maxAttempts": 2}), true),
            (json!({"maxAttempts": 1}), false),
            (json!({"sourceTopics": ["orders", "x"]}), true),
            (json!({"sourceTopics": ["x"]}), false),
            (json!({"sourcePartitions": [0]}), false),
            (json!({"sourcePartitions": [1]}), true),
            (json!({"deadLettered": {"from": "1970-01-01T00:00:01Z"}}), true),
            (json!({"deadLettered": {"until": "1970-01-01T00:00:01Z"}}), false),
            (json!({"deadLettered": {"from": "1970-01-01T00:00:02Z"}}), false),
            (json!({"causes": ["Rejected"], "minDeliveries": 3}), false),
        ];
        for (selection, expected) in table {
            assert_eq!(matches(selection.clone()), expected, "{selection}");
        }
    }

    #[test]
    fn ranges_that_make_no_sense_are_named() {
        let selection = api::Selection {
            offsets: vec![api::PartitionRanges { partition: 3, ranges: "9-1".into() }],
            ..api::Selection::default()
        };
        let error = Matcher::new(Some(&selection)).expect_err("9-1 runs backwards").to_string();
        assert!(error.contains("spec.selection.offsets") && error.contains("partition 3"), "{error}");
    }
}
