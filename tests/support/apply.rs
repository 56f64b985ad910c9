//! Applies objects to the API server as `kubectl apply --server-side` does, strictly, and reads its sentences.

use kube::{
    Api, Client, CustomResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

/// What the API server is expected to say to an object that it takes.
pub const TAKEN: &str = "";

/// One kind of object in one namespace.
pub struct Objects {
    api: Api<DynamicObject>,
    resource: ApiResource,
}

impl Objects {
    pub fn of<K: CustomResourceExt>(client: Client, namespace: &str) -> Self {
        let resource = K::api_resource();
        Self { api: Api::namespaced_with(client, namespace, &resource), resource }
    }

    /// The object as stored, or the sentence it was refused with.
    pub async fn apply(&self, name: &str, spec: &Value) -> Result<Value, String> {
        self.send(name, json!({"spec": spec}), &PatchParams::apply("test").validation_strict()).await
    }

    /// The same without storing it.
    pub async fn try_apply(&self, name: &str, spec: &Value) -> Result<Value, String> {
        self.send(name, json!({"spec": spec}), &PatchParams::apply("test").validation_strict().dry_run()).await
    }

    async fn send(&self, name: &str, content: Value, how: &PatchParams) -> Result<Value, String> {
        let answer = self.api.patch(name, how, &Patch::Apply(self.object(name, content))).await;
        answer.map(|object| json!(object)).map_err(sentence)
    }

    /// Applies the status as the operator does.
    pub async fn apply_status(&self, name: &str, status: &Value) -> Result<Value, String> {
        let how = PatchParams::apply("operator").validation_strict();
        let object = self.object(name, json!({"status": status}));
        let answer = self.api.patch_status(name, &how, &Patch::Apply(object)).await;
        answer.map(|object| json!(object)).map_err(sentence)
    }

    fn object(&self, name: &str, content: Value) -> Value {
        let head = json!({
            "apiVersion": self.resource.api_version, "kind": self.resource.kind, "metadata": {"name": name},
        });
        with(&head, content)
    }

    /// Tries a new object for each row: what it is about, a change to `good`, a part of the sentence or [`TAKEN`].
    pub async fn try_new(&self, good: &Value, rows: Vec<(&str, Value, &str)>) {
        let mut surprises = Vec::new();
        for (about, change, expected) in rows {
            let answer = self.try_apply("new", &with(good, change)).await;
            surprises.extend(surprise(about, answer, expected));
        }
        assert!(surprises.is_empty(), "{}", surprises.join("\n"));
    }

    /// For each row stores `good` with a first change, then tries a second one on top.
    pub async fn try_changes(&self, good: &Value, rows: Vec<(&str, Value, Value, &str)>) {
        let mut surprises = Vec::new();
        for (row, (about, first, second, expected)) in rows.into_iter().enumerate() {
            let name = format!("row-{row}");
            let old = with(good, first);
            if let Err(sentence) = self.apply(&name, &old).await {
                surprises.push(format!("{about}: the first version was refused: {sentence}"));
                continue;
            }
            let answer = self.try_apply(&name, &with(&old, second)).await;
            surprises.extend(surprise(about, answer, expected));
        }
        assert!(surprises.is_empty(), "{}", surprises.join("\n"));
    }
}

fn sentence(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message,
        other => other.to_string(),
    }
}

fn surprise(about: &str, answer: Result<Value, String>, expected: &str) -> Option<String> {
    match answer {
        Ok(_) if expected == TAKEN => None,
        Ok(_) => Some(format!("{about}: taken, not refused with {expected:?}")),
        Err(sentence) if expected != TAKEN && sentence.contains(expected) => None,
        Err(sentence) => Some(format!("{about}: refused with {sentence:?}, expected {expected:?}")),
    }
}

/// `base` with `change` merged in (RFC 7396): null takes a field away.
pub fn with(base: &Value, change: Value) -> Value {
    let Value::Object(change) = change else { return change };
    let mut merged = base.as_object().cloned().unwrap_or_default();
    for (name, value) in change {
        if value.is_null() {
            merged.remove(&name);
        } else {
            let old = merged.remove(&name).unwrap_or_default();
            merged.insert(name, with(&old, value));
        }
    }
    Value::Object(merged)
}
