//! Owning a dead-letter topic: the one producer that may send its messages, and the ledger that says what was sent.
//!
//! Safety rests on Kafka's fencing alone. A new owner first cuts the old one off (`init_transactions`), only then reads
//! the ledger, and then finds out what became of everything that was begun and has no outcome. Nothing is ever aborted
//! or sent again by an owner that met an error: it drops its producer and becomes a new owner.

use super::recover::{self, RecoverError};
use crate::context::Leadership;
use crate::kafka::TopicId;
use crate::kafka::admin::Admin;
use crate::kafka::ledger::{Claim, Entry, History, Ledger, LedgerError};
use crate::kafka::sender::{Acknowledged, Outgoing, SendError, Sender};
use crate::kafka::settings::Settings;
use crate::replay::now;

/// Where a dead-letter topic and its ledger are.
#[derive(Clone, Debug)]
pub struct Place {
    pub admin: Admin,
    pub settings: Settings,
    pub ledger: Ledger,
    pub dead_letter_topic: TopicId,
}

#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    #[error("the lease was lost")]
    LoseLease,
    #[error(
        "another installation of the operator, {other}, works on this dead-letter topic with the same ledger; only one may: remove one of the two, or give each a Kafka cluster of its own"
    )]
    MeetOther { other: String },
    #[error("{operator} has taken over (term {term})")]
    MeetNewer { operator: String, term: u64 },
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Recover(#[from] RecoverError),
}

/// The producer of one dead-letter topic while this process owns it.
pub struct Owner {
    place: Place,
    leadership: Leadership,
    sender: Sender,
}

impl Owner {
    /// Fences every earlier owner, reads what they did, claims the topic and clears up what they left open.
    ///
    /// Gives, beside the history, the claim that stood before this one.
    pub async fn take(place: &Place, leadership: &Leadership) -> Result<(Owner, History, Option<Claim>), OwnError> {
        held(leadership)?;
        let id = format!("redrive.{}.{}", place.ledger.topic, place.dead_letter_topic);
        let sender = Sender::own(&place.settings, &id).await?;
        let history = place.ledger.read(&place.admin, &place.settings, place.dead_letter_topic).await?;
        check_claim(history.claim.as_ref(), leadership)?;
        let mut owner = Owner { place: place.clone(), leadership: leadership.clone(), sender };
        let open = recover::find_open(&history);
        let mut entries = vec![owner.claim()];
        if !open.is_empty() {
            entries.extend(recover::resolve(&owner.place, open).await?);
        }
        owner = owner.record(entries).await?;
        let predecessor = history.claim;
        // Read again rather than merged: what is reported is what the ledger says.
        let history = place.ledger.read(&place.admin, &place.settings, place.dead_letter_topic).await?;
        Ok((owner, history, predecessor))
    }

    /// Commits entries of the ledger, and nothing else, in one transaction.
    pub async fn record(self, entries: Vec<Entry>) -> Result<Owner, OwnError> {
        let (owner, _) = self.send(Vec::new(), move |_| entries).await?;
        Ok(owner)
    }

    /// Sends records and, in the same transaction, the entries that tell of them.
    pub async fn send(
        self,
        records: Vec<Outgoing>,
        entries: impl FnOnce(&[Acknowledged]) -> Vec<Entry> + Send + 'static,
    ) -> Result<(Owner, Vec<Acknowledged>), OwnError> {
        held(&self.leadership)?;
        let Owner { place, leadership, sender } = self;
        let (ledger, topic) = (place.ledger.clone(), place.dead_letter_topic);
        let closing = move |acknowledged: &[Acknowledged]| {
            entries(acknowledged).iter().map(|entry| entry.outgoing(&ledger, topic)).collect()
        };
        let (sender, acknowledged, _) = sender.transact(records, closing).await?;
        Ok((Owner { place, leadership, sender }, acknowledged))
    }

    fn claim(&self) -> Entry {
        Entry::Claim(Claim {
            operator: self.leadership.identity().into(),
            installation: self.leadership.installation().into(),
            term: self.leadership.term(),
            at: now(),
        })
    }
}

fn held(leadership: &Leadership) -> Result<(), OwnError> {
    if leadership.is_held() { Ok(()) } else { Err(OwnError::LoseLease) }
}

/// Terms of one installation can be compared. Of two installations the one that came last goes on until it meets the
/// other's claim again: `fenced twice by another installation` is decided by who counts it, the run.
fn check_claim(claim: Option<&Claim>, leadership: &Leadership) -> Result<(), OwnError> {
    match claim {
        Some(claim) if claim.installation == leadership.installation() && claim.term > leadership.term() => {
            Err(OwnError::MeetNewer { operator: claim.operator.clone(), term: claim.term })
        }
        _ => Ok(()),
    }
}
