use super::*;
use crate::kafka::offset_set::{OffsetSet, PartitionSets};
use crate::kafka::{Coordinates, TopicPartition};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use std::collections::BTreeMap;

const DLQ: TopicId = TopicId::from_u128(7);

fn offsets(text: &str) -> OffsetSet {
    OffsetSet::parse(text).unwrap()
}

fn sets(partition: i32, text: &str) -> PartitionSets {
    PartitionSets::from([(partition, offsets(text))])
}

fn start(uid: &str, group: &str) -> Start {
    Start {
        uid: uid.into(),
        namespace: "shop".into(),
        name: format!("replay-{uid}"),
        group: group.into(),
        token: "t".into(),
        spec_digest: "d".into(),
        reason: None,
        requested_by: None,
        strategy: "Canary".into(),
        selected: sets(0, "0-99"),
        topics: BTreeMap::from([("orders".into(), TopicId::from_u128(1))]),
        settling_group: group.into(),
        dead_letter_ends: BTreeMap::from([(0, 100)]),
        at: 1,
    }
}

fn intent(uid: &str, step: u32, letters: &str) -> Intent {
    let letters = sets(0, letters);
    Intent { uid: uid.into(), step, size: letters[&0].len(), letters, targets: Vec::new(), at: 1 }
}

/// Letters of partition 0, of source `orders-3`, sent to `orders-3`.
fn sent(letters: &str, sources: &str, targets: &str, attempt: u32) -> Move {
    Move {
        letter_partition: 0,
        letters: offsets(letters),
        source: TopicPartition::new("orders", 3),
        source_id: TopicId::from_u128(1),
        source_offsets: offsets(sources),
        target: TopicPartition::new("orders", 3),
        target_id: TopicId::from_u128(1),
        target_offsets: offsets(targets),
        attempt,
    }
}

fn outcome(uid: &str, step: u32, slice: u32, moves: Vec<Move>) -> Outcome {
    Outcome { uid: uid.into(), step, slice, moves, at: i64::from(100 * step + slice) }
}

fn history(entries: Vec<Entry>) -> History {
    let mut history = History::default();
    entries.into_iter().for_each(|entry| history.add(entry));
    history
}

fn claim(operator: &str, term: u64) -> Entry {
    Entry::Claim(Claim { operator: operator.into(), installation: "i".into(), term, at: 0 })
}

#[test]
fn keys_name_topic_kind_and_what_tells_entries_apart() {
    let key = |entry: Entry| entry.key(DLQ).replace(&DLQ.to_string(), "ID");
    assert_eq!(key(claim("a", 1)), "ID/claim");
    assert_eq!(key(Entry::Start(start("u", "g"))), "ID/start/u");
    assert_eq!(key(Entry::Intent(intent("u", 3, "1"))), "ID/intent/u");
    assert_eq!(key(Entry::Outcome(outcome("u", 3, 8, vec![]))), "ID/outcome/u/3/8");
    let uncertain = Uncertain { uid: "u".into(), step: 3, number: 1, moves: vec![], unlocated: sets(0, "1"), at: 0 };
    assert_eq!(key(Entry::Uncertain(uncertain)), "ID/uncertain/u/3/1");
    assert_eq!(key(Entry::Release(Release { uid: "u".into(), at: 0 })), "ID/release/u");
}

#[test]
fn a_value_is_as_documented() {
    let text = String::from_utf8(codec::encode(&claim("pod-1", 4))).unwrap();
    let expected = r#"{"v":1,"kind":"claim","entry":{"operator":"pod-1","installation":"i","term":4,"at":0}}"#;
    assert_eq!(text, expected);
}

