//! Our strings as kafka-protocol's.

use kafka_protocol::messages::{GroupId, TopicName};
use kafka_protocol::protocol::StrBytes;

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.into())
}

pub fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

pub fn group_id(id: &str) -> GroupId {
    GroupId(text(id))
}
