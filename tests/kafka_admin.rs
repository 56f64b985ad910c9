//! Asking and changing a real Kafka: what the wire client reads is what the broker and librdkafka's clients have done.

use crate::support::Kafka;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use redrive::kafka::admin::{Admin, AdminError, ConfigChange, ConfigSource, NewTopic, OffsetSpec, TopicLookup};
use redrive::kafka::settings::Settings;
use redrive::kafka::share_groups::{GroupKind, Reader};
use redrive::kafka::{Isolation, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use uuid::Uuid;

const SECOND: Duration = Duration::from_secs(1);

async fn settings() -> Settings {
    Kafka::shared().await.settings()
}

async fn admin() -> Admin {
    Admin::connect(&settings().await)
}

fn unique(name: &str) -> String {
    format!("{name}-{}", Uuid::new_v4().simple())
}

fn set(name: &str) -> BTreeSet<String> {
    BTreeSet::from([name.to_string()])
}

async fn make_topic(admin: &Admin, partitions: i32) -> String {
    let name = unique("admin");
    let new = NewTopic {
        name: name.clone(),
        partitions: Some(partitions),
        replication_factor: None,
        configs: BTreeMap::new(),
    };
    admin.create_topic(&new).await.unwrap();
    name
}

/// Looks until `found` gives something, as brokers learn of a change one after the other.
async fn wait_for<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    let began = Instant::now();
    loop {
        match look().await {
            Some(found) => return found,
            None => assert!(began.elapsed() < 30 * SECOND, "waited 30 s in vain"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_cluster_tells_its_brokers_features_and_their_settings() {
    let admin = admin().await;
    let cluster = admin.cluster().await.unwrap();
    assert!(!cluster.id.is_empty() && !cluster.brokers.is_empty());
    assert_eq!(cluster.share_version, 2);
    let configs = admin.broker_configs(&["errors.deadletterqueue.topic.name.prefix"]).await.unwrap();
    assert!(configs.keys().copied().eq(cluster.brokers.iter().map(|broker| broker.id)));
    assert!(
        configs.values().all(|c| c.0.len() == 1 && c.value("errors.deadletterqueue.topic.name.prefix") == Some("dlq."))
    );
}

#[tokio::test]
async fn topics_are_created_looked_up_grown_and_deleted() {
    let admin = admin().await;
    let name = unique("dlq.admin");
    let consent = ("errors.deadletterqueue.group.enable".to_string(), "true".to_string());
    let new = NewTopic {
        name: name.clone(),
        partitions: Some(2),
        replication_factor: None,
        configs: BTreeMap::from([consent]),
    };
    let id = admin.create_topic(&new).await.unwrap();
    assert!(matches!(admin.create_topic(&new).await, Err(AdminError::TopicExists { topic }) if topic == name));

    let names = BTreeSet::from([name.clone(), "no-such-topic".into(), "no topic".into()]);
    let topics = admin.topics(&names).await.unwrap();
    assert_eq!((&topics["no-such-topic"], &topics["no topic"]), (&TopicLookup::Missing, &TopicLookup::Invalid));
    let topic = topics[&name].found().unwrap();
    assert_eq!((topic.id, topic.partitions.len()), (id, 2));
    assert!(topic.operations.write && topic.operations.alter_configs);
    assert_eq!(admin.topic_names_by_id(&BTreeSet::from([id])).await.unwrap()[&id], Some(name.clone()));
    assert_eq!(admin.list_topics().await.unwrap()[&name], id);

    admin.grow_partitions(&name, 3).await.unwrap();
    admin.grow_partitions(&name, 3).await.expect("has that many already");
    let fewer = admin.grow_partitions(&name, 1).await.unwrap_err();
    assert!(matches!(fewer, AdminError::Refused { .. }), "{fewer}");

    admin.delete_topic(&name).await.unwrap();
    assert!(admin.delete_topic(&name).await.unwrap_err().is_unknown());
}

#[tokio::test]
async fn settings_are_changed_one_by_one_and_put_back() {
    let admin = admin().await;
    let topic = make_topic(&admin, 1).await;
    let retention = || async {
        let configs = admin.topic_configs(&set(&topic)).await.unwrap().remove(&topic).unwrap().unwrap();
        configs.0["retention.ms"].clone()
    };
    admin.alter_topic_config(&topic, &[ConfigChange::set("retention.ms", "123000")]).await.unwrap();
    let own = wait_for(|| async { Some(retention().await).filter(|entry| !entry.is_default) }).await;
    assert_eq!((own.value.as_deref(), own.source), (Some("123000"), ConfigSource::Topic));
    admin.alter_topic_config(&topic, &[ConfigChange::delete("retention.ms")]).await.unwrap();
    wait_for(|| async { Some(retention().await).filter(|entry| entry.is_default) }).await;

    let missing = admin.topic_configs(&set("no-such-topic")).await.unwrap().remove("no-such-topic").unwrap();
    assert!(missing.unwrap_err().is_unknown());
}

#[tokio::test]
async fn groups_have_settings_before_they_exist() {
    let admin = admin().await;
    let group = unique("group");
    let limit = |value| ConfigChange { name: "share.delivery.count.limit".into(), value };
    admin.alter_group_config(&group, &[limit(Some("7".into()))]).await.unwrap();
    let read = || async { admin.group_configs(&set(&group)).await.unwrap().remove(&group).unwrap().unwrap() };
    let set = wait_for(|| async {
        let configs = read().await;
        (configs.number("share.delivery.count.limit") == Some(7)).then_some(configs)
    });
    let configs = set.await;
    assert_eq!(configs.0["share.delivery.count.limit"].source, ConfigSource::Group);
    assert!(configs.0["share.isolation.level"].is_default);

    let refused = admin.alter_group_config(&group, &[ConfigChange::set("no.such.setting", "1")]).await.unwrap_err();
    assert!(refused.to_string().contains("INVALID_CONFIG"), "{refused}");
    admin.alter_group_config(&group, &[limit(None)]).await.unwrap();
    wait_for(|| async { read().await.0["share.delivery.count.limit"].is_default.then_some(()) }).await;
}

#[tokio::test]
async fn offsets_are_told_by_end_time_and_isolation() {
    let admin = admin().await;
    let topic = make_topic(&admin, 2).await;
    let mut config = settings().await.rdkafka();
    let producer: FutureProducer = config.set("transactional.id", unique("offsets")).create().unwrap();
    producer.init_transactions(30 * SECOND).unwrap();
    producer.begin_transaction().unwrap();
    for time in [1000, 2000, 3000] {
        let record = FutureRecord::<str, str>::to(&topic).partition(0).payload("x").timestamp(time);
        producer.send(record, 30 * SECOND).await.unwrap();
    }

    let (zero, one, absent) =
        (TopicPartition::new(&topic, 0), TopicPartition::new(&topic, 1), TopicPartition::new(&topic, 9));
    let of = BTreeSet::from([zero.clone(), one.clone(), absent.clone()]);
    let ask = |spec, isolation| admin.offsets(&of, spec, isolation);
    let end = ask(OffsetSpec::Latest, Isolation::ReadUncommitted).await.unwrap();
    assert_eq!((end[&zero].as_ref(), end[&one].as_ref()), (Ok(&3), Ok(&0)));
    assert!(end[&absent].as_ref().unwrap_err().is_unknown());
    let stable = ask(OffsetSpec::Latest, Isolation::ReadCommitted).await.unwrap();
    assert_eq!(stable[&zero], Ok(0), "the transaction is open");
    let timed = ask(OffsetSpec::AtTime(1500), Isolation::ReadUncommitted).await.unwrap();
    assert_eq!((timed[&zero].clone(), timed[&one].clone()), (Ok(1), Ok(-1)));

    producer.commit_transaction(30 * SECOND).unwrap();
    let stable = || async { ask(OffsetSpec::Latest, Isolation::ReadCommitted).await.unwrap().remove(&zero).unwrap() };
    wait_for(|| async { (stable().await == Ok(4)).then_some(()) }).await;
}

#[tokio::test]
async fn groups_that_do_not_exist_have_no_members_and_no_offsets() {
    let admin = admin().await;
    let group = unique("nobody");
    assert_eq!(admin.share_groups(&set(&group)).await.unwrap()[&group], None);
    assert!(admin.share_group_offsets(&group, None).await.unwrap().is_empty());
    assert!(admin.consumer_group_offsets(&group).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_consumer_group_reads_its_topic_with_and_without_members() {
    let admin = admin().await;
    let topic = make_topic(&admin, 1).await;
    let group = unique("reader");
    let mut config = settings().await.rdkafka();
    let consumer: BaseConsumer = config.set("group.id", &group).set("auto.offset.reset", "earliest").create().unwrap();
    consumer.subscribe(&[&topic]).unwrap();
    let reader = |members| Reader { group: group.clone(), kind: GroupKind::Classic, members, topics: set(&topic) };
    let readers = || async { admin.readers(&set(&topic)).await.unwrap() };
    wait_for(|| async {
        assert!(consumer.poll(Duration::from_millis(10)).is_none_or(|polled| polled.is_ok()));
        (readers().await == [reader(1)]).then_some(())
    })
    .await;

    let mut place = rdkafka::TopicPartitionList::new();
    place.add_partition_offset(&topic, 0, rdkafka::Offset::Offset(0)).unwrap();
    consumer.commit(&place, CommitMode::Sync).unwrap();
    drop(consumer);
    wait_for(|| async { (readers().await == [reader(0)]).then_some(()) }).await;
    let committed = admin.consumer_group_offsets(&group).await.unwrap();
    assert_eq!(committed, BTreeMap::from([(TopicPartition::new(&topic, 0), 0)]));
}

#[tokio::test]
async fn a_cluster_that_is_down_is_told_by_its_address_in_time() {
    let admin = Admin::connect(&Settings::plaintext("127.0.0.1:1")).with_timeout(2 * SECOND);
    let began = Instant::now();
    let error = admin.cluster().await.unwrap_err();
    assert!(error.is_unreachable() && error.to_string().contains("127.0.0.1:1"), "{error}");
    assert!(began.elapsed() < 3 * SECOND);
}

#[tokio::test]
async fn bootstrap_servers_that_cannot_be_are_told_by_the_first_call() {
    let error = Admin::connect(&Settings::plaintext("nowhere")).cluster().await.unwrap_err();
    assert!(error.to_string().contains("\"nowhere\" in the bootstrap servers is not host:port"), "{error}");
}
