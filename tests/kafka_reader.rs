//! Reading spans and single records off a real broker, where the log is not as plain as it could be.

use crate::kafka_tools::{Topic, collect, groups, in_transaction, offsets, values};
use crate::support::Kafka;
use rdkafka::producer::Producer;
use redrive::kafka::Isolation::{ReadCommitted, ReadUncommitted};
use redrive::kafka::reader::{Fetcher, Order, ReadError, Reader};
use redrive::kafka::settings::Settings;
use redrive::kafka::{Coordinates, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const COMPACT_AT_ONCE: [(&str, &str); 5] = [
    ("cleanup.policy", "compact"),
    ("segment.ms", "100"),
    ("min.cleanable.dirty.ratio", "0.001"),
    ("min.compaction.lag.ms", "0"),
    ("max.compaction.lag.ms", "100"),
];

async fn settings() -> Settings {
    Kafka::shared().await.settings()
}

#[tokio::test]
async fn spans_that_end_in_transaction_markers_end() {
    let topic = Topic::create(&settings().await, "markers", 1, &[]).await;
    let committed = in_transaction(&topic.settings, "markers");
    topic.send(&committed, 0, 0..5);
    committed.commit_transaction(Duration::from_secs(10)).unwrap();
    let aborted = in_transaction(&topic.settings, "markers");
    topic.send(&aborted, 0, 5..10);
    aborted.abort_transaction(Duration::from_secs(10)).unwrap();

    assert_eq!(topic.end(0), 12);
    let seen = topic.read_all(0, ReadUncommitted).await;
    assert_eq!(offsets(&seen), [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]);
    let seen = topic.read_all(0, ReadCommitted).await;
    assert_eq!(offsets(&seen), [0, 1, 2, 3, 4]);
    // Nothing but a marker; nothing at all; the middle of a batch.
    for (from, until, expected) in [(11, 12, vec![]), (5, 6, vec![]), (3, 3, vec![]), (2, 7, vec![2, 3, 4, 6])] {
        let seen = topic.read(topic.span(0, from, until), ReadUncommitted).await.unwrap();
        assert_eq!(offsets(&seen), expected, "{from} to {until}");
    }
}

#[tokio::test]
async fn committed_spans_wait_for_open_transactions() {
    let topic = Topic::create(&settings().await, "open", 1, &[]).await;
    topic.send(&topic.producer(&[]), 0, 0..2);
    let open = in_transaction(&topic.settings, "open");
    topic.send(&open, 0, 2..4);

    let read = topic.read(topic.span(0, 0, 4), ReadCommitted);
    let commit = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        open.commit_transaction(Duration::from_secs(10)).unwrap();
    };
    let (seen, ()) = tokio::join!(read, commit);
    assert_eq!(offsets(&seen.unwrap()), [0, 1, 2, 3]);
}

#[tokio::test]
async fn silence_is_an_error_that_names_the_place() {
    let topic = Topic::create(&settings().await, "silence", 2, &[]).await;
    topic.send(&topic.producer(&[]), 1, 0..2);
    let spans = topic.span(1, 0, 5);
    let (name, patience) = (&topic.name, Duration::from_secs(1));
    let reader = Reader::open_patiently(&topic.settings, name, spans, ReadUncommitted, Order::ByPartition, patience);
    let mut reader = reader.unwrap();
    assert_eq!(offsets(&reader.next_batch().await.unwrap().unwrap()), [0, 1]);
    let error = reader.next_batch().await.unwrap().unwrap_err();
    assert!(matches!(&error, ReadError::AwaitRecords { at, .. } if *at == Coordinates::new(name, 1, 2)), "{error}");
    assert!(reader.next_batch().await.is_none());
}

