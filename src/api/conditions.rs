//! Conditions as the Kubernetes API conventions want them: one per type, and a time that moves only when the status changes.

use super::{Condition, Time, clip};
use std::fmt;

// Of ShareGroupDLQ.
pub const SUPPORTED: &str = "Supported";
pub const TOPIC_READY: &str = "TopicReady";
pub const GROUP_CONFIGURED: &str = "GroupConfigured";
pub const READY: &str = "Ready";
pub const DEGRADED: &str = "Degraded";

// Of DLQReplay.
pub const PREVIEWED: &str = "Previewed";
pub const SUCCEEDED: &str = "Succeeded";
pub const COMPLETE: &str = "Complete";
pub const FAILED: &str = "Failed";
pub const FINISHED: &str = "Finished";
pub const INTERRUPTED: &str = "Interrupted";

// Of both.
pub const SUSPENDED: &str = "Suspended";
pub const RECONCILING: &str = "Reconciling";
pub const STALLED: &str = "Stalled";

/// Longest message of a condition, in characters. A status holds ten of them and has to stay below 64 KiB.
pub const LONGEST_MESSAGE: usize = 2048;

/// The three values of a condition's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}

impl ConditionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Sets the condition of that type, in place. `lastTransitionTime` becomes `now` only if the status changes or the
/// condition is new. A message longer than [`LONGEST_MESSAGE`] is cut.
pub fn set(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: ConditionStatus,
    reason: impl fmt::Display,
    message: &str,
    generation: Option<i64>,
    now: &Time,
) {
    let known = conditions.iter_mut().find(|condition| condition.type_ == type_);
    let unchanged = known.as_ref().filter(|condition| condition.status == status.as_str());
    let condition = Condition {
        last_transition_time: unchanged.map_or(now, |condition| &condition.last_transition_time).clone(),
        message: clip(message, LONGEST_MESSAGE),
        observed_generation: generation,
        reason: reason.to_string(),
        status: status.as_str().to_owned(),
        type_: type_.to_owned(),
    };
    match known {
        Some(place) => *place = condition,
        None => conditions.push(condition),
    }
}

/// Takes the condition of that type away.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|condition| condition.type_ != type_);
}

/// The condition of that type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of that type is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::{ConditionStatus::*, *};
    use jiff::Timestamp;

    fn at(second: i64) -> Time {
        Time(Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(second))
    }

    #[test]
    fn the_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        let rows = [
            (1, False, "TopicMissing", 1),
            (2, False, "CreationNotAllowed", 1),
            (3, True, "Exists", 3),
            (4, True, "Created", 3),
            (5, Unknown, "KafkaUnreachable", 5),
        ];
        for (second, status, reason, expected) in rows {
            set(&mut conditions, READY, status, reason, "", Some(second), &at(second));
            let [condition] = conditions.as_slice() else { panic!("one condition per type: {conditions:?}") };
            assert_eq!(condition.last_transition_time, at(expected), "after {reason}");
            assert_eq!((condition.status.as_str(), condition.reason.as_str()), (status.as_str(), reason));
            assert_eq!(condition.observed_generation, Some(second));
        }
    }

    #[test]
    fn conditions_keep_their_order_and_are_found_by_type() {
        let mut conditions = Vec::new();
        for type_ in [READY, STALLED, READY] {
            set(&mut conditions, type_, True, "Exists", "", None, &at(1));
        }
        assert_eq!(conditions.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), [READY, STALLED]);
        assert!(is_true(&conditions, STALLED) && !is_true(&conditions, SUSPENDED));
        remove(&mut conditions, STALLED);
        assert_eq!(find(&conditions, STALLED), None);
    }

    #[test]
    fn a_message_too_long_for_a_status_is_cut() {
        let mut conditions = Vec::new();
        set(&mut conditions, READY, True, "Exists", &"x".repeat(100_000), None, &at(1));
        assert_eq!(conditions[0].message.chars().count(), LONGEST_MESSAGE);
    }
}