#[test]
fn what_is_no_entry_is_refused_by_name() {
    let key = claim("a", 1).key(DLQ);
    let decode = |key: &str, value: &str| codec::decode(DLQ, Some(key.as_bytes()), Some(value.as_bytes()));
    let good = String::from_utf8(codec::encode(&claim("a", 1))).unwrap();
    assert!(decode(&key, &good).unwrap().is_some());
    assert!(decode(&key.replace(&DLQ.to_string(), &TopicId::nil().to_string()), "anything").unwrap().is_none());

    assert!(matches!(decode("claim", &good), Err(DecodeEntry::ReadKey(_))));
    assert!(matches!(codec::decode(DLQ, None, Some(b"{}")), Err(DecodeEntry::ReadKey(_))));
    assert!(matches!(codec::decode(DLQ, Some(key.as_bytes()), None), Err(DecodeEntry::FindValue)));
    assert!(matches!(decode(&format!("{DLQ}/start/u"), &good), Err(DecodeEntry::MatchKey { .. })));
    let newer = good.replace("\"v\":1", "\"v\":2");
    assert!(matches!(decode(&key, &newer), Err(DecodeEntry::SupportVersion { found: 2 })));
    let other = good.replace("\"claim\",", "\"oath\",");
    assert!(matches!(decode(&key, &other), Err(DecodeEntry::KnowKind(kind)) if kind == "oath"));
    assert!(matches!(decode(&key, "{\"v\":1,\"kind\":\"claim\",\"entry\":{}}"), Err(DecodeEntry::ParseValue(_))));
    assert!(matches!(decode(&key, ""), Err(DecodeEntry::ParseValue(_))));
}

#[test]
fn the_claim_of_the_highest_term_counts_and_of_equal_ones_the_later() {
    let of = |claims: [(&str, u64); 3]| {
        history(claims.map(|(operator, term)| claim(operator, term)).into()).claim.unwrap().operator
    };
    assert_eq!(of([("a", 1), ("b", 3), ("late", 2)]), "b");
    assert_eq!(of([("a", 1), ("b", 3), ("again", 3)]), "again");
}

#[test]
fn terms_of_different_installations_are_not_compared() {
    let foreign = Claim { operator: "c".into(), installation: "elsewhere".into(), term: 1, at: 0 };
    let history = history(vec![claim("a", 9), Entry::Claim(foreign.clone())]);
    assert_eq!(history.claim, Some(foreign));
}

#[test]
fn a_step_can_be_cut_off_more_than_once() {
    let cut = |number, of: &str| {
        let unlocated = sets(0, of);
        Entry::Uncertain(Uncertain { uid: "u".into(), step: 1, number, moves: vec![], unlocated, at: 0 })
    };
    let history = history(vec![Entry::Start(start("u", "g")), cut(1, "5"), cut(0, "2-3"), cut(1, "6")]);
    assert_eq!(history.replays["u"].uncertain_letters(), sets(0, "2-3,6"));
}

#[test]
fn letters_of_the_last_intent_are_open_until_they_are_sent_or_uncertain() {
    let mut entries = vec![
        Entry::Start(start("u", "g")),
        Entry::Intent(intent("u", 1, "0-9")),
        Entry::Outcome(outcome("u", 1, 0, vec![sent("0-9", "0-9", "100-109", 1)])),
        Entry::Intent(intent("u", 2, "10-29")),
    ];
    assert_eq!(history(entries.clone()).replays["u"].open_letters(), sets(0, "10-29"));
    entries.push(Entry::Outcome(outcome("u", 2, 0, vec![sent("10-14", "10-14", "111-115", 1)])));
    assert_eq!(history(entries.clone()).replays["u"].open_letters(), sets(0, "15-29"));
    let moves = vec![sent("15-16", "15-16", "117-118", 1)];
    let unlocated = sets(0, "20");
    entries.push(Entry::Uncertain(Uncertain { uid: "u".into(), step: 2, number: 0, moves, unlocated, at: 5 }));
    let replay = history(entries).replays.remove("u").unwrap();
    assert_eq!(replay.open_letters(), sets(0, "17-19,21-29"));
    assert_eq!(replay.sent(), sets(0, "0-14"));
    assert_eq!(replay.uncertain_letters(), sets(0, "15-16,20"));
}

#[test]
fn a_release_counts_until_something_is_sent_again() {
    let released = |entries: Vec<Entry>| history(entries).replays["u"].released;
    let release = Entry::Release(Release { uid: "u".into(), at: 9 });
    let entries = vec![Entry::Start(start("u", "g")), release];
    assert!(released(entries.clone()));
    assert!(!released([entries, vec![Entry::Intent(intent("u", 1, "0"))]].concat()));
}

