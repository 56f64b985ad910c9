//! DLQReplay: one preview of what a replay would do, and at most one replay of what it showed.

mod preview;
mod problem;
mod selection;
mod status;

pub use preview::*;
pub use problem::*;
pub use selection::*;
pub use status::*;

use super::schema;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One preview, and at most one replay of what it showed.
///
/// What is not marked "can change" below is fixed at creation: the preview speaks about exactly this object.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "redrive.dev",
    version = "v1alpha1",
    kind = "DLQReplay",
    namespaced,
    doc = "One preview of a replay of dead letters, and at most one replay of what it showed.",
    status = "DLQReplayStatus",
    derive = "PartialEq",
    shortname = "replay",
    category = "redrive",
    printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Succeeded\")].reason"}"#,
    printcolumn = r#"{"name": "Step", "type": "integer", "jsonPath": ".status.step.number"}"#,
    printcolumn = r#"{"name": "Sent", "type": "integer", "jsonPath": ".status.progress.sent"}"#,
    printcolumn = r#"{"name": "Settled", "type": "integer", "jsonPath": ".status.progress.settled"}"#,
    printcolumn = r#"{"name": "Returned", "type": "integer", "jsonPath": ".status.progress.returned"}"#,
    printcolumn = r#"{"name": "Selected", "type": "integer", "jsonPath": ".status.progress.selected"}"#,
    printcolumn = r#"{"name": "Token", "type": "string", "jsonPath": ".status.preview.token", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::for_kubernetes)]
#[x_kube(validation = Rule::new("has(self.reason) == has(oldSelf.reason) && (!has(self.reason) || self.reason == oldSelf.reason)")
    .message("reason cannot change; make a new DLQReplay")
    .field_path(".reason")
    .reason(Reason::FieldValueForbidden))]
#[x_kube(validation = Rule::new("has(self.selection) == has(oldSelf.selection) && (!has(self.selection) || self.selection == oldSelf.selection)")
    .message("selection cannot change, the preview is about it; make a new DLQReplay")
    .field_path(".selection")
    .reason(Reason::FieldValueForbidden))]
#[x_kube(validation = Rule::new("has(self.target) == has(oldSelf.target) && (!has(self.target) || self.target == oldSelf.target)")
    .message("target cannot change, the preview is about it; make a new DLQReplay")
    .field_path(".target")
    .reason(Reason::FieldValueForbidden))]
#[x_kube(validation = Rule::new("oldSelf.action == 'Preview' || self.action == oldSelf.action")
    .message("action cannot change once it is Replay or Dismiss; set cancel: true to stop a replay")
    .field_path(".action")
    .reason(Reason::FieldValueForbidden))]
#[x_kube(validation = Rule::new("!oldSelf.cancel || self.action == oldSelf.action")
    .message("cancelled: action cannot change any more; make a new DLQReplay for the rest")
    .field_path(".action")
    .reason(Reason::FieldValueForbidden))]
#[x_kube(validation = Rule::new("self.action != 'Preview' || !has(self.previewToken)")
    .message("previewToken goes with action: Replay or action: Dismiss")
    .field_path(".previewToken")
    .reason(Reason::FieldValueForbidden))]
#[x_kube(validation = Rule::new("oldSelf.action == 'Preview' || (has(self.previewToken) == has(oldSelf.previewToken) && (!has(self.previewToken) || self.previewToken == oldSelf.previewToken))")
    .message("previewToken cannot change once action is Replay or Dismiss; make a new DLQReplay")
    .field_path(".previewToken")
    .reason(Reason::FieldValueForbidden))]
#[x_kube(validation = Rule::new("oldSelf.action == 'Preview' || (has(self.allowOtherReaders) == has(oldSelf.allowOtherReaders) && (!has(self.allowOtherReaders) || self.allowOtherReaders == oldSelf.allowOtherReaders))")
    .message("allowOtherReaders cannot change once action is Replay or Dismiss; make a new DLQReplay")
    .field_path(".allowOtherReaders")
    .reason(Reason::FieldValueForbidden))]
#[x_kube(validation = Rule::new("oldSelf.action == 'Preview' || self.onUnsendable == oldSelf.onUnsendable")
    .message("onUnsendable cannot change once action is Replay or Dismiss; make a new DLQReplay")
    .field_path(".onUnsendable")
    .reason(Reason::FieldValueForbidden))]
