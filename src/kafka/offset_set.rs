//! A set of offsets of one partition, small in memory and in the ledger whether it is one long range or scattered.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use roaring::RoaringTreemap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// Offsets by partition.
pub type PartitionSets = BTreeMap<i32, OffsetSet>;

/// Offsets from 0 up. Negative ones, which Kafka uses for "none" and "latest", are never members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetSet(RoaringTreemap);

impl Eq for OffsetSet {}

/// Why a text is no list of offsets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseOffsets {
    #[error("\"{0}\" is neither an offset nor a range of offsets such as 0-9")]
    ReadRange(String),
    #[error("the range \"{0}\" ends before it starts")]
    OrderRange(String),
}

impl OffsetSet {
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the offset was not there before. A negative offset is never added.
    pub fn insert(&mut self, offset: i64) -> bool {
        u64::try_from(offset).is_ok_and(|offset| self.0.insert(offset))
    }

    /// Adds `range`, and says how many of its offsets were not there before.
    pub fn insert_range(&mut self, range: RangeInclusive<i64>) -> u64 {
        let Ok(last) = u64::try_from(*range.end()) else { return 0 };
        let first = u64::try_from(*range.start()).unwrap_or(0);
        self.0.insert_range(first..=last)
    }

    pub fn remove(&mut self, offset: i64) -> bool {
        u64::try_from(offset).is_ok_and(|offset| self.0.remove(offset))
    }

    pub fn contains(&self, offset: i64) -> bool {
        u64::try_from(offset).is_ok_and(|offset| self.0.contains(offset))
    }

    pub fn len(&self) -> u64 {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn first(&self) -> Option<i64> {
        self.0.min().map(as_offset)
    }

    pub fn last(&self) -> Option<i64> {
        self.0.max().map(as_offset)
    }

    /// The offsets, ascending.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().map(as_offset)
    }

    /// The position of a member among all of them, from 0; none for an offset that is no member.
    pub fn rank_of(&self, offset: i64) -> Option<u64> {
        let offset = u64::try_from(offset).ok()?;
        self.0.contains(offset).then(|| self.0.rank(offset) - 1)
    }

    /// The member at that position, from 0.
    pub fn nth(&self, rank: u64) -> Option<i64> {
        self.0.select(rank).map(as_offset)
    }

    pub fn union_with(&mut self, other: &Self) {
        self.0 |= &other.0;
    }

    pub fn subtract(&mut self, other: &Self) {
        self.0 -= &other.0;
    }

    pub fn intersect_with(&mut self, other: &Self) {
        self.0 &= &other.0;
    }

    /// The members from `from` up to, but without, `until`.
    pub fn within(&self, from: i64, until: i64) -> Self {
        let place = |offset: i64| u64::try_from(offset).unwrap_or(0);
        // Cut from what is there: a set of the whole range could be far larger than this one.
        let mut within = self.0.clone();
        within.remove_range(..place(from));
        within.remove_range(place(until)..);
        Self(within)
    }

    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.0.is_disjoint(&other.0)
    }

    /// Every longest run of consecutive members, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<i64>> + '_ {
        let mut offsets = self.iter().peekable();
        std::iter::from_fn(move || {
            let first = offsets.next()?;
            let mut last = first;
            while let Some(next) = offsets.next_if(|&next| next == last + 1) {
                last = next;
            }
            Some(first..=last)
        })
    }

    /// The whole set as text, such as `0-9,12`.
    pub fn to_ranges(&self) -> String {
        self.ranges_within(usize::MAX).0
    }

    /// As many of the first ranges as fit into `max_bytes`, and whether those are all.
    pub fn ranges_within(&self, max_bytes: usize) -> (String, bool) {
        let mut text = String::new();
        for range in self.ranges() {
            let range = range_text(&range);
            let comma = usize::from(!text.is_empty());
            if text.len() + comma + range.len() > max_bytes {
                return (text, false);
            }
            text.extend((comma == 1).then_some(','));
            text.push_str(&range);
        }
        (text, true)
    }

    /// Reads what [`to_ranges`](Self::to_ranges) writes, in any order; spaces and the empty text are allowed.
    pub fn parse(text: &str) -> Result<Self, ParseOffsets> {
        let mut set = Self::new();
        for range in parse_ranges(text)? {
            set.insert_range(range);
        }
        Ok(set)
    }
}

/// Reads "0-9,12" without making a set of it: what a user asks for may reach from 0 to the largest offset there is, and a
/// set of that would fill the memory.
pub fn parse_ranges(text: &str) -> Result<Vec<RangeInclusive<i64>>, ParseOffsets> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(parse_range).collect()
}

fn as_offset(member: u64) -> i64 {
    member.cast_signed()
}

fn range_text(range: &RangeInclusive<i64>) -> String {
    if range.start() == range.end() { range.start().to_string() } else { format!("{}-{}", range.start(), range.end()) }
}

fn parse_range(text: &str) -> Result<RangeInclusive<i64>, ParseOffsets> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |digits: &str| {
        let digits = digits.trim();
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse::<i64>().ok().filter(|_| plain).ok_or_else(|| ParseOffsets::ReadRange(text.to_owned()))
    };
    let range = number(first)?..=number(last)?;
    if range.is_empty() { Err(ParseOffsets::OrderRange(text.to_owned())) } else { Ok(range) }
}

impl fmt::Display for OffsetSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_ranges())
    }
}

impl std::str::FromStr for OffsetSet {
    type Err = ParseOffsets;

    fn from_str(text: &str) -> Result<Self, ParseOffsets> {
        Self::parse(text)
    }
}

impl FromIterator<i64> for OffsetSet {
    fn from_iter<I: IntoIterator<Item = i64>>(offsets: I) -> Self {
        Self(offsets.into_iter().filter_map(|offset| u64::try_from(offset).ok()).collect())
    }
}

impl Extend<i64> for OffsetSet {
    fn extend<I: IntoIterator<Item = i64>>(&mut self, offsets: I) {
        self.0.extend(offsets.into_iter().filter_map(|offset| u64::try_from(offset).ok()));
    }
}

/// Base64 of the portable serialisation of Roaring bitmaps (64 bits), runs compressed.
impl Serialize for OffsetSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut compact = self.0.clone();
        compact.optimize();
        let mut bytes = Vec::with_capacity(compact.serialized_size());
        compact.serialize_into(&mut bytes).map_err(ser::Error::custom)?;
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for OffsetSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(de::Error::custom)?;
        let set = RoaringTreemap::deserialize_from(bytes.as_slice()).map_err(de::Error::custom)?;
        if set.max().is_some_and(|last| i64::try_from(last).is_err()) {
            return Err(de::Error::custom("the set holds a number that is no offset"));
        }
        Ok(Self(set))
    }
}

#[cfg(test)]
mod tests;
