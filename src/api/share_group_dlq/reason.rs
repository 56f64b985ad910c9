//! The reasons a ShareGroupDLQ's conditions give.

use std::fmt;

/// Reasons of the conditions of a ShareGroupDLQ: a word that users, alerts and tests rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DlqReason {
    // Supported
    Supported,
    ShareVersionTooLow,
    KafkaUnreachable,
    KafkaAuthFailed,
    /// Kafka answers, but not as it should.
    KafkaRefused,
    SecretMissing,
    SecretInvalid,
    ClusterChanged,
    // TopicReady
    Created,
    Exists,
    /// The topic is being created.
    Creating,
    /// The topic is being changed.
    Changing,
    PrefixMismatch,
    InvalidTopicName,
    CreationNotAllowed,
    TopicMissing,
    NotEnabledForGroups,
    AdoptionNotAllowed,
    NotAuthorized,
    PartitionDecreaseNotSupported,
    ReplicationFactorDiffers,
    CompactedTopic,
    SameAsSource,
    TopicOperatorSilent,
    // GroupConfigured
    Enforced,
    DriftCorrected,
    InvalidConfig,
    WaitingForTopic,
    NotAShareGroup,
    // Ready
    Ready,
    ResourceConflict,
    DeletionBlocked,
    // Suspended
    Suspended,
    NotSuspended,
    // Degraded
    MessageSizeBelowSource,
    RetentionBelowSource,
    UnderReplicated,
    PrefixDiffersBetweenBrokers,
    DeadLetterCycle,
    SharedTopic,
    BacklogExpiresSoon,
    LedgerLost,
    NoWarnings,
    // Reconciling
    Progressing,
    UpToDate,
    // Stalled
    NotImplemented,
    NotStalled,
}

impl DlqReason {
    /// The reasons for which a broker drops dead letters: a message that fails while one of them holds is lost.
    pub const LOSING: [Self; 9] = [
        Self::ShareVersionTooLow,
        Self::PrefixMismatch,
        Self::InvalidTopicName,
        Self::CreationNotAllowed,
        Self::TopicMissing,
        Self::Creating,
        Self::NotEnabledForGroups,
        Self::CompactedTopic,
        Self::SameAsSource,
    ];
}

impl fmt::Display for DlqReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
