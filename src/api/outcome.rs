//! The summary of a DLQReplay: the reason of `Succeeded`, and the conditions that follow from it.

use super::{Condition, Time, conditions, conditions::ConditionStatus};
use std::{fmt, str::FromStr};

/// Reasons of the condition `Succeeded` of a DLQReplay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    // At work.
    Previewing,
    WaitingForDLQ,
    WaitingForReplay,
    Sending,
    Settling,
    DLQNotReady,
    KafkaUnreachable,
    Recovering,
    // At rest until somebody changes the spec.
    AwaitingReplay,
    Suspended,
    // Ended well.
    AllSettled,
    SentWithoutCheck,
    NothingSelected,
    Dismissed,
    AlreadyReplayed,
    // Ended as asked.
    Cancelled,
    // Ended badly.
    MessagesReturned,
    NoneSettled,
    Unsettled,
    Expired,
    Interrupted,
    Blocked,
    TokenUnknown,
    SelectionChanged,
    TargetChanged,
    DLQGone,
    LedgerLost,
    Failed,
}

/// What a reason means: the five rows of the table in which all the conditions are columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Working,
    Resting,
    Succeeded,
    Cancelled,
    Failed,
}

impl Reason {
    pub const ALL: [Self; 28] = [
        Self::Previewing,
        Self::WaitingForDLQ,
        Self::WaitingForReplay,
        Self::Sending,
        Self::Settling,
        Self::DLQNotReady,
        Self::KafkaUnreachable,
        Self::Recovering,
        Self::AwaitingReplay,
        Self::Suspended,
        Self::AllSettled,
        Self::SentWithoutCheck,
        Self::NothingSelected,
        Self::Dismissed,
        Self::AlreadyReplayed,
        Self::Cancelled,
        Self::MessagesReturned,
        Self::NoneSettled,
        Self::Unsettled,
        Self::Expired,
        Self::Interrupted,
        Self::Blocked,
        Self::TokenUnknown,
        Self::SelectionChanged,
        Self::TargetChanged,
        Self::DLQGone,
        Self::LedgerLost,
        Self::Failed,
    ];

    pub fn stage(self) -> Stage {
        match self {
            Self::Previewing
            | Self::WaitingForDLQ
            | Self::WaitingForReplay
            | Self::Sending
            | Self::Settling
            | Self::DLQNotReady
            | Self::KafkaUnreachable
            | Self::Recovering => Stage::Working,
            Self::AwaitingReplay | Self::Suspended => Stage::Resting,
            Self::AllSettled
            | Self::SentWithoutCheck
            | Self::NothingSelected
            | Self::Dismissed
            | Self::AlreadyReplayed => Stage::Succeeded,
            Self::Cancelled => Stage::Cancelled,
            Self::MessagesReturned
            | Self::NoneSettled
            | Self::Unsettled
            | Self::Expired
            | Self::Interrupted
            | Self::Blocked
            | Self::TokenUnknown
            | Self::SelectionChanged
            | Self::TargetChanged
            | Self::DLQGone
            | Self::LedgerLost
            | Self::Failed => Stage::Failed,
        }
    }

    /// Whether nothing more will happen to the DLQReplay.
    pub fn is_final(self) -> bool {
        !matches!(self.stage(), Stage::Working | Stage::Resting)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A reason this version does not know, as a newer one may have written it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no reason of Succeeded known to this version")]
pub struct UnknownReason(String);

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        let known = Self::ALL.into_iter().find(|reason| reason.to_string() == text);
        known.ok_or_else(|| UnknownReason(text.to_owned()))
    }
}

/// Status and reason of one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    pub type_: &'static str,
    pub status: ConditionStatus,
    pub reason: String,
}

/// `Succeeded` and every condition that follows from its reason.
pub fn conditions_for(reason: Reason) -> [Derived; 8] {
    let stage = reason.stage();
    let succeeded = match stage {
        Stage::Working | Stage::Resting => ConditionStatus::Unknown,
        Stage::Succeeded => ConditionStatus::True,
        Stage::Cancelled | Stage::Failed => ConditionStatus::False,
    };
    let derived = |type_, status: ConditionStatus| Derived { type_, status, reason: reason.to_string() };
    let interrupted = match reason {
        Reason::Interrupted => "OwnerLost".to_owned(),
        other => other.to_string(),
    };
    [
        derived(conditions::SUCCEEDED, succeeded),
        derived(conditions::COMPLETE, (stage == Stage::Succeeded).into()),
        derived(conditions::FAILED, (stage == Stage::Failed).into()),
        derived(conditions::FINISHED, reason.is_final().into()),
        derived(conditions::RECONCILING, (stage == Stage::Working).into()),
        derived(conditions::STALLED, (stage == Stage::Failed).into()),
        derived(conditions::SUSPENDED, (reason == Reason::Suspended).into()),
        Derived { reason: interrupted, ..derived(conditions::INTERRUPTED, (reason == Reason::Interrupted).into()) },
    ]
}

