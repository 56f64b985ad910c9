use super::*;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Offsets near each other, so that runs arise, some around the border of Roaring's 32-bit halves.
fn offsets() -> impl Strategy<Value = BTreeSet<i64>> {
    let near = prop_oneof![0..200i64, (1i64 << 32) - 40..(1i64 << 32) + 40, Just(i64::MAX)];
    btree_set(near, 0..120)
}

fn set(of: &BTreeSet<i64>) -> OffsetSet {
    of.iter().copied().collect()
}

#[test]
fn ranges_have_a_short_text() {
    let offsets = OffsetSet::from_iter([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12]);
    assert_eq!(offsets.to_ranges(), "0-9,12");
    assert_eq!(OffsetSet::new().to_ranges(), "");
}

#[test]
fn a_text_in_any_order_is_read() {
    assert_eq!(OffsetSet::parse(" 12, 3-4 ,0-3,,").map(|set| set.to_ranges()), Ok("0-4,12".into()));
    assert_eq!(OffsetSet::parse(""), Ok(OffsetSet::new()));
}

#[test]
fn a_bad_text_is_named() {
    for bad in ["a", "1-", "-1", "1-2-3", "+1", "99999999999999999999"] {
        assert_eq!(OffsetSet::parse(&format!("5,{bad}")), Err(ParseOffsets::ReadRange(bad.into())));
    }
    assert_eq!(OffsetSet::parse("9-3"), Err(ParseOffsets::OrderRange("9-3".into())));
}

#[test]
fn negative_offsets_are_never_members() {
    let mut offsets = OffsetSet::from_iter([-1, 3]);
    assert!(!offsets.insert(-1001) && !offsets.contains(-1) && offsets.rank_of(-1).is_none());
    assert_eq!(offsets.insert_range(-5..=1), 2);
    assert_eq!(offsets.to_ranges(), "0-1,3");
}

#[test]
fn long_ranges_serialise_to_a_few_bytes() {
    let mut long = OffsetSet::new();
    long.insert_range(5..=1_000_000);
    let text = serde_json::to_string(&long).unwrap();
    assert!(text.len() < 500, "{} bytes", text.len());
    assert_eq!(serde_json::from_str::<OffsetSet>(&text).unwrap(), long);
}

#[test]
fn nonsense_is_not_read_as_a_set() {
    for bad in ["\"%\"", "\"AAAA\"", "\"AQAAAAAAAAA=\"", "7"] {
        assert!(serde_json::from_str::<OffsetSet>(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn it_is_a_set(members in offsets(), probes in vec(0..250i64, 20)) {
        let ours = set(&members);
        prop_assert_eq!(ours.len(), members.len() as u64);
        prop_assert_eq!(ours.is_empty(), members.is_empty());
        prop_assert_eq!(ours.iter().collect::<Vec<_>>(), members.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!((ours.first(), ours.last()), (members.first().copied(), members.last().copied()));
        for probe in probes {
            prop_assert_eq!(ours.contains(probe), members.contains(&probe));
            let rank = members.iter().position(|&member| member == probe).map(|rank| rank as u64);
            prop_assert_eq!(ours.rank_of(probe), rank);
        }
    }

    #[test]
    fn ranks_and_members_answer_to_each_other(members in offsets()) {
        let ours = set(&members);
        for (rank, &member) in members.iter().enumerate() {
            prop_assert_eq!(ours.nth(rank as u64), Some(member));
            prop_assert_eq!(ours.rank_of(member), Some(rank as u64));
        }
        prop_assert_eq!(ours.nth(members.len() as u64), None);
    }

    #[test]
    fn sets_combine(a in offsets(), b in offsets()) {
        let (mut union, mut difference, mut both) = (set(&a), set(&a), set(&a));
        union.union_with(&set(&b));
        difference.subtract(&set(&b));
        both.intersect_with(&set(&b));
        prop_assert_eq!(union, set(&a.union(&b).copied().collect()));
        prop_assert_eq!(difference, set(&a.difference(&b).copied().collect()));
        prop_assert_eq!(both, set(&a.intersection(&b).copied().collect()));
        prop_assert_eq!(set(&a).is_disjoint(&set(&b)), a.is_disjoint(&b));
    }

    #[test]
    fn texts_and_ledger_values_are_read_back(members in offsets()) {
        let ours = set(&members);
        prop_assert_eq!(OffsetSet::parse(&ours.to_ranges()).unwrap(), ours.clone());
        let json = serde_json::to_string(&ours).unwrap();
        prop_assert_eq!(serde_json::from_str::<OffsetSet>(&json).unwrap(), ours);
    }

    #[test]
    fn a_short_text_is_the_start_of_the_long_one(members in offsets(), max in 0..200usize) {
        let ours = set(&members);
        let (text, complete) = ours.ranges_within(max);
        let whole = ours.to_ranges();
        prop_assert!(text.len() <= max && whole.starts_with(&text));
        prop_assert_eq!(complete, text == whole);
        prop_assert!(OffsetSet::parse(&text).unwrap().iter().all(|offset| members.contains(&offset)));
    }
}
