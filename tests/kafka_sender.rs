//! Sending in transactions to a real broker: what arrives, what does not, and who is cut off.

use crate::kafka_tools::{Topic, offsets};
use crate::support::Kafka;
use redrive::kafka::Isolation::{ReadCommitted, ReadUncommitted};
use redrive::kafka::record::Header;
use redrive::kafka::sender::{Acknowledged, Outgoing, SendError, Sender};
use redrive::kafka::settings::Settings;
use std::time::{Duration, Instant};

async fn settings() -> Settings {
    Kafka::shared().await.settings()
}

fn id() -> String {
    format!("redrive.test.{}", uuid::Uuid::new_v4())
}

fn outgoing(topic: &Topic, partition: i32, value: &str) -> Outgoing {
    let value = Some(value.as_bytes().to_vec());
    Outgoing { topic: topic.name.clone(), partition, key: None, value, headers: Vec::new() }
}

fn nothing(_: &[Acknowledged]) -> Vec<Outgoing> {
    Vec::new()
}

fn header(key: &[u8], value: Option<&[u8]>) -> Header {
    Header { key: key.to_vec(), value: value.map(<[u8]>::to_vec) }
}

/// Every way in which a record's bytes could come out other than they went in.
fn peculiar(topic: &Topic) -> Vec<Outgoing> {
    let every_byte: Vec<u8> = (0..=255).collect();
    let parts: [Option<&[u8]>; 4] = [None, Some(b""), Some(b"text"), Some(&every_byte)];
    let headers = vec![
        header(b"b", Some(b"2")),
        header(b"a", Some(b"1")),
        header(b"b", None),
        header(b"b", Some(b"")),
        header(b"", Some(b"no key")),
        header(b"\xff\xfe", Some(&every_byte)),
        header("\u{e4}".as_bytes(), Some("\u{df}".as_bytes())),
    ];
    let mut records = Vec::new();
    for (key, value) in parts.iter().flat_map(|key| parts.iter().map(move |value| (key, value))) {
        for headers in [Vec::new(), headers.clone()] {
            let (key, value) = (key.map(<[u8]>::to_vec), value.map(<[u8]>::to_vec));
            records.push(Outgoing { topic: topic.name.clone(), partition: 2, key, value, headers });
        }
    }
    records
}

#[tokio::test]
async fn records_arrive_byte_by_byte_and_in_order() {
    let topic = Topic::create(&settings().await, "exact", 3, &[]).await;
    let sender = Sender::own(&topic.settings, &id()).await.unwrap();
    let records = peculiar(&topic);
    let (_, sent, _) = sender.transact(records.clone(), nothing).await.unwrap();
    assert!(sent.iter().all(|ack| *ack.topic == *topic.name && ack.partition == 2));
    assert!(sent.iter().enumerate().all(|(index, ack)| ack.offset == index as i64));

    let seen = topic.read_all(2, ReadCommitted).await;
    assert_eq!(seen.len(), records.len());
    for (record, sent) in seen.into_iter().zip(records) {
        assert_eq!((record.key, record.value, record.headers), (sent.key, sent.value, sent.headers));
    }
}

#[tokio::test]
async fn the_closing_records_are_in_the_same_transaction() {
    let topic = Topic::create(&settings().await, "closing", 2, &[]).await;
    let sender = Sender::own(&topic.settings, &id()).await.unwrap();
    let mut sender = Some(sender);
    for round in 0..3i64 {
        let records = (0..100).map(|number| outgoing(&topic, 0, &format!("{round}/{number}"))).collect();
        let ledger = topic.name.clone();
        let closing = move |acks: &[Acknowledged]| {
            let offsets: Vec<i64> = acks.iter().map(|ack| ack.offset).collect();
            let value = Some(format!("{offsets:?}").into_bytes());
            vec![Outgoing { topic: ledger, partition: 1, key: None, value, headers: Vec::new() }]
        };
        let (again, sent, closed) = sender.take().unwrap().transact(records, closing).await.unwrap();
        sender = Some(again);
        let seen = topic.read_all(0, ReadCommitted).await;
        let last: Vec<i64> = offsets(&seen).split_off(100 * round as usize);
        assert_eq!(last, sent.iter().map(|ack| ack.offset).collect::<Vec<_>>());
        let entries = topic.read_all(1, ReadCommitted).await;
        assert_eq!(offsets(&entries).last(), Some(&closed[0].offset));
        assert_eq!(entries.last().unwrap().value, Some(format!("{last:?}").into_bytes()));
    }
}

#[tokio::test]
async fn a_transaction_that_fails_leaves_nothing_committed() {
    let topic = Topic::create(&settings().await, "refused", 2, &[("max.message.bytes", "300000")]).await;
    let id = id();
    let sender = Sender::own(&topic.settings, &id).await.unwrap();
    let mut records: Vec<_> = (0..500).map(|number| outgoing(&topic, number % 2, "small")).collect();
    records.insert(123, outgoing(&topic, 1, &"x".repeat(400_000)));
    let error = sender.transact(records, nothing).await.err().unwrap();
    assert!(matches!(&error, SendError::Refuse { index: 123, .. }), "{error}");
    assert!(!error.is_fenced());

    // The next owner's start ends what the failed one left open.
    let sender = Sender::own(&topic.settings, &id).await.unwrap();
    assert!(topic.read_all(0, ReadCommitted).await.is_empty());
    assert!(topic.read_all(1, ReadCommitted).await.is_empty());
    let (_, sent, _) = sender.transact(vec![outgoing(&topic, 0, "again")], nothing).await.unwrap();
    assert_eq!(offsets(&topic.read_all(0, ReadCommitted).await), [sent[0].offset]);
}