#[test]
fn a_place_on_the_target_leads_back_to_its_letter() {
    // Two moves of one slice interleave on the target.
    let even = Move { letter_partition: 1, ..sent("5,7,9", "50-52", "100,102,104", 1) };
    let odd = sent("1-3", "60-62", "101,103,105", 1);
    let later = sent("4", "63", "107", 1);
    let replay = history(vec![
        Entry::Start(start("u", "g")),
        Entry::Outcome(outcome("u", 1, 0, vec![even, odd])),
        Entry::Outcome(outcome("u", 2, 0, vec![later])),
    ]);
    let find = |offset| replay.replays["u"].find_target(&Coordinates::new("orders", 3, offset));
    assert_eq!(find(100), Some((1, 5, 1)));
    assert_eq!(find(104), Some((1, 9, 1)));
    assert_eq!(find(103), Some((0, 2, 1)));
    assert_eq!(find(107), Some((0, 4, 2)));
    // Markers, other people's records, other partitions.
    assert_eq!((find(106), find(99), find(200)), (None, None, None));
    assert_eq!(replay.replays["u"].find_target(&Coordinates::new("orders", 2, 100)), None);
}

#[test]
fn the_index_says_by_whom_and_how_often_a_message_was_sent() {
    let again = Move { source_offsets: offsets("100"), ..sent("40", "100", "200", 2) };
    let history = history(vec![
        Entry::Start(start("one", "g")),
        Entry::Outcome(outcome("one", 1, 0, vec![sent("0-1", "10,12", "100-101", 1)])),
        Entry::Start(start("two", "g")),
        Entry::Outcome(outcome("two", 3, 0, vec![again])),
        Entry::Uncertain(Uncertain {
            uid: "two".into(),
            step: 3,
            number: 0,
            moves: vec![sent("41", "12", "203", 2)],
            unlocated: PartitionSets::new(),
            at: 300,
        }),
        Entry::Start(start("other", "h")),
        Entry::Outcome(outcome("other", 1, 0, vec![sent("0", "77", "500", 1)])),
    ]);
    let at = |offset| Coordinates::new("orders", 3, offset);
    let index = history.index("g");
    let seen = index.was_sent(&at(10)).unwrap();
    assert_eq!((seen.at, &*seen.replay, &*seen.uid), (100, "shop/replay-one", "one"));
    assert_eq!(index.was_sent(&at(100)).map(|seen| seen.uid.to_string()), Some("two".into()));
    assert_eq!((index.was_sent(&at(11)), index.was_sent(&at(77))), (None, None));
    assert_eq!(index.was_uncertain(&at(12)).map(|seen| seen.uid.to_string()), Some("two".into()));
    assert_eq!(index.was_uncertain(&at(10)), None);
    let back = index.came_back_from(&at(101)).map(|seen| seen.uid.to_string());
    assert_eq!((back, index.came_back_from(&at(10))), (Some("one".into()), None));
    let attempts = [100, 101, 200, 203, 10, 500].map(|offset| index.attempt_of(&at(offset)));
    assert_eq!(attempts, [1, 1, 2, 2, 0, 0]);

    let current = BTreeMap::from([("orders".to_owned(), TopicId::from_u128(2))]);
    let index = history.index_of_current("g", &current);
    assert_eq!((index.was_sent(&at(10)), index.attempt_of(&at(200))), (None, 0));
}

fn any_sets() -> impl Strategy<Value = PartitionSets> {
    btree_map(0..20i32, vec(0..500i64, 0..30).prop_map(OffsetSet::from_iter), 0..4)
}