pub struct DLQReplaySpec {
    /// The ShareGroupDLQ in this namespace whose dead letters are replayed.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("dlqRef cannot change; make a new DLQReplay")
        .reason(Reason::FieldValueForbidden))]
    pub dlq_ref: DlqRef,

    /// Preview: look, change nothing. Replay: send. Dismiss: mark as handled, send nothing. Can change from Preview to one
    /// of the others, never back.
    #[serde(default)]
    pub action: Action,

    /// Run or dismiss exactly what the preview with this token showed (status.preview.token of a DLQReplay in this
    /// namespace). Can change until action is Replay or Dismiss.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::PreviewToken>")]
    pub preview_token: Option<String>,

    /// Why, in your words; kept in the ledger and in events.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub reason: Option<String>,

    /// Which messages; every part must match. Absent: every message of the group not replayed or dismissed yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,

    /// Where to. Absent: each message goes to the topic it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,

    /// Groups that did not fail and may receive the messages too; any other reader of a target blocks. Can change until
    /// action is Replay or Dismiss.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::GroupId>",
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub allow_other_readers: Vec<String>,

    /// Canary: a few first, then twice as many, stop when one comes back. AllAtOnce: one step.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("strategy cannot change; make a new DLQReplay")
        .reason(Reason::FieldValueForbidden))]
    pub strategy: Strategy,

    /// Sizes and time-out of the steps.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("canary cannot change; make a new DLQReplay")
        .reason(Reason::FieldValueForbidden))]
    pub canary: Canary,

    /// Messages sent per second at most; 1000000 is no limit. Can change at any time.
    #[serde(default = "default_pace")]
    #[schemars(range(min = 1, max = 1000000))]
    pub messages_per_second: i32,

    /// What to do if a message cannot be sent. Fail: nothing is sent. Skip: the others are. Can change until action is
    /// Replay or Dismiss.
    #[serde(default)]
    pub on_unsendable: OnUnsendable,

    /// What to do when the operator process that runs the replay dies. Stop: report Interrupted. Resume: the next one carries on.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("onInterruption cannot change; make a new DLQReplay")
        .reason(Reason::FieldValueForbidden))]
    pub on_interruption: OnInterruption,

    /// Pause: nothing more is sent; what was sent is still watched. Can change at any time.
    #[serde(default)]
    pub suspend: bool,

    /// Stop for good. Can be set at any time; true is final.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self || !oldSelf")
        .message("cancel is final; make a new DLQReplay for the rest")
        .reason(Reason::FieldValueForbidden))]
    pub cancel: bool,

    /// Seconds after which a finished DLQReplay is deleted; an unused preview counts from its takenAt. Absent: kept. Can
    /// change at any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2147483647))]
    pub ttl_seconds_after_finished: Option<i32>,
}

fn default_pace() -> i32 {
    100
}

impl DLQReplaySpec {
    /// A preview of everything not replayed or dismissed yet, with the defaults of the schema.
    pub fn preview_of(dlq: impl Into<String>) -> Self {
        Self {
            dlq_ref: DlqRef { name: dlq.into() },
            action: Action::default(),
            preview_token: None,
            reason: None,
            selection: None,
            target: None,
            allow_other_readers: Vec::new(),
            strategy: Strategy::default(),
            canary: Canary::default(),
            messages_per_second: default_pace(),
            on_unsendable: OnUnsendable::default(),
            on_interruption: OnInterruption::default(),
            suspend: false,
            cancel: false,
            ttl_seconds_after_finished: None,
        }
    }
}

/// A ShareGroupDLQ in the same namespace.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DlqRef {
    /// Name of the ShareGroupDLQ.
    #[schemars(with = "schema::ResourceName")]
    pub name: String,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    #[default]
    Preview,
    Replay,
    Dismiss,
}

/// Where the messages go.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The topic. Absent: each message goes to the topic it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::TopicName>")]
    pub topic: Option<String>,

    /// Source: the partition number the message had, by key where the target has no such partition. Key: by the key, as the Java client does.
    #[serde(default)]
    pub partitioning: Partitioning,

    /// Drop or Keep the headers __dlq.errors.*. Absent: Drop to the source, Keep to another topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_headers: Option<ErrorHeaders>,

    /// The group whose progress settles a message. Absent or empty: the group of the ShareGroupDLQ for the source, the only
    /// live group of the topic otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 249))]
    pub group_id: Option<String>,
}

impl Target {
    /// Whether the `__dlq.errors.*` headers are sent along: as said, or by default only to another topic than the source.
    pub fn keeps_error_headers(&self) -> bool {
        self.error_headers.map_or(self.topic.is_some(), |headers| headers == ErrorHeaders::Keep)
    }

    /// The group asked for by name, if any.
    pub fn settling_group(&self) -> Option<&str> {
        self.group_id.as_deref().filter(|id| !id.is_empty())
    }
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partitioning {
    #[default]
    Source,
    Key,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorHeaders {
    Drop,
    Keep,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    #[default]
    Canary,
    AllAtOnce,
}

/// Sizes and time-out of the steps.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.initialStepSize <= self.maxStepSize")
    .message("canary.maxStepSize must be at least canary.initialStepSize")
    .field_path(".maxStepSize"))]
pub struct Canary {
    /// Messages in the first step.
    #[serde(default = "default_initial_step_size")]
    #[schemars(range(min = 1, max = 1000000))]
    pub initial_step_size: i32,

    /// Messages in a step at most; steps double up to it.
    #[serde(default = "default_max_step_size")]
    #[schemars(range(min = 1, max = 1000000))]
    pub max_step_size: i32,

    /// Seconds a step has to settle, counted from the last acknowledged send.
    #[serde(default = "default_step_timeout")]
    #[schemars(range(min = 1, max = 86400))]
    pub step_timeout_seconds: i32,
}

fn default_initial_step_size() -> i32 {
    10
}

fn default_max_step_size() -> i32 {
    1000
}

fn default_step_timeout() -> i32 {
    60
}

impl Default for Canary {
    fn default() -> Self {
        Self {
            initial_step_size: default_initial_step_size(),
            max_step_size: default_max_step_size(),
            step_timeout_seconds: default_step_timeout(),
        }
    }
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnsendable {
    #[default]
    Fail,
    Skip,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterruption {
    #[default]
    Stop,
    Resume,
}
