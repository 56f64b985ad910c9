//! What each of these tests has: a namespace, a broker with clients, and operator processes for that namespace alone.

use crate::support::{Clients, Cluster, Kafka, Operator, Options, PATIENCE};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::wait::{Condition, await_condition};
use kube::{Api, Client};
use redrive::api::{ShareGroupDLQ, conditions};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

pub const CONSENT: &str = "errors.deadletterqueue.group.enable";
pub const TOPIC_NAME: &str = "errors.deadletterqueue.topic.name";

static SPARE: OnceCell<Mutex<Kafka>> = OnceCell::const_new();

/// A broker for tests that change or kill it, one at a time; they leave it as they found it.
pub async fn spare_broker() -> MutexGuard<'static, Kafka> {
    let started = SPARE.get_or_init(|| async { Mutex::new(Kafka::start(Options::default()).await) });
    started.await.lock().await
}

/// What the tests ask of Kafka, by clients that know nothing of Redrive.
pub trait Ask {
    async fn config(&self, resource: &str, of: &str, name: &str) -> Option<String>;
    async fn configure(&self, resource: &str, of: &str, name: &str, value: Option<&str>);
    async fn topic(&self, name: &str) -> Option<Value>;
}

impl Ask for Clients {
    /// `resource`: TOPIC, GROUP or BROKER.
    async fn config(&self, resource: &str, of: &str, name: &str) -> Option<String> {
        let configs = self.ask("configs", json!({"resource": resource, "name": of})).await;
        configs[name].as_str().map(str::to_owned)
    }

    /// No value: the override is taken away.
    async fn configure(&self, resource: &str, of: &str, name: &str, value: Option<&str>) {
        let change = match value {
            Some(value) => json!({"resource": resource, "name": of, "set": {name: value}}),
            None => json!({"resource": resource, "name": of, "delete": [name]}),
        };
        self.ask("alterConfigs", change).await;
    }

    /// What Kafka tells of the topic, if it exists.
    async fn topic(&self, name: &str) -> Option<Value> {
        self.try_ask("describeTopic", json!({"topic": name})).await.ok()
    }
}

/// One test's own part of everything.
pub struct World {
    pub client: Client,
    pub namespace: String,
}

impl World {
    pub async fn new(namespace: &str) -> World {
        let cluster = Cluster::shared().await;
        cluster.namespace(namespace).await;
        World { client: cluster.client().await, namespace: namespace.to_owned() }
    }

    pub async fn operator(&self, identity: &str) -> Operator {
        Operator::start(&self.namespace, &["--identity", identity]).await
    }

    pub fn objects(&self) -> Api<ShareGroupDLQ> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a ShareGroupDLQ for the group of its name.
    pub async fn apply(&self, name: &str, bootstrap: &str, more: Value) -> ShareGroupDLQ {
        let mut spec = json!({"kafka": {"bootstrapServers": bootstrap}, "groupId": name});
        merge(&mut spec, more);
        let metadata = json!({"name": name, "namespace": self.namespace});
        let object = json!({
            "apiVersion": "redrive.dev/v1alpha1", "kind": "ShareGroupDLQ", "metadata": metadata, "spec": spec,
        });
        let params = PatchParams::apply("test").force();
        self.objects().patch(name, &params, &Patch::Apply(object)).await.expect("the object is taken")
    }

    pub async fn get(&self, name: &str) -> ShareGroupDLQ {
        self.objects().get(name).await.expect("the object is there")
    }

    /// Waits until Ready has that reason for the present spec; the object then.
    pub async fn reaches(&self, name: &str, reason: &str) -> ShareGroupDLQ {
        self.waits(name, reason, has_reason(reason.to_owned())).await
    }

    pub async fn waits(&self, name: &str, what: &str, condition: impl Condition<ShareGroupDLQ>) -> ShareGroupDLQ {
        let waited = tokio::time::timeout(PATIENCE, await_condition(self.objects(), name, condition)).await;
        match waited {
            Ok(Ok(object)) => object.expect("the object is there"),
            failure => panic!("{name} does not reach {what}: {failure:?}\n{:#?}", self.get(name).await.status),
        }
    }

    /// The Events on that object with that reason.
    pub async fn events(&self, name: &str, reason: &str) -> Vec<Event> {
        let api = Api::<Event>::namespaced(self.client.clone(), &self.namespace);
        let events = api.list(&ListParams::default()).await.expect("events can be listed").items;
        let of = |event: &Event| event.regarding.as_ref().and_then(|of| of.name.clone());
        let wanted = |event: &Event| event.reason.as_deref() == Some(reason) && of(event).as_deref() == Some(name);
        events.into_iter().filter(wanted).collect()
    }
}

/// `null` takes a field away.
fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            into.retain(|key, _| more.get(key) != Some(&Value::Null));
            let more = more.into_iter().filter(|(_, value)| !value.is_null());
            more.for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, more) => *into = more,
    }
}

fn has_reason(reason: String) -> impl Condition<ShareGroupDLQ> {
    move |object: Option<&ShareGroupDLQ>| {
        let Some(object) = object else { return false };
        let current = object.status.as_ref().and_then(|status| status.observed_generation);
        current == object.metadata.generation && ready(object).is_some_and(|(found, _)| found == reason)
    }
}

/// Ready's reason and message.
pub fn ready(object: &ShareGroupDLQ) -> Option<(String, String)> {
    condition(object, conditions::READY).map(|(_, reason, message)| (reason, message))
}

/// Status, reason and message.
pub fn condition(object: &ShareGroupDLQ, type_: &str) -> Option<(String, String, String)> {
    let condition = conditions::find(&object.status.as_ref()?.conditions, type_)?;
    Some((condition.status.clone(), condition.reason.clone(), condition.message.clone()))
}
