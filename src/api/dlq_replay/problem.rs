//! What a preview finds that would go wrong, and which of it keeps a replay from starting.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that would go wrong, or that one should know.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// What kind of problem.
    #[serde(rename = "type")]
    pub type_: ProblemType,

    /// Whether it keeps a replay from starting.
    pub blocking: bool,

    /// Messages it is about.
    #[schemars(range(min = 0))]
    pub messages: i64,

    /// What is wrong, and the way out.
    #[schemars(length(max = 4096))]
    pub message: String,
}

impl Problem {
    /// A problem that blocks, or warns, as its type does.
    pub fn new(type_: ProblemType, messages: i64, message: impl Into<String>) -> Self {
        Self { type_, blocking: type_.blocks(), messages, message: message.into() }
    }
}

/// What kind of problem a preview found.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemType {
    TargetMissing,
    NotAuthorized,
    PayloadUnavailable,
    TooLarge,
    OtherReaders,
    DeadLettersWouldBeLost,
    GroupNotInitialised,
    NotFenceable,
    SourceRecreated,
    UnknownSource,
    NoSettlingGroup,
    NoLiveConsumers,
    AlreadyReplayed,
    HeadersLost,
    PayloadExpiresSoon,
    DuplicateEntries,
    StepTimeoutShort,
    PartitionsDiffer,
    TimestampsImplausible,
    NewerRecordSameKey,
    AbortedOriginal,
}

impl ProblemType {
    pub const ALL: [Self; 21] = [
        Self::TargetMissing,
        Self::NotAuthorized,
        Self::PayloadUnavailable,
        Self::TooLarge,
        Self::OtherReaders,
        Self::DeadLettersWouldBeLost,
        Self::GroupNotInitialised,
        Self::NotFenceable,
        Self::SourceRecreated,
        Self::UnknownSource,
        Self::NoSettlingGroup,
        Self::NoLiveConsumers,
        Self::AlreadyReplayed,
        Self::HeadersLost,
        Self::PayloadExpiresSoon,
        Self::DuplicateEntries,
        Self::StepTimeoutShort,
        Self::PartitionsDiffer,
        Self::TimestampsImplausible,
        Self::NewerRecordSameKey,
        Self::AbortedOriginal,
    ];

    /// Whether it keeps a replay from starting; the others warn.
    pub fn blocks(self) -> bool {
        match self {
            Self::TargetMissing
            | Self::NotAuthorized
            | Self::PayloadUnavailable
            | Self::TooLarge
            | Self::OtherReaders
            | Self::DeadLettersWouldBeLost
            | Self::GroupNotInitialised
            | Self::NotFenceable
            | Self::SourceRecreated
            | Self::UnknownSource
            | Self::NoSettlingGroup => true,
            Self::NoLiveConsumers
            | Self::AlreadyReplayed
            | Self::HeadersLost
            | Self::PayloadExpiresSoon
            | Self::DuplicateEntries
            | Self::StepTimeoutShort
            | Self::PartitionsDiffer
            | Self::TimestampsImplausible
            | Self::NewerRecordSameKey
            | Self::AbortedOriginal => false,
        }
    }

    /// Whether it is about single messages, which `onUnsendable: Skip` leaves out instead of blocking.
    pub fn skippable(self) -> bool {
        matches!(
            self,
            Self::TargetMissing
                | Self::NotAuthorized
                | Self::PayloadUnavailable
                | Self::TooLarge
                | Self::SourceRecreated
                | Self::UnknownSource
        )
    }
}

impl fmt::Display for ProblemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::ProblemType;

    #[test]
    fn some_problems_block_and_only_those_about_single_messages_can_be_skipped() {
        let (blocking, warning): (Vec<_>, Vec<_>) = ProblemType::ALL.into_iter().partition(|problem| problem.blocks());
        assert_eq!((blocking.len(), warning.len()), (11, 10));
        assert!(warning.iter().all(|problem| !problem.skippable()));
        let of_the_whole: Vec<_> =
            blocking.iter().filter(|problem| !problem.skippable()).map(ToString::to_string).collect();
        assert_eq!(
            of_the_whole,
            ["OtherReaders", "DeadLettersWouldBeLost", "GroupNotInitialised", "NotFenceable", "NoSettlingGroup"]
        );
    }
}
