//! How an end is told: its reason, and a sentence with what happened and the way out. Pure.

use super::account::{Account, count};
use super::steps::Figures;
use crate::api::outcome::Reason;
use crate::replay::canary::Verdict;

pub fn explain(verdict: &Verdict, account: &Account, figures: Figures) -> (Reason, String) {
    let (sent, selected) = (count(&account.sent), count(&account.selected));
    let rest = match selected - sent {
        0 => String::new(),
        rest => format!("; the other {rest} are untouched in the dead-letter topic"),
    };
    match verdict {
        Verdict::AllSettled => all_settled(account, sent),
        Verdict::Returned => (Reason::MessagesReturned, returned(account, sent, &rest)),
        Verdict::NoneSettled => (
            Reason::NoneSettled,
            format!(
                "none of the step's messages was settled in time ({sent} sent in all{rest}). See that the group's consumers run and take messages, then make a new DLQReplay"
            ),
        ),
        Verdict::Unsettled(cause) => (
            Reason::Unsettled,
            format!(
                "{} of {sent} sent messages are settled, of the others it is not known in time: {cause}{rest}. Nothing more is sent; make a new DLQReplay for the rest",
                figures.settled
            ),
        ),
        Verdict::Expired => (
            Reason::Expired,
            format!(
                "{} sent messages were deleted from the target before the group had settled them, perhaps unread{rest}. Look at the target's retention",
                figures.expired
            ),
        ),
        Verdict::Cancelled => (Reason::Cancelled, format!("cancelled: {sent} of {selected} sent{rest}")),
    }
}

fn all_settled(account: &Account, sent: u64) -> (Reason, String) {
    match count(&account.uncertain) {
        0 => (Reason::AllSettled, format!("all {sent} messages were sent and settled, and none came back")),
        uncertain => (
            Reason::Unsettled,
            format!(
                "{sent} messages were sent and settled; {uncertain} are uncertain (status.uncertain): readers with read_uncommitted may have seen them, others have not. Replay them with selection.includeReplayed once you know"
            ),
        ),
    }
}

fn returned(account: &Account, sent: u64, rest: &str) -> String {
    let first = account.told.first().map(|one| format!(" ({})", one.now.message)).unwrap_or_default();
    let returned = account.returned();
    format!(
        "{returned} of {sent} sent messages came back to the dead-letter topic{first}: the problem is still there{rest}. Mend the consumer, then make a new DLQReplay"
    )
}
