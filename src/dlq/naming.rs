//! How a dead-letter topic may be called.

use super::brokers::BrokerSettings;
use crate::api::ShareGroupDLQ;
use std::collections::BTreeMap;

/// What a name must begin with on a broker: its own prefix, or the operator's where it has none.
pub fn prefix<'a>(broker: &'a BrokerSettings, required: &'a str) -> &'a str {
    if broker.prefix.is_empty() { required } else { &broker.prefix }
}

/// The name of the object's topic: as asked for, as already in use, or the brokers' prefix followed by the group. Where
/// brokers differ the longest prefix is the only one that can satisfy all.
pub fn topic_name(object: &ShareGroupDLQ, brokers: &BTreeMap<i32, BrokerSettings>, required: &str) -> String {
    let in_use = || object.status.as_ref().and_then(|status| status.topic.as_ref()).map(|topic| topic.name.clone());
    let derived = || {
        let longest = brokers.values().map(|broker| prefix(broker, required)).max_by_key(|prefix| prefix.len());
        format!("{}{}", longest.unwrap_or(required), object.spec.group_id)
    };
    object.spec.topic.name.clone().or_else(in_use).unwrap_or_else(derived)
}

/// The brokers that would drop dead letters for a topic of this name, and the prefix each asks for.
pub fn objections<'a>(
    name: &str,
    brokers: &'a BTreeMap<i32, BrokerSettings>,
    required: &'a str,
) -> BTreeMap<i32, &'a str> {
    let asked = brokers.iter().map(|(id, broker)| (*id, prefix(broker, required)));
    asked.filter(|(_, prefix)| !name.starts_with(prefix)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::samples;
    use super::*;
    use crate::api::TopicStatus;

    fn brokers(prefixes: &[&str]) -> BTreeMap<i32, BrokerSettings> {
        let settings = prefixes.iter().map(|prefix| BrokerSettings { prefix: (*prefix).into(), auto_create: false });
        (1..).zip(settings).collect()
    }

    #[test]
    fn an_absent_name_is_made_of_prefix_and_group() {
        let object = samples::object();
        for (prefixes, name) in [
            (vec!["dlq."], "dlq.orders"),
            (vec![""], "req.orders"),
            (vec!["a.", "a.b.", "a."], "a.b.orders"),
            (vec![], "req.orders"),
        ] {
            assert_eq!(topic_name(&object, &brokers(&prefixes), "req."), name, "{prefixes:?}");
        }
    }

    #[test]
    fn a_name_asked_for_or_in_use_stays() {
        let mut object = samples::object();
        let topic = TopicStatus { name: "old.orders".into(), ..Default::default() };
        object.status.get_or_insert_default().topic = Some(topic);
        assert_eq!(topic_name(&object, &brokers(&["new."]), ""), "old.orders");
        object.spec.topic.name = Some("mine".into());
        assert_eq!(topic_name(&object, &brokers(&["new."]), ""), "mine");
    }

    #[test]
    fn each_broker_objects_by_its_own_prefix() {
        let differing = brokers(&["dlq.", "", "dead."]);
        assert_eq!(objections("dlq.orders", &differing, "dlq."), [(3, "dead.")].into());
        assert_eq!(objections("orders", &differing, ""), [(1, "dlq."), (3, "dead.")].into());
        assert_eq!(objections("anything", &brokers(&[""]), ""), [].into());
    }
}
