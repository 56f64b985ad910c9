//! Settings of topics, groups and brokers: read in bulk, changed one by one (KIP-339).

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult};
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse, IncrementalAlterConfigsRequest};
use std::collections::{BTreeMap, BTreeSet};

use super::{Admin, AdminError, Refusal};
use crate::kafka::connection::{Route, settled, text};

const SET: i8 = 0;
const DELETE: i8 = 1;

type ByName = BTreeMap<String, Result<Configs, Refusal>>;

/// What has settings, with Kafka's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Topic = 2,
    Broker = 4,
    Group = 32,
}

/// The settings of one topic, group or broker by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configs(pub BTreeMap<String, ConfigEntry>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// None where the broker keeps it to itself, as it does with passwords.
    pub value: Option<String>,
    /// The value is inherited: it is not set on the resource itself.
    pub is_default: bool,
    pub source: ConfigSource,
}

/// Where a value comes from, as DescribeConfigs tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    Topic,
    Group,
    DynamicBroker,
    DynamicDefaultBroker,
    StaticBroker,
    Default,
    Other(i8),
}

impl Configs {
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.value.as_deref()
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// None where the setting is absent or not a whole number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.value(name)?.parse().ok()
    }
}

/// One setting to be changed; the others of the resource stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    pub name: String,
    /// None takes the resource's own value away, so that the default shows again.
    pub value: Option<String>,
}

impl ConfigChange {
    pub fn set(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: Some(value.into()) }
    }

    pub fn delete(name: impl Into<String>) -> Self {
        Self { name: name.into(), value: None }
    }
}

impl Admin {
    /// In one call. Of a topic that does not exist: a refusal that [`Refusal::is_unknown`].
    pub async fn topic_configs(&self, names: &BTreeSet<String>) -> Result<ByName, AdminError> {
        self.describe_configs(Resource::Topic, names).await
    }

    /// In one call. A group need not exist to have settings.
    pub async fn group_configs(&self, groups: &BTreeSet<String>) -> Result<ByName, AdminError> {
        self.describe_configs(Resource::Group, groups).await
    }

    /// Changes some settings of a topic. A broker asked right afterwards may answer the old value once.
    pub async fn alter_topic_config(&self, topic: &str, changes: &[ConfigChange]) -> Result<(), AdminError> {
        self.alter_configs(Resource::Topic, topic, changes).await
    }

    /// As [`Self::alter_topic_config`], for a group; it need not exist.
    pub async fn alter_group_config(&self, group: &str, changes: &[ConfigChange]) -> Result<(), AdminError> {
        self.alter_configs(Resource::Group, group, changes).await
    }

    async fn describe_configs(&self, kind: Resource, names: &BTreeSet<String>) -> Result<ByName, AdminError> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let request = describe_request(kind, names.iter().map(String::as_str), &[]);
        let answer = self.connection.ask_until(Route::Any, &request, self.deadline(), all_settled).await?;
        let mut read: ByName = answer.results.into_iter().map(|result| read_result(kind, result)).collect();
        let take = |name: &String| match read.remove(name) {
            Some(configs) => Ok((name.clone(), configs)),
            None => Err(AdminError::LeftOut { action: "read settings".into(), what: name.clone() }),
        };
        names.iter().map(take).collect()
    }

    async fn alter_configs(&self, kind: Resource, name: &str, changes: &[ConfigChange]) -> Result<(), AdminError> {
        if changes.is_empty() {
            return Ok(());
        }
        let resource = AlterConfigsResource::default()
            .with_resource_type(kind as i8)
            .with_resource_name(text(name))
            .with_configs(changes.iter().map(alterable).collect());
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        let answer = self
            .connection
            .ask_until(Route::Controller, &request, self.deadline(), |a| {
                a.responses.iter().all(|r| settled(r.error_code))
            })
            .await?;
        let action = || format!("change settings of {} {name}", kind.word());
        let left_out = || AdminError::LeftOut { action: action(), what: name.into() };
        let response = answer.responses.first().ok_or_else(left_out)?;
        let refusal = Refusal::from_code(response.error_code, response.error_message.as_deref());
        refusal.map_or(Ok(()), |refusal| Err(AdminError::refused(action(), refusal)))
    }
}

