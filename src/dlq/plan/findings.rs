//! What a plan has to tell, and the conditions made of it.

use super::Action;
use crate::api::DlqReason as Reason;
use crate::api::conditions::{self, ConditionStatus};
use crate::kafka::admin::AdminError;

/// Whether it says that a change is on its way.
pub fn is_pending(reason: Reason) -> bool {
    matches!(reason, Reason::Creating | Reason::Changing)
}

fn of_trouble(error: &AdminError) -> Reason {
    match error {
        AdminError::Unreachable { .. } | AdminError::UseConnection(_) => Reason::KafkaUnreachable,
        AdminError::NotAuthorized { .. } => Reason::NotAuthorized,
        _ => Reason::KafkaRefused,
    }
}

/// What it takes to get out of a state, for kstatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    Good,
    /// Another try may mend it.
    Waiting,
    /// Somebody has to change something.
    Stuck,
}

/// One condition that counts towards Ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub status: ConditionStatus,
    pub reason: Reason,
    pub message: String,
    pub outlook: Outlook,
}

impl Finding {
    pub fn good(reason: Reason, message: impl Into<String>) -> Self {
        Self { status: ConditionStatus::True, reason, message: message.into(), outlook: Outlook::Good }
    }

    pub fn waiting(reason: Reason, message: impl Into<String>) -> Self {
        Self { status: ConditionStatus::False, reason, message: message.into(), outlook: Outlook::Waiting }
    }

    /// What is wrong with Kafka; tried again later and later.
    pub fn trouble(error: &AdminError) -> Self {
        Self::waiting(of_trouble(error), format!("{error}; it is tried again by itself"))
    }

    pub fn stuck(reason: Reason, message: impl Into<String>) -> Self {
        Self { status: ConditionStatus::False, reason, message: message.into(), outlook: Outlook::Stuck }
    }

    /// What can't be judged because of `cause`.
    fn unknown(cause: &Self) -> Self {
        Self { status: ConditionStatus::Unknown, ..cause.clone() }
    }

    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub reason: Reason,
    pub message: String,
}

/// All that is told of an object in its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub supported: Finding,
    pub topic: Finding,
    pub group: Finding,
    pub conflict: Option<Finding>,
    pub warnings: Vec<Warning>,
    pub suspended: bool,
    /// Ready's message while it is True.
    pub summary: String,
}

/// A condition as it is to be, still without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub type_: &'static str,
    pub status: ConditionStatus,
    pub reason: Reason,
    pub message: String,
}

impl Verdict {
    /// Nothing is known of topic and group because of `cause`.
    pub fn without_kafka(cause: Finding, suspended: bool) -> Self {
        let (topic, group) = (Finding::unknown(&cause), Finding::unknown(&cause));
        Self { supported: cause, topic, group, conflict: None, warnings: vec![], suspended, summary: String::new() }
    }

    /// The verdict when `action` was refused or could not be carried out.
    pub fn after_failure(mut self, action: &Action, error: &AdminError) -> Self {
        let reason = match (of_trouble(error), error) {
            // The topic is there, or soon will be: the next look tells.
            (_, AdminError::TopicExists { .. } | AdminError::AwaitLeaders { .. }) => return self,
            (Reason::KafkaUnreachable, _) => return self.cut_off(error),
            (Reason::KafkaRefused, _) => Reason::InvalidConfig,
            (reason, _) => reason,
        };
        let failed = Finding::stuck(reason, error.to_string());
        if action.concerns_topic() {
            self.topic = failed;
        } else {
            self.group = failed;
        }
        self
    }

    fn cut_off(self, error: &AdminError) -> Self {
        let without = Self::without_kafka(Finding::trouble(error), self.suspended);
        Self { conflict: self.conflict, warnings: self.warnings, ..without }
    }

    /// The worst of what Ready sums up.
    pub fn ready(&self) -> Finding {
        let parts = [self.conflict.as_ref(), Some(&self.supported), Some(&self.topic), Some(&self.group)];
        let worst = parts.into_iter().flatten().find(|part| !part.is_true());
        match worst {
            Some(worst) => Finding { status: ConditionStatus::False, ..worst.clone() },
            None => Finding::good(Reason::Ready, self.summary.clone()),
        }
    }

    /// Every condition, in the order in which they are read.
    pub fn conditions(&self) -> Vec<Told> {
        let ready = self.ready();
        let told = |type_, finding: &Finding| Told {
            type_,
            status: finding.status,
            reason: finding.reason,
            message: finding.message.clone(),
        };
        vec![
            told(conditions::READY, &ready),
            told(conditions::SUPPORTED, &self.supported),
            told(conditions::TOPIC_READY, &self.topic),
            told(conditions::GROUP_CONFIGURED, &self.group),
            self.degraded(),
            self.suspension(),
            Told::reconciling(&ready),
            Told::stalled(&ready),
        ]
    }

    fn degraded(&self) -> Told {
        let messages: Vec<_> = self.warnings.iter().map(|warning| warning.message.as_str()).collect();
        Told {
            type_: conditions::DEGRADED,
            status: ConditionStatus::from(!self.warnings.is_empty()),
            reason: self.warnings.first().map_or(Reason::NoWarnings, |warning| warning.reason),
            message: messages.join("; "),
        }
    }

    fn suspension(&self) -> Told {
        let (reason, message) = match self.suspended {
            true => (Reason::Suspended, "nothing is changed in Kafka while spec.suspend is true"),
            false => (Reason::NotSuspended, ""),
        };
        Told {
            type_: conditions::SUSPENDED,
            status: ConditionStatus::from(self.suspended),
            reason,
            message: message.into(),
        }
    }
}

/// What kstatus reads, made of Ready's outlook.
impl Told {
    fn reconciling(ready: &Finding) -> Self {
        Self::kstatus(conditions::RECONCILING, ready, Outlook::Waiting, Reason::Progressing, Reason::UpToDate)
    }

    fn stalled(ready: &Finding) -> Self {
        Self::kstatus(conditions::STALLED, ready, Outlook::Stuck, ready.reason, Reason::NotStalled)
    }

    fn kstatus(type_: &'static str, ready: &Finding, outlook: Outlook, yes: Reason, no: Reason) -> Self {
        let holds = ready.outlook == outlook;
        let (reason, message) = if holds { (yes, ready.message.clone()) } else { (no, String::new()) };
        Self { type_, status: holds.into(), reason, message }
    }
}
