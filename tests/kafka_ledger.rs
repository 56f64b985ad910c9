//! The ledger on a real broker: made once, read to its end, and never mistaken for another.

use crate::kafka_tools::in_transaction;
use crate::support::Kafka;
use rdkafka::producer::{BaseRecord, Producer};
use redrive::kafka::admin::Admin;
use redrive::kafka::ledger::{Claim, Entry, Ledger, LedgerError, LedgerSpec, Move, Outcome, Start};
use redrive::kafka::offset_set::{OffsetSet, PartitionSets};
use redrive::kafka::sender::{Outgoing, Sender};
use redrive::kafka::settings::Settings;
use redrive::kafka::{TopicId, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

struct Lab {
    settings: Settings,
    admin: Admin,
    spec: LedgerSpec,
}

async fn lab(partitions: i32) -> Lab {
    let settings = Kafka::shared().await.settings();
    let admin = Admin::connect(&settings);
    let topic = format!("ledger.{}", uuid::Uuid::new_v4().simple());
    Lab { settings, admin, spec: LedgerSpec { topic, partitions, replication_factor: Some(1) } }
}

impl Lab {
    async fn ensure(&self) -> Ledger {
        Ledger::ensure(&self.admin, &self.spec).await.unwrap()
    }

    async fn own(&self, dlq: TopicId) -> Sender {
        Sender::own(&self.settings, &format!("redrive.{}.{dlq}", self.spec.topic)).await.unwrap()
    }
}

async fn write(sender: Sender, ledger: &Ledger, dlq: TopicId, entries: &[Entry]) -> Sender {
    let records: Vec<Outgoing> = entries.iter().map(|entry| entry.outgoing(ledger, dlq)).collect();
    sender.transact(records, |_| Vec::new()).await.unwrap().0
}

fn claim(term: u64) -> Entry {
    Entry::Claim(Claim { operator: "pod".into(), installation: "here".into(), term, at: 5 })
}

fn start(uid: &str) -> Entry {
    Entry::Start(Start {
        uid: uid.into(),
        namespace: "shop".into(),
        name: "again".into(),
        group: "billing".into(),
        token: "token".into(),
        spec_digest: "digest".into(),
        reason: None,
        requested_by: Some("jane".into()),
        strategy: "Canary".into(),
        selected: PartitionSets::from([(0, OffsetSet::from_iter(0..100_000))]),
        topics: BTreeMap::from([("orders".into(), TopicId::from_u128(1))]),
        settling_group: "billing".into(),
        dead_letter_ends: BTreeMap::from([(0, 100_000)]),
        at: 5,
    })
}

fn outcome(uid: &str, step: u32) -> Entry {
    let base = i64::from(step) * 100;
    let of = Move {
        letter_partition: 0,
        letters: OffsetSet::from_iter(base..base + 100),
        source: TopicPartition::new("orders", 1),
        source_id: TopicId::from_u128(1),
        source_offsets: OffsetSet::from_iter((base..base + 100).map(|offset| 3 * offset)),
        target: TopicPartition::new("orders", 1),
        target_id: TopicId::from_u128(1),
        target_offsets: OffsetSet::from_iter(1_000_000 + base..1_000_000 + base + 100),
        attempt: 1,
    };
    Entry::Outcome(Outcome { uid: uid.into(), step, slice: 0, moves: vec![of], at: 5 })
}

#[tokio::test]
async fn the_ledger_is_made_once_and_then_found() {
    let lab = lab(3).await;
    assert_eq!(Ledger::find(&lab.admin, &lab.spec.topic).await.unwrap(), None);
    let (made, at_once) = tokio::join!(Ledger::ensure(&lab.admin, &lab.spec), Ledger::ensure(&lab.admin, &lab.spec));
    let made = made.unwrap();
    assert_eq!(made, at_once.unwrap());
    assert_eq!(Ledger::find(&lab.admin, &lab.spec.topic).await.unwrap(), Some(made.clone()));
    assert_eq!(lab.ensure().await, made);

    let topics = BTreeSet::from([lab.spec.topic.clone()]);
    let configs = lab.admin.topic_configs(&topics).await.unwrap().remove(&lab.spec.topic).unwrap().unwrap();
    assert_eq!(configs.value("cleanup.policy"), Some("compact"));
    assert_eq!(configs.value("unclean.leader.election.enable"), Some("false"));
    assert_eq!(configs.value("min.insync.replicas"), Some("1"));
}

#[tokio::test]
async fn a_topic_that_forgets_is_no_ledger() {
    let lab = lab(1).await;
    let new = redrive::kafka::admin::NewTopic {
        name: lab.spec.topic.clone(),
        partitions: Some(1),
        replication_factor: Some(1),
        configs: [("cleanup.policy".to_owned(), "compact,delete".to_owned())].into(),
    };
    lab.admin.create_topic(&new).await.unwrap();
    let error = Ledger::ensure(&lab.admin, &lab.spec).await.unwrap_err();
    assert!(matches!(&error, LedgerError::TrustTopic { .. }), "{error}");
    assert!(error.to_string().contains("cleanup.policy"), "{error}");
}

#[tokio::test]
async fn what_was_written_is_read_and_nothing_of_others() {
    let lab = lab(3).await;
    let ledger = lab.ensure().await;
    let (ours, others) = (TopicId::from_u128(30), TopicId::from_u128(33));
    assert!(ledger.read(&lab.admin, &lab.settings, ours).await.unwrap().is_empty());

    let sender = lab.own(ours).await;
    let sender = write(sender, &ledger, ours, &[claim(2), start("a")]).await;
    let other = write(lab.own(others).await, &ledger, others, &[claim(9), start("b")]).await;
    let sender = write(sender, &ledger, ours, &[outcome("a", 1), outcome("a", 2)]).await;
    drop((sender, other));

    let history = ledger.read(&lab.admin, &lab.settings, ours).await.unwrap();
    assert_eq!(history.claim.as_ref().map(|claim| claim.term), Some(2));
    assert_eq!(history.replays.keys().collect::<Vec<_>>(), ["a"]);
    let replay = &history.replays["a"];
    assert_eq!(replay.start.as_ref().map(|start| Entry::Start(start.clone())), Some(start("a")));
    assert_eq!(replay.sent()[&0].to_ranges(), "100-299");
}

#[tokio::test]
async fn an_entry_of_several_mebibytes_is_kept() {
    let lab = lab(1).await;
    let ledger = lab.ensure().await;
    let dlq = TopicId::from_u128(1);
    let scattered = OffsetSet::from_iter((0..40_000_000i64).filter(|offset| offset.wrapping_mul(0x9e37_79b9) % 7 < 3));
    let Entry::Start(mut frozen) = start("large") else { unreachable!() };
    frozen.selected = PartitionSets::from([(0, scattered)]);
    let frozen = Entry::Start(frozen);
    let size = frozen.outgoing(&ledger, dlq).value.unwrap().len();
    assert!(size > 5 << 20, "{size} bytes");
    write(lab.own(dlq).await, &ledger, dlq, std::slice::from_ref(&frozen)).await;
    let history = ledger.read(&lab.admin, &lab.settings, dlq).await.unwrap();
    assert_eq!(history.replays["large"].start.clone().map(Entry::Start), Some(frozen));
}

#[tokio::test]
async fn a_ledger_of_ten_thousand_entries_is_read_in_time() {
    let lab = lab(2).await;
    let ledger = lab.ensure().await;
    let dlq = TopicId::from_u128(2);
    let entries: Vec<Entry> = (0..10_000).map(|step| outcome("a", step)).collect();
    let mut sender = lab.own(dlq).await;
    sender = write(sender, &ledger, dlq, &[start("a")]).await;
    for slice in entries.chunks(100) {
        sender = write(sender, &ledger, dlq, slice).await;
    }
    let since = Instant::now();
    let history = ledger.read(&lab.admin, &lab.settings, dlq).await.unwrap();
    let took = since.elapsed();
    assert_eq!(history.replays["a"].outcomes.len(), 10_000);
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_successor_reads_what_its_predecessor_left_and_not_what_it_left_open() {
    let lab = lab(1).await;
    let ledger = lab.ensure().await;
    let dlq = TopicId::from_u128(3);
    let first = write(lab.own(dlq).await, &ledger, dlq, &[claim(1), start("a")]).await;
    // The first is stopped in the middle of a transaction, and has the second's start end it.
    let (reached, is_reached) = tokio::sync::oneshot::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let open = vec![outcome("a", 1).outgoing(&ledger, dlq)];
    let first = tokio::spawn(first.transact(open, move |_| {
        reached.send(()).unwrap();
        may_go.recv().unwrap();
        Vec::new()
    }));
    is_reached.await.unwrap();
    let second = lab.own(dlq).await;
    let history = ledger.read(&lab.admin, &lab.settings, dlq).await.unwrap();
    assert_eq!(history.claim.map(|claim| claim.term), Some(1));
    assert!(history.replays["a"].outcomes.is_empty());
    go.send(()).unwrap();
    assert!(first.await.unwrap().err().unwrap().is_fenced());
    write(second, &ledger, dlq, &[claim(2)]).await;
    assert_eq!(ledger.read(&lab.admin, &lab.settings, dlq).await.unwrap().claim.map(|claim| claim.term), Some(2));
}

#[tokio::test]
async fn reading_waits_for_open_transactions_of_others() {
    let lab = lab(1).await;
    let ledger = lab.ensure().await;
    let (ours, others) = (TopicId::from_u128(4), TopicId::from_u128(5));
    let other = in_transaction(&lab.settings, "ledger");
    let entry = claim(1).outgoing(&ledger, others);
    let (key, value) = (entry.key.unwrap(), entry.value.unwrap());
    other.send(BaseRecord::to(&ledger.topic).partition(0).key(&key).payload(&value)).unwrap();
    other.flush(Duration::from_secs(10)).unwrap();
    write(lab.own(ours).await, &ledger, ours, &[claim(7)]).await;

    let commit = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.commit_transaction(Duration::from_secs(10)).unwrap();
    };
    let (history, ()) = tokio::join!(ledger.read(&lab.admin, &lab.settings, ours), commit);
    assert_eq!(history.unwrap().claim.map(|claim| claim.term), Some(7));
}

#[tokio::test]
async fn a_ledger_made_anew_is_noticed() {
    let lab = lab(1).await;
    let ledger = lab.ensure().await;
    lab.admin.delete_topic(&lab.spec.topic).await.unwrap();
    let again = lab.ensure().await;
    assert_ne!(again.id, ledger.id);
    let error = ledger.read(&lab.admin, &lab.settings, TopicId::nil()).await.unwrap_err();
    assert!(matches!(error, LedgerError::KeepTopic { .. }), "{error}");
}

#[tokio::test]
async fn what_is_no_entry_is_an_error_that_says_where() {
    let lab = lab(1).await;
    let ledger = lab.ensure().await;
    let dlq = TopicId::from_u128(6);
    let mut strange = claim(1).outgoing(&ledger, dlq);
    strange.value = Some(b"{\"v\":2,\"kind\":\"claim\",\"entry\":{}}".to_vec());
    let (sender, sent, _) = lab.own(dlq).await.transact(vec![strange], |_| Vec::new()).await.unwrap();
    drop(sender);
    let error = ledger.read(&lab.admin, &lab.settings, dlq).await.unwrap_err();
    assert!(matches!(&error, LedgerError::DecodeEntry { at, .. } if at.offset == sent[0].offset), "{error}");
}