#[tokio::test]
async fn compacted_offsets_are_passed_over() {
    let topic = Topic::create(&settings().await, "compacted", 1, &COMPACT_AT_ONCE).await;
    let producer = topic.producer(&[]);
    // The same ten keys again and again: only the last ones stay. The newest segment is never compacted, so one follows.
    (0..5).for_each(|_| topic.send(&producer, 0, 0..10));
    tokio::time::sleep(Duration::from_millis(300)).await;
    topic.send(&producer, 0, 10..11);

    let since = Instant::now();
    let mut seen = topic.read_all(0, ReadUncommitted).await;
    while seen.len() > 11 && since.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(500)).await;
        seen = topic.read_all(0, ReadUncommitted).await;
    }
    assert_eq!(offsets(&seen), [40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50]);
    let gap = topic.read(topic.span(0, 5, 40), ReadUncommitted).await.unwrap();
    assert!(gap.is_empty(), "{gap:?}");

    let mut fetcher = Fetcher::new(&topic.settings).unwrap();
    let found = fetcher.fetch(&coordinates(&topic, [3, 39, 40, 50])).await.unwrap();
    assert_eq!(found.keys().map(|at| at.offset).collect::<Vec<_>>(), [40, 50]);
}

#[tokio::test]
async fn deleted_records_are_an_error_for_a_span() {
    let topic = Topic::create(&settings().await, "deleted", 1, &[]).await;
    topic.send(&topic.producer(&[]), 0, 0..10);
    topic.delete_before(0, 5).await;
    let error = topic.read(topic.span(0, 2, 10), ReadUncommitted).await.unwrap_err();
    assert!(matches!(&error, ReadError::FindOffset { at } if at.offset == 2), "{error}");
    assert_eq!(offsets(&topic.read(topic.span(0, 5, 10), ReadUncommitted).await.unwrap()), [5, 6, 7, 8, 9]);
}

#[tokio::test]
async fn records_deleted_while_reading_are_an_error() {
    let topic = Topic::create(&settings().await, "overtaken", 1, &[]).await;
    let producer = topic.producer(&[]);
    topic.send(&producer, 0, 0..400_000);
    let mut reader =
        Reader::open(&topic.settings, &topic.name, topic.span(0, 0, 400_000), ReadUncommitted, Order::ByPartition)
            .unwrap();
    let mut next = 0;
    let mut error = None;
    while let Some(batch) = reader.next_batch().await {
        match batch {
            Ok(records) => {
                assert!(records.iter().zip(next..).all(|(record, expected)| record.offset == expected));
                if next == 0 {
                    // Let it read ahead as far as it wants, then take the rest away.
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    topic.delete_before(0, 399_999).await;
                }
                next += records.len() as i64;
            }
            Err(found) => error = Some(found),
        }
    }
    assert!(matches!(&error, Some(ReadError::FindOffset { at }) if at.offset == next), "{error:?} after {next}");
}

