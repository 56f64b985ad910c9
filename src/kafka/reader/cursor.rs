//! How far the reading of one partition has come, and where it goes on. Knows no client.

use crate::kafka::Span;
use std::collections::{BTreeMap, VecDeque};

/// Ascending spans of one partition, of which some are read already.
#[derive(Debug)]
pub(super) struct Cursor {
    /// `from` and `until` of those not yet read to their end.
    spans: VecDeque<(i64, i64)>,
    /// The next offset to come. Earlier ones that still come are known already.
    position: i64,
}

/// Where to read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// With what comes.
    Here,
    /// At this offset, as what is in between is not wanted and too much to read through.
    Seek(i64),
    /// Nowhere: all spans are read.
    Nowhere,
}

impl Cursor {
    /// One cursor for each partition with something to read. Spans that touch or overlap become one.
    pub(super) fn by_partition(spans: impl IntoIterator<Item = Span>) -> BTreeMap<i32, Self> {
        let mut by_partition: BTreeMap<i32, Vec<(i64, i64)>> = BTreeMap::new();
        for Span { partition, from, until } in spans.into_iter().filter(|span| span.from < span.until) {
            by_partition.entry(partition).or_default().push((from.max(0), until));
        }
        by_partition.into_iter().map(|(partition, spans)| (partition, Self::new(spans))).collect()
    }

    fn new(mut spans: Vec<(i64, i64)>) -> Self {
        spans.sort_unstable();
        let mut merged: VecDeque<(i64, i64)> = VecDeque::new();
        for (from, until) in spans {
            match merged.back_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => merged.push_back((from, until)),
            }
        }
        Self { position: merged.front().map_or(0, |span| span.0), spans: merged }
    }

    pub(super) fn position(&self) -> i64 {
        self.position
    }

    pub(super) fn is_done(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether the record at `offset` is wanted; it never is twice.
    pub(super) fn wants(&self, offset: i64) -> bool {
        let inside = |&(from, until): &(i64, i64)| from <= offset && offset < until;
        offset >= self.position && self.spans.iter().take_while(|span| span.0 <= offset).any(inside)
    }

    /// Everything below `position` has come or will never come. Gaps of up to `skip` offsets are read through.
    pub(super) fn reach(&mut self, position: i64, skip: i64) -> Next {
        self.position = self.position.max(position);
        while self.spans.front().is_some_and(|span| span.1 <= self.position) {
            self.spans.pop_front();
        }
        match self.spans.front() {
            None => Next::Nowhere,
            Some(&(from, _)) if from - self.position > skip => Next::Seek(from),
            Some(_) => Next::Here,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    fn cursor(spans: &[(i64, i64)]) -> Cursor {
        let spans = spans.iter().map(|&(from, until)| Span { partition: 0, from, until });
        Cursor::by_partition(spans).remove(&0).unwrap()
    }

    #[test]
    fn empty_spans_are_nothing_to_read() {
        assert!(Cursor::by_partition([Span { partition: 3, from: 5, until: 5 }]).is_empty());
    }

    #[test]
    fn a_gap_at_the_end_of_a_span_ends_it() {
        let mut cursor = cursor(&[(2, 5)]);
        assert_eq!(cursor.reach(3, 0), Next::Here);
        assert_eq!(cursor.reach(9, 0), Next::Nowhere);
    }

    #[test]
    fn wide_gaps_are_jumped_and_narrow_ones_read_through() {
        let mut cursor = cursor(&[(0, 2), (10, 12), (14, 15)]);
        assert_eq!(cursor.reach(2, 4), Next::Seek(10));
        assert_eq!(cursor.reach(12, 4), Next::Here);
        assert!(!cursor.wants(13) && cursor.wants(14));
        assert_eq!(cursor.reach(15, 4), Next::Nowhere);
    }

    #[test]
    fn what_comes_again_after_a_jump_is_not_wanted_twice() {
        let mut cursor = cursor(&[(0, 1), (5, 8)]);
        cursor.reach(7, 0);
        assert!(!cursor.wants(6) && cursor.wants(7));
    }

    proptest! {
        /// A log with gaps, read in order, jumping as told: exactly the records inside the spans come, once each.
        #[test]
        fn all_inside_the_spans_is_read_once(
            spans in vec((0..60i64, 0..20i64), 1..8),
            log in btree_set(0..90i64, 0..70),
            skip in 0..10i64,
        ) {
            let spans: Vec<_> = spans.into_iter().map(|(from, length)| (from, from + length)).collect();
            let expected: Vec<i64> =
                log.iter().copied().filter(|at| spans.iter().any(|&(from, until)| from <= *at && *at < until)).collect();
            let mut read = Vec::new();
            let all = spans.iter().map(|&(from, until)| Span { partition: 0, from, until });
            if let Some(mut cursor) = Cursor::by_partition(all).remove(&0) {
                let mut from = cursor.position();
                while let Some(&offset) = log.range(from..).next() {
                    if cursor.wants(offset) {
                        read.push(offset);
                    }
                    match cursor.reach(offset + 1, skip) {
                        Next::Here => from = offset + 1,
                        Next::Seek(to) => from = to,
                        Next::Nowhere => break,
                    }
                }
            }
            prop_assert_eq!(read, expected);
        }
    }
}
