//! What the tests of the data path need beyond it: topics of every kind, records of every kind, and groups looked for.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use redrive::kafka::reader::{Order, ReadError, Reader};
use redrive::kafka::record::Record;
use redrive::kafka::settings::Settings;
use redrive::kafka::{Isolation, Span};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub const SOON: Duration = Duration::from_secs(30);

/// A topic of a test's own.
pub struct Topic {
    pub name: String,
    pub settings: Settings,
}

/// The records of a test: key, value and a header that name the number.
pub fn numbered(number: usize) -> (String, String) {
    (format!("key-{number}"), format!("value-{number}"))
}

fn unique(stem: &str) -> String {
    format!("{stem}.{}", &uuid::Uuid::new_v4().simple().to_string()[..8])
}

impl Topic {
    pub async fn create(settings: &Settings, stem: &str, partitions: i32, configs: &[(&str, &str)]) -> Self {
        let topic = Self { name: unique(stem), settings: settings.clone() };
        topic.create_again(partitions, configs).await;
        topic
    }

    pub async fn create_again(&self, partitions: i32, configs: &[(&str, &str)]) {
        let mut new = NewTopic::new(&self.name, partitions, TopicReplication::Fixed(1));
        for (name, value) in configs {
            new = new.set(name, value);
        }
        let created = self.admin().create_topics([&new], &AdminOptions::new()).await.unwrap();
        created[0].as_ref().unwrap();
        self.wait_for_leaders(partitions);
    }

    fn wait_for_leaders(&self, partitions: i32) {
        let producer: BaseProducer = self.settings.rdkafka().create().unwrap();
        let since = Instant::now();
        for partition in 0..partitions {
            // A broker may name the new leader before that one knows of it.
            while let Err(error) = producer.client().fetch_watermarks(&self.name, partition, SOON) {
                assert!(since.elapsed() < SOON, "{error}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.settings.rdkafka().create().unwrap()
    }

    pub async fn delete(&self) {
        let deleted = self.admin().delete_topics(&[&self.name], &AdminOptions::new()).await.unwrap();
        deleted[0].as_ref().unwrap();
    }

    pub async fn delete_before(&self, partition: i32, offset: i64) {
        let mut offsets = TopicPartitionList::new();
        offsets.add_partition_offset(&self.name, partition, Offset::Offset(offset)).unwrap();
        self.admin().delete_records(&offsets, &AdminOptions::new()).await.unwrap();
    }

    /// The end of a partition, uncommitted records and markers included.
    pub fn end(&self, partition: i32) -> i64 {
        let mut config = self.settings.rdkafka();
        let consumer: BaseConsumer = config.set("isolation.level", "read_uncommitted").create().unwrap();
        consumer.client().fetch_watermarks(&self.name, partition, SOON).unwrap().1
    }

    pub fn producer(&self, configs: &[(&str, &str)]) -> BaseProducer {
        producer(&self.settings, configs)
    }

    /// Sends numbered records and waits for them.
    pub fn send(&self, producer: &BaseProducer, partition: i32, numbers: std::ops::Range<usize>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        self.send_at(producer, partition, numbers, |_| now);
    }

    pub fn send_at(
        &self,
        producer: &BaseProducer,
        partition: i32,
        numbers: std::ops::Range<usize>,
        time: impl Fn(usize) -> i64,
    ) {
        for number in numbers {
            let (key, value) = numbered(number);
            let headers = OwnedHeaders::new().insert(Header { key: "number", value: Some(&number.to_string()) });
            let record = BaseRecord::to(&self.name).partition(partition).key(&key).payload(&value).headers(headers);
            let mut record = Some(record.timestamp(time(number)));
            while let Some(again) = record.take() {
                if let Err((_, refused)) = producer.send(again) {
                    producer.poll(Duration::from_millis(10));
                    record = Some(refused);
                }
            }
        }
        producer.flush(SOON).unwrap();
    }

    pub fn span(&self, partition: i32, from: i64, until: i64) -> Vec<Span> {
        vec![Span { partition, from, until }]
    }

    pub async fn read(&self, spans: Vec<Span>, isolation: Isolation) -> Result<Vec<Record>, ReadError> {
        let reader = Reader::open(&self.settings, &self.name, spans, isolation, Order::ByPartition)?;
        collect(reader).await
    }

    /// Everything in a partition, up to its end now.
    pub async fn read_all(&self, partition: i32, isolation: Isolation) -> Vec<Record> {
        self.read(self.span(partition, 0, self.end(partition)), isolation).await.unwrap()
    }
}

pub async fn collect(mut reader: Reader) -> Result<Vec<Record>, ReadError> {
    let mut records = Vec::new();
    while let Some(batch) = reader.next_batch().await {
        records.extend(batch?);
    }
    Ok(records)
}

pub fn producer(settings: &Settings, configs: &[(&str, &str)]) -> BaseProducer {
    let mut config: ClientConfig = settings.rdkafka();
    for (name, value) in configs {
        config.set(*name, *value);
    }
    config.create().unwrap()
}

/// A producer with a transaction begun.
pub fn in_transaction(settings: &Settings, id: &str) -> BaseProducer {
    let producer = producer(settings, &[("transactional.id", &unique(id)), ("transaction.timeout.ms", "60000")]);
    producer.init_transactions(SOON).unwrap();
    producer.begin_transaction().unwrap();
    producer
}

pub fn offsets(records: &[Record]) -> Vec<i64> {
    records.iter().map(|record| record.offset).collect()
}

pub fn values(records: &[Record]) -> Vec<String> {
    let text = |record: &Record| String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned();
    records.iter().map(text).collect()
}

/// All groups of the cluster, of whatever state.
pub fn groups(settings: &Settings) -> Vec<String> {
    let consumer: BaseConsumer = settings.rdkafka().create().unwrap();
    let groups = consumer.fetch_group_list(None, SOON).unwrap();
    groups.groups().iter().map(|group| group.name().to_owned()).collect()
}