#[tokio::test]
async fn a_topic_that_does_not_exist_is_an_error() {
    let mut topic = Topic::create(&settings().await, "vanished", 1, &[]).await;
    let since = Instant::now();
    let error = topic.read(topic.span(7, 0, 5), ReadUncommitted).await.unwrap_err();
    assert!(matches!(&error, ReadError::FindTopic { at } if at.partition == 7), "{error}");

    topic.name.push_str(".never");
    let error = topic.read(topic.span(0, 0, 5), ReadUncommitted).await.unwrap_err();
    assert!(matches!(&error, ReadError::FindTopic { .. }), "{error}");
    let mut fetcher = Fetcher::new(&topic.settings).unwrap();
    let error = fetcher.fetch(&coordinates(&topic, [0])).await.unwrap_err();
    assert!(matches!(&error, ReadError::FindTopic { .. }), "{error}");
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_topic_that_vanishes_while_it_is_read_is_an_error() {
    let topic = Topic::create(&settings().await, "vanishing", 1, &[]).await;
    topic.send(&topic.producer(&[]), 0, 0..10);
    let mut reader =
        Reader::open(&topic.settings, &topic.name, topic.span(0, 0, 20), ReadUncommitted, Order::ByPartition).unwrap();
    assert_eq!(reader.next_batch().await.unwrap().unwrap().len(), 10);
    topic.delete().await;
    let error = reader.next_batch().await.unwrap().unwrap_err();
    assert!(matches!(&error, ReadError::FindTopic { at } if at.offset == 10), "{error}");
}

#[tokio::test]
async fn partitions_are_merged_by_time() {
    let topic = Topic::create(&settings().await, "merged", 3, &[]).await;
    let producer = topic.producer(&[]);
    let ends = [3000usize, 2000, 1];
    // Partition 1 goes back in time in its middle: its order by offset is kept all the same.
    topic.send_at(&producer, 0, 0..ends[0], |number| 1_000_000 + 3 * number as i64);
    topic.send_at(&producer, 1, 0..ends[1], |number| {
        1_000_001 + 5 * number as i64 - if number > 1000 { 700 } else { 0 }
    });
    topic.send_at(&producer, 2, 0..ends[2], |_| 1_000_500);

    let spans: Vec<Span> = (0..3).flat_map(|partition| topic.span(partition, 0, topic.end(partition))).collect();
    let reader = Reader::open(&topic.settings, &topic.name, spans, ReadUncommitted, Order::ByTime).unwrap();
    let seen = collect(reader).await.unwrap();
    assert_eq!(seen.len(), ends.iter().sum::<usize>());

    let mut rest: BTreeMap<i32, Vec<(i64, i64)>> = BTreeMap::new();
    for record in seen.iter().rev() {
        rest.entry(record.partition).or_default().push((record.offset, record.timestamp));
    }
    for records in rest.values() {
        assert!(records.iter().rev().enumerate().all(|(index, (offset, _))| *offset == index as i64));
    }
    for record in &seen {
        let oldest = rest.values().filter_map(|records| records.last()).map(|(_, timestamp)| *timestamp).min();
        assert_eq!(Some(record.timestamp), oldest, "{}-{}", record.partition, record.offset);
        rest.get_mut(&record.partition).unwrap().pop();
    }
}

#[tokio::test]
async fn several_spans_of_a_partition_are_read_once() {
    let topic = Topic::create(&settings().await, "spans", 1, &[]).await;
    topic.send(&topic.producer(&[]), 0, 0..20_000);
    let mut spans = topic.span(0, 15_000, 15_003);
    spans.extend(topic.span(0, 2, 4));
    spans.extend(topic.span(0, 3, 5));
    spans.extend(topic.span(0, 100, 101));
    spans.extend(topic.span(0, 19_999, 20_000));
    for order in [Order::ByPartition, Order::ByTime] {
        let reader = Reader::open(&topic.settings, &topic.name, spans.clone(), ReadUncommitted, order).unwrap();
        let seen = collect(reader).await.unwrap();
        assert_eq!(offsets(&seen), [2, 3, 4, 100, 15_000, 15_001, 15_002, 19_999]);
    }
}

#[tokio::test]
async fn single_records_are_found_in_batches_of_every_codec() {
    let settings = settings().await;
    let mut wanted = BTreeSet::new();
    let mut expected = BTreeSet::new();
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let topic = Topic::create(&settings, &format!("codec.{codec}"), 2, &[]).await;
        let producer = topic.producer(&[("compression.type", codec), ("linger.ms", "50")]);
        topic.send(&producer, 1, 0..3000);
        for offset in [0, 1, 2, 700, 1500, 2999, 3000, 1_000_000] {
            wanted.insert(Coordinates::new(&topic.name, 1, offset));
            expected.extend((offset < 3000).then(|| Coordinates::new(&topic.name, 1, offset)));
        }
        wanted.insert(Coordinates::new(&topic.name, 0, 0));
    }
    let mut fetcher = Fetcher::new(&settings).unwrap();
    for _ in 0..2 {
        let found = fetcher.fetch(&wanted).await.unwrap();
        assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), expected);
        for (at, record) in found {
            let (key, value) = crate::kafka_tools::numbered(at.offset as usize);
            assert_eq!((record.partition, record.offset), (1, at.offset));
            assert_eq!(record.key, Some(key.into_bytes()));
            assert_eq!(record.value, Some(value.into_bytes()));
            assert_eq!(record.header("number"), Some(at.offset.to_string().as_bytes()));
        }
    }
}