fn any_move() -> impl Strategy<Value = Move> {
    (0..9i32, vec(0..500i64, 0..20), ".{0,9}", any::<u128>(), 1..4u32).prop_map(
        |(partition, of, topic, id, attempt)| {
            let set = OffsetSet::from_iter(of);
            Move {
                letter_partition: partition,
                letters: set.clone(),
                source: TopicPartition::new(&topic, partition),
                source_id: TopicId::from_u128(id),
                source_offsets: set.clone(),
                target: TopicPartition::new(topic, partition + 1),
                target_id: TopicId::from_u128(id / 2),
                target_offsets: set,
                attempt,
            }
        },
    )
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let text = || ".{0,12}";
    let claim = (text(), text(), any::<u64>(), any::<i64>())
        .prop_map(|(operator, installation, term, at)| Entry::Claim(Claim { operator, installation, term, at }));
    let start =
        (text(), text(), option::of(text()), any_sets(), any::<i64>()).prop_map(|(uid, name, reason, selected, at)| {
            Entry::Start(Start { name, requested_by: reason.clone(), reason, selected, at, ..start(&uid, "g") })
        });
    let target = (text(), any::<u128>(), 0..9i32, any::<i64>()).prop_map(|(topic, id, partition, end_offset)| {
        IntentTarget { topic, id: TopicId::from_u128(id), partition, end_offset }
    });
    let intent = (text(), any::<u32>(), any_sets(), vec(target, 0..3)).prop_map(|(uid, step, letters, targets)| {
        Entry::Intent(Intent { uid, step, size: 9, letters, targets, at: 3 })
    });
    let outcome = (text(), any::<u32>(), any::<u32>(), vec(any_move(), 0..3))
        .prop_map(|(uid, step, slice, moves)| Entry::Outcome(Outcome { uid, step, slice, moves, at: 3 }));
    let uncertain =
        (text(), any::<u32>(), vec(any_move(), 0..3), any_sets()).prop_map(|(uid, step, moves, unlocated)| {
            Entry::Uncertain(Uncertain { uid, step, number: 2, moves, unlocated, at: 3 })
        });
    let release = (text(), any::<i64>()).prop_map(|(uid, at)| Entry::Release(Release { uid, at }));
    let end = (text(), text(), text(), btree_map(text(), any::<u64>(), 0..3), any::<i64>())
        .prop_map(|(uid, reason, message, counts, at)| Entry::End(End { uid, reason, message, counts, at }));
    prop_oneof![claim, start, intent, outcome, uncertain, release, end]
}

proptest! {
    #[test]
    fn every_entry_is_read_as_it_was_written(entry in any_entry(), dlq in any::<u128>()) {
        let dlq = TopicId::from_u128(dlq);
        let (key, value) = (entry.key(dlq), codec::encode(&entry));
        prop_assert_eq!(codec::decode(dlq, Some(key.as_bytes()), Some(&value)).unwrap(), Some(entry));
    }

    /// Slices in any cut: each letter is either sent or open, and each target offset leads back to its own letter.
    #[test]
    fn sent_and_open_make_up_the_intent(cuts in vec(1..9i64, 1..8), committed in 0..8usize) {
        let letters: i64 = cuts.iter().sum();
        let mut entries = vec![Entry::Start(start("u", "g")), Entry::Intent(intent("u", 1, &format!("0-{}", letters - 1)))];
        let (mut letter, mut target) = (0, 1000);
        for (slice, cut) in cuts.iter().enumerate().take(committed) {
            let of = format!("{letter}-{}", letter + cut - 1);
            let moves = vec![sent(&of, &of, &format!("{target}-{}", target + cut - 1), 1)];
            entries.push(Entry::Outcome(outcome("u", 1, slice as u32, moves)));
            // A marker follows each slice.
            (letter, target) = (letter + cut, target + cut + 1);
        }
        let history = history(entries);
        let replay = &history.replays["u"];
        let sent: u64 = replay.sent().values().map(OffsetSet::len).sum();
        let open: u64 = replay.open_letters().values().map(OffsetSet::len).sum();
        prop_assert_eq!((sent, sent + open), (letter as u64, letters as u64));
        let found: Vec<i64> = (1000..target)
            .filter_map(|offset| replay.find_target(&Coordinates::new("orders", 3, offset)))
            .map(|(_, letter, _)| letter)
            .collect();
        prop_assert_eq!(found, (0..letter).collect::<Vec<_>>());
    }
}
