//! What most tests of a replay begin with: a source topic, a group, its dead-letter topic, an operator, and dead letters.

use super::{Clients, Cluster, Found, Kafka, Operator, until};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client, CustomResourceExt};
use redrive::api::{DLQReplay, ShareGroupDLQ};
use serde_json::{Value, json};

pub struct Story {
    pub namespace: String,
    /// Name of the source topic, the group and the ShareGroupDLQ alike.
    pub name: String,
    pub kafka: &'static Kafka,
    pub clients: Clients,
    pub operator: Operator,
    client: Client,
}

/// Rules of a share consumer.
pub fn accept() -> Value {
    json!({"default": "ACCEPT"})
}

pub fn reject() -> Value {
    json!({"default": "REJECT"})
}

impl Story {
    /// A namespace, a source topic of two partitions and an operator.
    pub async fn begin(name: &str) -> Self {
        Self::begin_on(Kafka::shared().await, name).await
    }

    /// The same on brokers of the test's own, which it may kill or cut off.
    pub async fn begin_on(kafka: &'static Kafka, name: &str) -> Self {
        let cluster = Cluster::shared().await;
        cluster.namespace(name).await;
        let clients = kafka.clients();
        clients.create_topic(name, 2, json!({})).await;
        let (client, operator) = tokio::join!(cluster.client(), Operator::start(name, &[]));
        Self { namespace: name.into(), name: name.into(), kafka, clients, operator, client }
    }

    /// The same, with that many dead letters: the consumer has rejected every record, and stopped.
    pub async fn with_dead_letters(name: &str, count: usize) -> Self {
        Self::with_dead_letters_on(Kafka::shared().await, name, count).await
    }

    pub async fn with_dead_letters_on(kafka: &'static Kafka, name: &str, count: usize) -> Self {
        let story = Self::begin_on(kafka, name).await;
        story.apply_dlq(json!({})).await;
        story.until_dlq("Ready", "True").await;
        story.clients.produce(name, count, 2).await;
        story.reject_until(count).await;
        story
    }

    pub fn dead_letter_topic(&self) -> String {
        format!("dlq.{}", self.name)
    }

    pub fn ledger(&self) -> String {
        Operator::ledger(&self.namespace)
    }

    /// Runs a rejecting consumer until the dead-letter topic holds that many records.
    pub async fn reject_until(&self, count: usize) {
        let consumer = format!("{}-failing", self.name);
        self.clients.start_share_consumer(&consumer, &self.name, &self.name, reject()).await;
        until("the dead letters", || self.dead_letters(), |letters| letters.len() >= count).await;
        self.clients.stop_share_consumer(&consumer).await;
    }

    pub async fn start_consumer(&self, rules: Value) {
        self.clients.start_share_consumer(&self.name, &self.name, &self.name, rules).await;
    }

    pub async fn dead_letters(&self) -> Vec<Found> {
        self.clients.read(&self.dead_letter_topic(), "read_uncommitted").await
    }

    /// What of the replay of that name an independent consumer finds on a topic: the dead letters named, in order.
    pub async fn replayed(&self, topic: &str, replay: &str, isolation: &str) -> Vec<String> {
        let ours = format!("{}/{replay}/", self.namespace);
        let found = self.clients.read(topic, isolation).await;
        let ours = |record: &&Found| record.header("redrive.replay").is_some_and(|replay| replay.starts_with(&ours));
        let mut letters: Vec<_> =
            found.iter().filter(ours).filter_map(|record| record.header("redrive.dead_letter")).collect();
        letters.sort();
        letters
    }

    pub async fn apply_dlq(&self, more: Value) {
        let mut spec = json!({
            "kafka": {"bootstrapServers": self.kafka.proxied()},
            "groupId": self.name,
            "topic": {"create": "Always"},
            "groupConfig": {"share.auto.offset.reset": "earliest"},
        });
        merge(&mut spec, more);
        self.apply::<ShareGroupDLQ>(&self.name, spec).await;
    }

    /// Creates a DLQReplay of the ShareGroupDLQ.
    pub async fn create_replay(&self, name: &str, more: Value) {
        let mut spec = json!({"dlqRef": {"name": self.name}});
        merge(&mut spec, more);
        self.apply::<DLQReplay>(name, spec).await;
    }

    async fn apply<K: CustomResourceExt>(&self, name: &str, spec: Value) {
        let resource = K::api_resource();
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let metadata = json!({"name": name, "namespace": self.namespace});
        let object =
            json!({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec});
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await.expect("the object is taken");
    }

    /// Changes the spec of a DLQReplay, as kubectl patch does.
    pub async fn patch_replay(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.replays().patch(name, &PatchParams::default(), &patch).await.expect("the change is taken");
    }

    pub fn replays(&self) -> Api<DLQReplay> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn dlqs(&self) -> Api<ShareGroupDLQ> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn replay(&self, name: &str) -> DLQReplay {
        self.replays().get(name).await.expect("the DLQReplay")
    }

    pub async fn until_dlq(&self, condition: &str, status: &str) -> ShareGroupDLQ {
        let look = || async { self.dlqs().get(&self.name).await.expect("the ShareGroupDLQ") };
        let so = |dlq: &ShareGroupDLQ| {
            let conditions = dlq.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            redrive::api::conditions::find(conditions, condition).is_some_and(|one| one.status == status)
        };
        until(&format!("{condition}={status}"), look, so).await
    }

    /// The DLQReplay once `so` holds of its status.
    pub async fn until_replay(
        &self,
        name: &str,
        what: &str,
        so: impl Fn(&redrive::api::DLQReplayStatus) -> bool,
    ) -> DLQReplay {
        let look = || self.replay(name);
        until(what, look, |replay| replay.status.as_ref().is_some_and(&so)).await
    }

    /// The DLQReplay once it is previewed.
    pub async fn previewed(&self, name: &str) -> redrive::api::Preview {
        let replay = self.until_replay(name, "a preview", |status| status.preview.is_some()).await;
        replay.status.and_then(|status| status.preview).expect("a preview")
    }

    /// The DLQReplay once it is over, and the reason why.
    pub async fn finished(&self, name: &str) -> (String, redrive::api::DLQReplayStatus) {
        let replay = self.until_replay(name, "the end of the replay", |status| status.completion_time.is_some()).await;
        let status = replay.status.expect("a status");
        (reason(&status), status)
    }
}

pub fn reason(status: &redrive::api::DLQReplayStatus) -> String {
    let succeeded = redrive::api::conditions::find(&status.conditions, "Succeeded");
    succeeded.map(|condition| condition.reason.clone()).unwrap_or_default()
}

/// The message of `Succeeded`.
pub fn message(status: &redrive::api::DLQReplayStatus) -> String {
    let succeeded = redrive::api::conditions::find(&status.conditions, "Succeeded");
    succeeded.map(|condition| condition.message.clone()).unwrap_or_default()
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.into_iter().for_each(|(name, value)| merge(into.entry(name).or_insert(Value::Null), value));
        }
        (into, more) => *into = more,
    }
}