#[tokio::test]
async fn single_records_are_found_in_transactions_even_aborted_ones() {
    let topic = Topic::create(&settings().await, "transactional", 1, &[]).await;
    let committed = in_transaction(&topic.settings, "fetch");
    topic.send(&committed, 0, 0..3);
    committed.commit_transaction(Duration::from_secs(10)).unwrap();
    let aborted = in_transaction(&topic.settings, "fetch");
    topic.send(&aborted, 0, 3..6);
    aborted.abort_transaction(Duration::from_secs(10)).unwrap();
    let open = in_transaction(&topic.settings, "fetch");
    topic.send(&open, 0, 6..7);

    let mut fetcher = Fetcher::new(&topic.settings).unwrap();
    let found = fetcher.fetch(&coordinates(&topic, 0..12)).await.unwrap();
    assert_eq!(found.keys().map(|at| at.offset).collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6, 8]);
    open.abort_transaction(Duration::from_secs(10)).unwrap();
}

#[tokio::test]
async fn single_records_that_were_deleted_are_absent() {
    let topic = Topic::create(&settings().await, "gone", 1, &[]).await;
    topic.send(&topic.producer(&[]), 0, 0..10);
    topic.delete_before(0, 5).await;
    let mut fetcher = Fetcher::new(&topic.settings).unwrap();
    let found = fetcher.fetch(&coordinates(&topic, [1, 2, 6, 40])).await.unwrap();
    assert_eq!(found.keys().map(|at| at.offset).collect::<Vec<_>>(), [6]);
    topic.delete_before(0, 10).await;
    assert!(fetcher.fetch(&coordinates(&topic, [1, 6, 9])).await.unwrap().is_empty());
    assert!(fetcher.fetch(&BTreeSet::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn scattered_records_are_found_one_and_all() {
    let topic = Topic::create(&settings().await, "scattered", 3, &[]).await;
    let producer = topic.producer(&[("compression.type", "lz4")]);
    (0..3).for_each(|partition| topic.send(&producer, partition, 0..30_000));
    let mut wanted = BTreeSet::new();
    for (partition, stride) in [(0, 1), (1, 7), (2, 4999)] {
        let offsets = (partition..30_000).step_by(stride);
        wanted.extend(offsets.map(|offset| Coordinates::new(&topic.name, partition, offset as i64)));
    }
    let mut fetcher = Fetcher::new(&topic.settings).unwrap();
    let found = fetcher.fetch(&wanted).await.unwrap();
    assert!(found.keys().eq(wanted.iter()));
    assert!(found.iter().all(|(at, record)| values(std::slice::from_ref(record)) == [format!("value-{}", at.offset)]));
}

#[tokio::test]
async fn reading_leaves_no_group_behind() {
    let topic = Topic::create(&settings().await, "groupless", 1, &[]).await;
    topic.send(&topic.producer(&[]), 0, 0..10);
    let before = groups(&topic.settings);
    topic.read_all(0, ReadCommitted).await;
    let mut fetcher = Fetcher::new(&topic.settings).unwrap();
    fetcher.fetch(&coordinates(&topic, [3])).await.unwrap();
    let ours: Vec<_> = groups(&topic.settings).into_iter().filter(|group| !before.contains(group)).collect();
    assert!(ours.iter().all(|group| !group.contains("redrive")), "{ours:?}");
}

#[tokio::test]
async fn nothing_to_read_asks_no_broker() {
    let nowhere = Settings::plaintext("127.0.0.1:1");
    let spans = vec![Span { partition: 0, from: 3, until: 3 }];
    let reader = Reader::open(&nowhere, "any", spans, ReadCommitted, Order::ByTime).unwrap();
    assert!(collect(reader).await.unwrap().is_empty());
}

fn coordinates(topic: &Topic, offsets: impl IntoIterator<Item = i64>) -> BTreeSet<Coordinates> {
    offsets.into_iter().map(|offset| Coordinates::new(&topic.name, 0, offset)).collect()
}
