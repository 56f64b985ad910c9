//! What can go wrong when a Kafka cluster is asked or changed, in sentences that name the broker or the resource.

use thiserror::Error;

use crate::kafka::connection::{ConnectionError, Refusal};

#[derive(Clone, Debug, Error)]
pub enum AdminError {
    #[error("Kafka does not answer: broker {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("the connection to Kafka cannot be used: {0}")]
    UseConnection(ConnectionError),
    #[error("Kafka does not allow this principal to {action}: {refusal}")]
    NotAuthorized { action: String, refusal: Refusal },
    #[error("topic {topic} already exists")]
    TopicExists { topic: String },
    #[error("topic {topic} was created, but some of its partitions still have no leader")]
    AwaitLeaders { topic: String },
    #[error("Kafka refuses to {action}: {refusal}")]
    Refused { action: String, refusal: Refusal },
    #[error("Kafka left {what} out of its answer to {action}")]
    LeftOut { action: String, what: String },
}

impl AdminError {
    /// The error for a refusal of `action`, a phrase that follows "refuses to".
    pub(in crate::kafka) fn refused(action: impl Into<String>, refusal: Refusal) -> Self {
        let action = action.into();
        if refusal.is_not_authorized() {
            Self::NotAuthorized { action, refusal }
        } else {
            Self::Refused { action, refusal }
        }
    }

    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::NotAuthorized { refusal, .. } | Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    pub fn is_not_authorized(&self) -> bool {
        matches!(self, Self::NotAuthorized { .. })
    }

    /// The topic, partition or group that was named does not exist.
    pub fn is_unknown(&self) -> bool {
        self.refusal().is_some_and(Refusal::is_unknown)
    }

    /// No broker answered in time: nothing is known about what was asked, and a change may or may not have been made.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

impl From<ConnectionError> for AdminError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::ReachBroker { address, reason } => Self::Unreachable { address, reason },
            ConnectionError::FindBroker { id } => Self::Unreachable {
                address: id.to_string(),
                reason: "it is not among the cluster's live brokers".into(),
            },
            ConnectionError::AwaitAnswer { .. } | ConnectionError::KeepConnection { .. } => {
                Self::Unreachable { address: error.address().into(), reason: error.reason() }
            }
            other => Self::UseConnection(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_was_refused() {
        let error = AdminError::refused("describe share group g", Refusal::new(30, None));
        assert!(error.is_not_authorized());
        let told = "Kafka does not allow this principal to describe share group g: GROUP_AUTHORIZATION_FAILED";
        assert_eq!(error.to_string(), told);
    }
}