impl Resource {
    fn word(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Broker => "broker",
            Self::Group => "group",
        }
    }

    /// A value from there is set on the resource itself.
    fn owns(self, source: ConfigSource) -> bool {
        match self {
            Self::Topic => source == ConfigSource::Topic,
            Self::Group => source == ConfigSource::Group,
            Self::Broker => matches!(source, ConfigSource::DynamicBroker | ConfigSource::StaticBroker),
        }
    }
}

impl From<i8> for ConfigSource {
    fn from(code: i8) -> Self {
        match code {
            1 => Self::Topic,
            2 => Self::DynamicBroker,
            3 => Self::DynamicDefaultBroker,
            4 => Self::StaticBroker,
            5 => Self::Default,
            8 => Self::Group,
            other => Self::Other(other),
        }
    }
}

/// No `keys`: all settings.
pub(super) fn describe_request<'a>(
    kind: Resource,
    names: impl Iterator<Item = &'a str>,
    keys: &[&str],
) -> DescribeConfigsRequest {
    let keys = (!keys.is_empty()).then(|| keys.iter().map(|key| text(key)).collect::<Vec<_>>());
    let resource = |name| {
        DescribeConfigsResource::default()
            .with_resource_type(kind as i8)
            .with_resource_name(text(name))
            .with_configuration_keys(keys.clone())
    };
    DescribeConfigsRequest::default().with_resources(names.map(resource).collect()).with_include_synonyms(false)
}

pub(super) fn all_settled(answer: &DescribeConfigsResponse) -> bool {
    answer.results.iter().all(|result| settled(result.error_code))
}

pub(super) fn read_result(kind: Resource, result: DescribeConfigsResult) -> (String, Result<Configs, Refusal>) {
    let refusal = Refusal::from_code(result.error_code, result.error_message.as_deref());
    let read = || Configs(result.configs.iter().map(|config| read_entry(kind, config)).collect());
    (result.resource_name.to_string(), refusal.map_or_else(|| Ok(read()), Err))
}

fn read_entry(kind: Resource, config: &DescribeConfigsResourceResult) -> (String, ConfigEntry) {
    let source = ConfigSource::from(config.config_source);
    let value = config.value.as_ref().map(ToString::to_string);
    (config.name.to_string(), ConfigEntry { value, is_default: !kind.owns(source), source })
}

fn alterable(change: &ConfigChange) -> AlterableConfig {
    AlterableConfig::default()
        .with_name(text(&change.name))
        .with_config_operation(if change.value.is_some() { SET } else { DELETE })
        .with_value(change.value.as_deref().map(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: Resource, source: i8) -> ConfigEntry {
        let config = DescribeConfigsResourceResult::default().with_config_source(source).with_value(Some(text("TRUE")));
        read_entry(kind, &config).1
    }

    #[test]
    fn a_value_is_default_unless_it_is_set_on_the_resource_itself() {
        assert!(!entry(Resource::Topic, 1).is_default);
        assert!(entry(Resource::Topic, 4).is_default);
        assert!(!entry(Resource::Group, 8).is_default);
        assert!(entry(Resource::Group, 2).is_default);
        assert!(!entry(Resource::Broker, 4).is_default);
        assert!(entry(Resource::Broker, 5).is_default);
        assert_eq!(entry(Resource::Topic, 99).source, ConfigSource::Other(99));
    }

    #[test]
    fn values_are_read_by_their_types() {
        let number = ConfigEntry { value: Some("42".into()), is_default: true, source: ConfigSource::Default };
        let configs = Configs([("on".into(), entry(Resource::Topic, 1)), ("n".into(), number)].into());
        assert!(configs.is_true("on") && !configs.is_true("n") && !configs.is_true("absent"));
        assert_eq!((configs.number("n"), configs.number("on"), configs.value("absent")), (Some(42), None, None));
    }
}