/// Writes them all. The message goes with `Succeeded` and with whatever is True: eight times the same would bury it.
pub fn set(conditions: &mut Vec<Condition>, reason: Reason, message: &str, generation: Option<i64>, now: &Time) {
    for derived in conditions_for(reason) {
        let tells = derived.type_ == conditions::SUCCEEDED || derived.status == ConditionStatus::True;
        let message = if tells { message } else { "" };
        conditions::set(conditions, derived.type_, derived.status, derived.reason, message, generation, now);
    }
}

/// The reason of `Succeeded` as it stands, if there is one that this version knows.
pub fn reason_of(conditions: &[Condition]) -> Option<Reason> {
    conditions::find(conditions, conditions::SUCCEEDED).and_then(|condition| condition.reason.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{Reason::*, *};
    use ConditionStatus::{False, True, Unknown};
    use jiff::Timestamp;

    /// The table of the API's documentation: reasons, then Succeeded, Complete, Failed, Finished, Reconciling, Stalled.
    const TABLE: [(&[Reason], [ConditionStatus; 6]); 5] = [
        (
            &[
                Previewing,
                WaitingForDLQ,
                WaitingForReplay,
                Sending,
                Settling,
                DLQNotReady,
                KafkaUnreachable,
                Recovering,
            ],
            [Unknown, False, False, False, True, False],
        ),
        (&[AwaitingReplay, Suspended], [Unknown, False, False, False, False, False]),
        (
            &[AllSettled, SentWithoutCheck, NothingSelected, Dismissed, AlreadyReplayed],
            [True, True, False, True, False, False],
        ),
        (&[Cancelled], [False, False, False, True, False, False]),
        (
            &[
                MessagesReturned,
                NoneSettled,
                Unsettled,
                Expired,
                Interrupted,
                Blocked,
                TokenUnknown,
                SelectionChanged,
                TargetChanged,
                DLQGone,
                LedgerLost,
                Failed,
            ],
            [False, False, True, True, False, True],
        ),
    ];

    const COLUMNS: [&str; 6] = [
        conditions::SUCCEEDED,
        conditions::COMPLETE,
        conditions::FAILED,
        conditions::FINISHED,
        conditions::RECONCILING,
        conditions::STALLED,
    ];

    #[test]
    fn every_reason_gives_the_conditions_of_its_row() {
        let mut seen = Vec::new();
        for (reasons, statuses) in TABLE {
            for &reason in reasons {
                let mut conditions = Vec::new();
                set(&mut conditions, reason, "why", Some(7), &Time(Timestamp::UNIX_EPOCH));
                for (type_, status) in COLUMNS.into_iter().zip(statuses) {
                    let condition = conditions::find(&conditions, type_).expect(type_);
                    assert_eq!(condition.status, status.as_str(), "{type_} with {reason}");
                    assert_eq!(condition.reason, reason.to_string());
                    let message = if type_ == conditions::SUCCEEDED || status == True { "why" } else { "" };
                    assert_eq!(condition.message, message, "{type_} with {reason}");
                }
                assert_eq!(conditions::is_true(&conditions, conditions::SUSPENDED), reason == Suspended, "{reason}");
                assert_eq!(
                    conditions::is_true(&conditions, conditions::INTERRUPTED),
                    reason == Interrupted,
                    "{reason}"
                );
                assert_eq!(reason_of(&conditions), Some(reason));
                seen.push(reason);
            }
        }
        assert_eq!(seen, Reason::ALL, "the table has every reason, in the order of the type");
    }

    #[test]
    fn an_interruption_names_its_cause() {
        let mut conditions = Vec::new();
        set(&mut conditions, Interrupted, "", None, &Time(Timestamp::UNIX_EPOCH));
        let interrupted = conditions::find(&conditions, conditions::INTERRUPTED).expect("it is set");
        assert_eq!(interrupted.reason, "OwnerLost");
    }

    #[test]
    fn a_reason_of_a_newer_version_is_unknown_not_guessed() {
        assert_eq!("Teleported".parse::<Reason>(), Err(UnknownReason("Teleported".into())));
    }
}