#[tokio::test]
async fn a_record_that_a_topic_refuses_is_no_fencing() {
    let topic = Topic::create(&settings().await, "nameless", 2, &[("cleanup.policy", "compact")]).await;
    let sender = Sender::own(&topic.settings, &id()).await.unwrap();
    let keyed = |partition: i32| Outgoing { key: (partition == 0).then(|| vec![1]), ..outgoing(&topic, partition, "") };
    let error = sender.transact(vec![keyed(0), keyed(0), keyed(1)], nothing).await.err().unwrap();
    assert_eq!((error.refused_record(), error.is_fenced()), (Some(2), false), "{error}");
}

#[tokio::test]
async fn a_missing_target_is_refused_in_time() {
    let mut topic = Topic::create(&settings().await, "missing", 1, &[]).await;
    let sender = Sender::own(&topic.settings, &id()).await.unwrap();
    let error = sender.transact(vec![outgoing(&topic, 5, "value")], nothing).await.err().unwrap();
    assert_eq!(error.refused_record(), Some(0), "{error}");
    topic.name.push_str(".never");
    let since = Instant::now();
    let sender = Sender::own(&topic.settings, &id()).await.unwrap();
    let error = sender.transact(vec![outgoing(&topic, 0, "value")], nothing).await.err().unwrap();
    assert!(!error.is_fenced() && since.elapsed() < Duration::from_secs(20), "{error} after {:?}", since.elapsed());
}

/// Waits, in the middle of a transaction whose records are acknowledged, until told to go on.
fn held(
    reached: std::sync::mpsc::Sender<()>,
    go: std::sync::mpsc::Receiver<()>,
    closing: Vec<Outgoing>,
) -> impl FnOnce(&[Acknowledged]) -> Vec<Outgoing> + Send + 'static {
    move |_| {
        reached.send(()).unwrap();
        go.recv().unwrap();
        closing
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_cut_off_by_the_next_in_mid_transaction() {
    let topic = Topic::create(&settings().await, "fenced", 2, &[]).await;
    let id = id();
    for closing in [vec![outgoing(&topic, 1, "entry")], Vec::new()] {
        let first = Sender::own(&topic.settings, &id).await.unwrap();
        let (reached, is_reached) = std::sync::mpsc::channel();
        let (go, may_go) = std::sync::mpsc::channel();
        let records = vec![outgoing(&topic, 0, "of the first")];
        let before = topic.end(0);
        let first = tokio::spawn(first.transact(records, held(reached, may_go, closing)));
        tokio::task::spawn_blocking(move || is_reached.recv().unwrap()).await.unwrap();
        assert_eq!(topic.end(0), before + 1, "it has arrived");

        let second = Sender::own(&topic.settings, &id).await.unwrap();
        go.send(()).unwrap();
        let error = first.await.unwrap().err().unwrap();
        assert!(error.is_fenced(), "{error}");

        let (_, sent, _) = second.transact(vec![outgoing(&topic, 0, "of the second")], nothing).await.unwrap();
        assert!(topic.read_all(0, ReadUncommitted).await.iter().any(|record| record.offset == before));
        let committed = offsets(&topic.read_all(0, ReadCommitted).await);
        assert!(!committed.contains(&before) && committed.contains(&sent[0].offset), "{committed:?}");
        assert!(topic.read_all(1, ReadCommitted).await.is_empty());
    }
}

#[tokio::test]
async fn an_owner_that_was_cut_off_between_transactions_sends_nothing_more() {
    let topic = Topic::create(&settings().await, "fenced", 1, &[]).await;
    let id = id();
    let first = Sender::own(&topic.settings, &id).await.unwrap();
    let (first, sent, _) = first.transact(vec![outgoing(&topic, 0, "early")], nothing).await.unwrap();
    let _second = Sender::own(&topic.settings, &id).await.unwrap();
    let error = first.transact(vec![outgoing(&topic, 0, "late")], nothing).await.err().unwrap();
    assert!(error.is_fenced(), "{error}");
    assert_eq!(offsets(&topic.read_all(0, ReadUncommitted).await), [sent[0].offset]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_waits_for_is_not_committed() {
    let topic = Topic::create(&settings().await, "abandoned", 1, &[]).await;
    let id = id();
    let sender = Sender::own(&topic.settings, &id).await.unwrap();
    let (reached, is_reached) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel();
    let sending = tokio::spawn(sender.transact(vec![outgoing(&topic, 0, "value")], held(reached, may_go, Vec::new())));
    tokio::task::spawn_blocking(move || is_reached.recv().unwrap()).await.unwrap();
    sending.abort();
    assert!(sending.await.is_err_and(|error| error.is_cancelled()));
    go.send(()).unwrap();

    Sender::own(&topic.settings, &id).await.unwrap();
    assert_eq!(topic.read_all(0, ReadUncommitted).await.len(), 1);
    assert!(topic.read_all(0, ReadCommitted).await.is_empty());
}

#[tokio::test]
async fn a_large_slice_over_many_partitions_is_one_transaction() {
    let topic = Topic::create(&settings().await, "slice", 8, &[]).await;
    let sender = Sender::own(&topic.settings, &id()).await.unwrap();
    let value = "v".repeat(1000);
    let records: Vec<_> = (0..32_000).map(|number| outgoing(&topic, number % 8, &value)).collect();
    let (_, sent, _) = sender.transact(records, nothing).await.unwrap();
    for partition in 0..8 {
        let acknowledged: Vec<i64> =
            sent.iter().filter(|ack| ack.partition == partition).map(|ack| ack.offset).collect();
        assert_eq!(offsets(&topic.read_all(partition, ReadCommitted).await), acknowledged);
        assert!(acknowledged.iter().copied().eq(0..4000));
    }
}
