//! Schemas of values that several fields share, and the shape Kubernetes wants for optional fields.
//!
//! The types here are never made: a field names one with `schemars(with = ...)` to get its bounds, pattern and rules.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, transform::transform_subschemas};
use serde_json::{Map, Value};
use std::borrow::Cow;

macro_rules! schemas {
    ($($(#[doc = $doc:literal])* $name:ident = $schema:tt;)*) => {$(
        $(#[doc = $doc])*
        pub enum $name {}

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

schemas! {
    /// A point in time, as `metav1.Time`.
    DateTime = {"type": "string", "format": "date-time"};

    /// `metav1.Condition`, with the bounds of the Kubernetes API conventions.
    StatusCondition = {
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            "type": {"type": "string", "maxLength": 316, "description": "What the condition is about, in CamelCase."},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"], "description": "True, False or Unknown."},
            "reason": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "Why, in one CamelCase word for programs."},
            "message": {"type": "string", "maxLength": 32768, "description": "Why, in a sentence for people, with the way out."},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0, "description": "metadata.generation of the spec the condition speaks about."},
            "lastTransitionTime": {"type": "string", "format": "date-time", "description": "When the status last changed."},
        },
    };

    /// The name of another object in the same namespace.
    ResourceName = {
        "type": "string", "minLength": 1, "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    };

    /// A key of a Secret's data.
    SecretKey = {"type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[-._a-zA-Z0-9]+$"};

    /// A topic a client may write to: legal for Kafka, and not one of Kafka's own.
    TopicName = {
        "type": "string", "minLength": 1, "maxLength": 249,
        "x-kubernetes-validations": [
            {"rule": "self.matches('^[a-zA-Z0-9._-]*$') && !(self in ['.', '..'])",
             "message": "not a legal Kafka topic name: use letters, digits, '.', '_' and '-'"},
            {"rule": "!self.startsWith('__')", "message": "names that start with __ belong to Kafka itself"},
        ],
    };

    /// The id of a group. Kafka allows any text; the bound is that of a topic name, which is made from it.
    GroupId = {"type": "string", "minLength": 1, "maxLength": 249};

    /// Kafka configs by name. Values are text, as Kafka takes them.
    Configs = {
        "type": "object", "minProperties": 1, "maxProperties": 64,
        "additionalProperties": {"type": "string", "maxLength": 1024},
        "x-kubernetes-validations": [
            {"rule": "self.all(name, name.matches('^[a-z0-9.]{1,128}$'))",
             "message": "names of Kafka configs are lower-case letters, digits and dots"},
        ],
    };

    /// Inclusive ranges of offsets. A pattern, not a rule: 1000 texts of 64 KiB are too much for the cost budget of CEL.
    Ranges = {
        "type": "string", "minLength": 1, "maxLength": 65536,
        "pattern": "^[0-9]{1,19}(-[0-9]{1,19})?(,[0-9]{1,19}(-[0-9]{1,19})?)*$",
    };

    /// The token of a preview: its version and a hash.
    PreviewToken = {
        "type": "string", "minLength": 1, "maxLength": 80,
        "x-kubernetes-validations": [
            {"rule": "self.matches('^pv1-[0-9a-f]{16,64}$')",
             "message": "not a preview token: quote status.preview.token of a DLQReplay, pv1- followed by 16 to 64 hexadecimal digits"},
        ],
    };
}

/// Gives a schema the shape Kubernetes wants: no `null`, every number bounded, and descriptions without the line breaks
/// of the source.
pub fn for_kubernetes(schema: &mut Schema) {
    transform_subschemas(&mut for_kubernetes, schema);
    let Some(keywords) = schema.as_object_mut() else { return };
    forbid_null(keywords);
    bound_number(keywords);
    join_lines(keywords);
}

/// In Kubernetes an optional field is absent; a `null` sent for it is dropped.
fn forbid_null(keywords: &mut Map<String, Value>) {
    if let Some(Value::Array(values)) = keywords.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(types)) = keywords.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            keywords.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = keywords.get("anyOf")
        && let [Value::Object(value), null] = choices.as_slice()
        && null.get("type").is_some_and(|name| name == "null")
    {
        let value = value.clone();
        keywords.remove("anyOf");
        for (keyword, setting) in value {
            keywords.entry(keyword).or_insert(setting);
        }
    }
}

/// A counter is bounded by what its format holds; 2^53 - 1 is the largest whole number every JSON reader keeps exactly.
fn bound_number(keywords: &mut Map<String, Value>) {
    let maximum = match keywords.get("format").and_then(Value::as_str) {
        Some("int32") => i64::from(i32::MAX),
        Some("int64") => (1 << 53) - 1,
        _ => return,
    };
    keywords.entry("maximum").or_insert(maximum.into());
}

/// `kubectl explain` wraps lines itself; an empty line still parts paragraphs.
fn join_lines(keywords: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = keywords.get_mut("description") {
        let paragraphs: Vec<String> = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
}
