//! The error codes in a broker's answers, told apart and named.

use kafka_protocol::ResponseError;
use std::fmt;

/// A broker's own error for one topic, partition, group or setting of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kafka's error code; see the protocol guide's table.
    pub code: i16,
    /// The broker's explanation; empty where it gave none.
    pub message: String,
}

impl Refusal {
    pub(in crate::kafka) fn new(code: i16, message: Option<&str>) -> Self {
        Self { code, message: message.unwrap_or_default().into() }
    }

    /// None for code 0, which is success.
    pub(in crate::kafka) fn from_code(code: i16, message: Option<&str>) -> Option<Self> {
        (code != 0).then(|| Self::new(code, message))
    }

    /// The error's name as Kafka's documentation has it, such as `GROUP_ID_NOT_FOUND`.
    pub fn name(&self) -> String {
        match self.error() {
            None => "NONE".into(),
            Some(ResponseError::Unknown(code)) => format!("error {code}"),
            Some(error) => screaming(&error.to_string()),
        }
    }

    pub fn is_not_authorized(&self) -> bool {
        use ResponseError::*;
        let refused = [
            TopicAuthorizationFailed,
            GroupAuthorizationFailed,
            ClusterAuthorizationFailed,
            TransactionalIdAuthorizationFailed,
        ];
        self.error().is_some_and(|error| refused.contains(&error))
    }

    /// The topic, partition or group does not exist.
    pub fn is_unknown(&self) -> bool {
        use ResponseError::*;
        let unknown = [UnknownTopicOrPartition, UnknownTopicId, GroupIdNotFound, ResourceNotFound];
        self.error().is_some_and(|error| unknown.contains(&error))
    }

    /// A state that passes by itself, such as an election. A topic that is unknown is not counted: whoever asks for it
    /// wants to hear so.
    pub(in crate::kafka) fn is_passing(&self) -> bool {
        self.error().is_some_and(|error| error.is_retriable()) && !self.is_unknown()
    }

    fn error(&self) -> Option<ResponseError> {
        ResponseError::try_from_code(self.code)
    }
}

/// The code is success, or an error that does not pass by itself.
pub fn settled(code: i16) -> bool {
    !Refusal::new(code, None).is_passing()
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => write!(f, "{}", self.name()),
            message => write!(f, "{} ({message})", self.name()),
        }
    }
}

/// `GroupIdNotFound` as `GROUP_ID_NOT_FOUND`.
fn screaming(camel: &str) -> String {
    let mut name = String::with_capacity(camel.len() + 4);
    for (at, letter) in camel.chars().enumerate() {
        if at > 0 && letter.is_uppercase() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_carry_the_names_of_kafkas_documentation() {
        let named = |code| Refusal::new(code, None).to_string();
        assert_eq!(named(69), "GROUP_ID_NOT_FOUND");
        assert_eq!(named(36), "TOPIC_ALREADY_EXISTS");
        assert_eq!(named(4711), "error 4711");
        assert_eq!(Refusal::new(40, Some("no such key")).to_string(), "INVALID_CONFIG (no such key)");
    }

    #[test]
    fn refusals_are_told_apart() {
        assert!([29, 30, 31, 53].iter().all(|&code| Refusal::new(code, None).is_not_authorized()));
        assert!([3, 69, 100].iter().all(|&code| Refusal::new(code, None).is_unknown()));
        assert!([5, 6, 7, 14, 15, 16, 41].iter().all(|&code| Refusal::new(code, None).is_passing()));
        assert!([0, 3, 17, 29, 36, 40, 69, 100, 4711].iter().all(|&code| !Refusal::new(code, None).is_passing()));
        assert_eq!(Refusal::from_code(0, None), None);
    }
}
