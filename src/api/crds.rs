//! The CustomResourceDefinitions, as Kubernetes takes them and as files.

use super::{DLQReplay, ShareGroupDLQ};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
pub enum PrintCrdError {
    #[error("the CustomResourceDefinition cannot be written as JSON: {0}")]
    WriteJson(#[from] serde_json::Error),
    #[error("the CustomResourceDefinition cannot be written as YAML: {0}")]
    WriteYaml(#[from] serde_saphyr::ser::Error),
}

/// Both CustomResourceDefinitions.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [ShareGroupDLQ::crd(), DLQReplay::crd()].map(forbid_null_status).into()
}

/// kube makes the status nullable, and a `null` would stand in the way of its default.
fn forbid_null_status(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let schemas =
        crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for status in schemas.filter_map(|schema| schema.properties.as_mut()?.get_mut("status")) {
        status.nullable = None;
    }
    crd
}

/// Both CustomResourceDefinitions in one YAML stream, for `kubectl apply -f -`.
pub fn crds_yaml() -> Result<String, PrintCrdError> {
    let files = crd_files()?;
    Ok(files.into_iter().map(|(_, yaml)| format!("---\n{yaml}")).collect())
}

/// The files in `crds/`: name and content of each.
pub fn crd_files() -> Result<Vec<(String, String)>, PrintCrdError> {
    crds().iter().map(|crd| Ok((format!("{}.yaml", crd.spec.names.plural), yaml(crd)?))).collect()
}

fn yaml(crd: &CustomResourceDefinition) -> Result<String, PrintCrdError> {
    let mut json = serde_json::to_value(crd)?;
    whole_numbers(&mut json);
    Ok(serde_saphyr::to_string(&json)?)
}

/// Bounds are floats in the type of a CustomResourceDefinition; written as such, `minimum: 1.0` would be told to users.
fn whole_numbers(json: &mut Value) {
    match json {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0) {
                *number = (float as i64).into();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{crd_files, crds};
    use serde_json::{Value, json};
    use std::{fs, path::Path};

    /// `crds/` is what users and the chart install, so it must not lag behind the types.
    #[test]
    fn the_files_in_crds_are_those_of_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
        for (name, yaml) in crd_files().expect("both resources can be written as YAML") {
            let committed = fs::read_to_string(folder.join(&name)).expect("crds/ has a file for each resource");
            assert!(committed == yaml, "crds/{name} differs from src/api; write it anew: redrive crds --write crds");
        }
    }

    /// What a field lacks of the rules for every type: bounds, a merge strategy, a description, no `null`.
    fn lacks(path: &str, field: &Value) -> Vec<String> {
        let wanted: &[&str] = match field["type"].as_str() {
            Some("integer") => &["minimum", "maximum", "format"],
            Some("array") => &["minItems", "maxItems", "x-kubernetes-list-type"],
            Some("string") if field["enum"].is_array() || field["format"] == "date-time" => &[],
            Some("string") => &["maxLength"],
            Some("object") if field["additionalProperties"].is_object() => &["minProperties", "maxProperties"],
            Some("object" | "boolean") => &[],
            other => return vec![format!("{path}: type {other:?}")],
        };
        let missing =
            wanted.iter().filter(|keyword| field.get(keyword).is_none()).map(|keyword| format!("{path}: no {keyword}"));
        let null = field.get("nullable").map(|_| format!("{path}: nullable"));
        let parts = [("[]", &field["items"]), ("{}", &field["additionalProperties"])];
        let parts = parts.into_iter().filter(|(_, part)| part.is_object());
        let properties = field["properties"].as_object().into_iter().flatten();
        let undescribed =
            properties.clone().filter(|(_, property)| property["description"].as_str().is_none_or(str::is_empty));
        missing
            .chain(null)
            .chain(undescribed.map(|(name, _)| format!("{path}.{name}: no description")))
            .chain(parts.flat_map(|(name, part)| lacks(&format!("{path}{name}"), part)))
            .chain(properties.clone().flat_map(|(name, property)| lacks(&format!("{path}.{name}"), property)))
            .collect()
    }

    #[test]
    fn every_field_keeps_the_rules_for_every_type() {
        for crd in crds() {
            let schema = json!(crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
            assert_eq!(lacks(&crd.spec.names.kind, &schema), Vec::<String>::new());
        }
    }
}
