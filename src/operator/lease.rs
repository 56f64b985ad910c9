//! Which operator process acts: a campaign for a `coordination.k8s.io/v1` Lease.
//!
//! It is written here, not taken from a crate, because the sending protocol needs two things no crate for kube tells:
//! the term (`leaseTransitions`, higher with every change of hands) and a local deadline that is certain to pass before
//! anybody else takes over. The deadline is counted from *before* a renewal was sent and is two thirds of what others
//! wait; they count from *after* they saw the renewal, by a clock of their own. No clock is compared with another.
//!
//! Every write carries the resourceVersion it is based on, so of two writers one is refused (409).

use crate::context::{Leadership, boot_time};
use crate::operator::health::Health;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use std::future::Future;
use std::time::Duration;
use thiserror::Error;
use tokio::time::{sleep, timeout};

/// A candidate looks, and a holder renews, this often within the lease's duration.
const LOOKS_PER_LEASE: u32 = 7;

/// The longest the release of a lease may hold up the end of the process.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Error)]
pub enum LeaseError {
    #[error("the lease could not be read: {0}")]
    ReadLease(#[source] kube::Error),
    #[error("the lease could not be written: {0}")]
    WriteLease(#[source] kube::Error),
    #[error("the API server did not answer within {0:?}")]
    AwaitAnswer(Duration),
    #[error("{0} holds the lease now")]
    KeepLease(String),
}

/// One process that would lead.
pub struct Candidate {
    api: Api<Lease>,
    namespace: String,
    name: String,
    identity: String,
    duration: Duration,
    health: Health,
}

/// A lease as this process last saw it, and when it first saw it so.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    resource_version: Option<String>,
    since: Duration,
}

#[derive(Debug, PartialEq)]
enum Move {
    Create,
    TakeOver,
    Wait,
}

impl Candidate {
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        identity: &str,
        duration: Duration,
        health: Health,
    ) -> Self {
        let api = Api::namespaced(client, namespace);
        let (namespace, name, identity) = (namespace.to_owned(), name.to_owned(), identity.to_owned());
        Self { api, namespace, name, identity, duration, health }
    }

    /// Campaigns until this process leads.
    pub async fn lead(&self) -> Term<'_> {
        let mut seen = None;
        loop {
            match self.attempt(&mut seen).await {
                Ok(Some(term)) => return term,
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "campaigning for the lease failed, trying again"),
            }
            sleep(self.pause()).await;
        }
    }

    async fn attempt(&self, seen: &mut Option<Seen>) -> Result<Option<Term<'_>>, LeaseError> {
        let current = self.read().await?;
        let next = next_move(current.as_ref(), seen, boot_time(), self.duration);
        let lease = match next {
            Move::Wait => return Ok(None),
            Move::Create => self.claimed(Lease::default()),
            Move::TakeOver => self.claimed(current.unwrap_or_default()),
        };
        let asked = boot_time();
        let written = match next {
            Move::Create => self.answer(self.api.create(&PostParams::default(), &lease)).await,
            _ => self.answer(self.api.replace(&self.name, &PostParams::default(), &lease)).await,
        };
        match written {
            Ok(lease) => Ok(Some(Term::new(self, lease, asked))),
            Err(LeaseError::WriteLease(kube::Error::Api(status)))
                if status.is_conflict() || status.is_already_exists() =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn read(&self) -> Result<Option<Lease>, LeaseError> {
        let read = timeout(self.patience(), self.api.get_opt(&self.name)).await;
        let lease = read.map_err(|_| LeaseError::AwaitAnswer(self.patience()))?.map_err(LeaseError::ReadLease)?;
        self.health.saw_api_server();
        Ok(lease)
    }

    async fn answer(&self, request: impl Future<Output = kube::Result<Lease>>) -> Result<Lease, LeaseError> {
        let answer = timeout(self.patience(), request).await;
        let lease = answer.map_err(|_| LeaseError::AwaitAnswer(self.patience()))?.map_err(LeaseError::WriteLease)?;
        self.health.saw_api_server();
        Ok(lease)
    }

    /// The lease with this process as the holder of a new term; what others put into it stays.
    fn claimed(&self, mut lease: Lease) -> Lease {
        let now = Some(MicroTime(jiff::Timestamp::now()));
        let term = transitions(&lease) + 1;
        lease.metadata.name = Some(self.name.clone());
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(self.duration.as_secs()).ok();
        spec.lease_transitions = Some(term);
        spec.acquire_time = now.clone();
        spec.renew_time = now;
        lease
    }

    fn pause(&self) -> Duration {
        self.duration / LOOKS_PER_LEASE
    }

    /// How long an answer is waited for: a lost request must leave time for another one.
    fn patience(&self) -> Duration {
        self.duration / 4
    }

    /// How long a renewal lets this process act, from before it was asked for.
    fn validity(&self) -> Duration {
        self.duration * 2 / 3
    }
}

fn spec(lease: &Lease) -> LeaseSpec {
    lease.spec.clone().unwrap_or_default()
}

fn transitions(lease: &Lease) -> i32 {
    spec(lease).lease_transitions.unwrap_or(0)
}

/// What to do about the lease. A held one may be taken once it was seen unchanged for its full duration, even if it
/// names this process: an earlier one of the same identity may still be at work.
fn next_move(lease: Option<&Lease>, seen: &mut Option<Seen>, now: Duration, own_duration: Duration) -> Move {
    let Some(lease) = lease else {
        *seen = None;
        return Move::Create;
    };
    let spec = spec(lease);
    if spec.holder_identity.as_deref().unwrap_or("").is_empty() {
        return Move::TakeOver;
    }
    let resource_version = lease.resource_version();
    let since = match seen {
        Some(known) if known.resource_version == resource_version => known.since,
        _ => now,
    };
    *seen = Some(Seen { resource_version, since });
    let promised = Duration::from_secs(spec.lease_duration_seconds.unwrap_or(0).unsigned_abs().into());
    if now.saturating_sub(since) < promised.max(own_duration) { Move::Wait } else { Move::TakeOver }
}

/// The lease in hand.
pub struct Term<'a> {
    candidate: &'a Candidate,
    lease: Lease,
    leadership: Leadership,
}

impl<'a> Term<'a> {
    fn new(candidate: &'a Candidate, lease: Lease, asked: Duration) -> Self {
        let Candidate { namespace, name, identity, .. } = candidate;
        let installation = format!("{namespace}/{name}/{}", lease.uid().unwrap_or_default());
        let term = u64::from(transitions(&lease).unsigned_abs());
        let leadership = Leadership::new(identity, &installation, term, asked + candidate.validity());
        Self { candidate, lease, leadership }
    }

    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Renews until the term is lost.
    pub async fn keep(&mut self) {
        let leadership = self.leadership();
        tokio::select! {
            () = leadership.lost() => {}
            error = self.renew_while_possible() => tracing::warn!(%error, "the lease is lost"),
        }
        leadership.end();
    }

    /// Returns only when another process was seen to hold the lease.
    async fn renew_while_possible(&mut self) -> LeaseError {
        loop {
            sleep(self.candidate.pause()).await;
            match self.renew().await {
                Ok(()) => {}
                Err(error @ LeaseError::KeepLease(_)) => return error,
                Err(error) => tracing::warn!(%error, "renewing the lease failed, trying again"),
            }
        }
    }

    async fn renew(&mut self) -> Result<(), LeaseError> {
        let asked = boot_time();
        let mut lease = self.lease.clone();
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime(jiff::Timestamp::now()));
        let api = &self.candidate.api;
        match self.candidate.answer(api.replace(&self.candidate.name, &PostParams::default(), &lease)).await {
            Ok(lease) => {
                self.lease = lease;
                self.leadership.extend(asked + self.candidate.validity());
                Ok(())
            }
            Err(error) => {
                // The write may have arrived, or somebody may have annotated the lease: look before the next one.
                self.look_again().await?;
                Err(error)
            }
        }
    }

    async fn look_again(&mut self) -> Result<(), LeaseError> {
        let lease = self.candidate.read().await?.unwrap_or_default();
        let (ours, theirs) = (spec(&self.lease), spec(&lease));
        if (&ours.holder_identity, ours.lease_transitions) != (&theirs.holder_identity, theirs.lease_transitions) {
            return Err(LeaseError::KeepLease(theirs.holder_identity.unwrap_or_else(|| "nobody".into())));
        }
        self.lease = lease;
        Ok(())
    }

    /// Ends the term and lets the next candidate in at once.
    pub async fn release(mut self) {
        self.leadership.end();
        match timeout(RELEASE_TIMEOUT, self.empty_out()).await {
            Ok(Ok(())) => tracing::info!("released the lease"),
            Ok(Err(error)) => tracing::warn!(%error, "the lease could not be released, it will run out"),
            Err(_) => tracing::warn!("the lease could not be released in time, it will run out"),
        }
    }

    async fn empty_out(&mut self) -> Result<(), LeaseError> {
        // A renewal that was cut short may have moved the resourceVersion.
        self.look_again().await?;
        let mut lease = self.lease.clone();
        lease.spec.get_or_insert_default().holder_identity = Some(String::new());
        let api = &self.candidate.api;
        self.candidate.answer(api.replace(&self.candidate.name, &PostParams::default(), &lease)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    const OWN: Duration = Duration::from_secs(15);

    fn held(by: &str, version: &str, seconds: i32) -> Lease {
        let metadata = ObjectMeta { resource_version: Some(version.into()), ..Default::default() };
        let spec = LeaseSpec {
            holder_identity: Some(by.into()),
            lease_duration_seconds: Some(seconds),
            lease_transitions: Some(4),
            ..Default::default()
        };
        Lease { metadata, spec: Some(spec) }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_missing_lease_is_created_and_a_released_one_taken_at_once() {
        let mut seen = None;
        assert_eq!(next_move(None, &mut seen, at(5), OWN), Move::Create);
        assert_eq!(next_move(Some(&held("", "1", 15)), &mut seen, at(5), OWN), Move::TakeOver);
        assert_eq!(next_move(Some(&Lease::default()), &mut seen, at(5), OWN), Move::TakeOver);
    }

    #[test]
    fn a_held_lease_is_taken_only_after_its_full_duration_unchanged() {
        let mut seen = None;
        let mut moves = |version, now| next_move(Some(&held("b", version, 15)), &mut seen, at(now), OWN);
        assert_eq!(moves("1", 100), Move::Wait);
        assert_eq!(moves("1", 114), Move::Wait);
        assert_eq!(moves("2", 115), Move::Wait, "a renewal starts the wait anew");
        assert_eq!(moves("2", 129), Move::Wait);
        assert_eq!(moves("2", 130), Move::TakeOver);
    }

    #[test]
    fn the_longer_of_both_durations_counts() {
        let mut seen = None;
        let lease = held("b", "1", 60);
        assert_eq!(next_move(Some(&lease), &mut seen, at(0), OWN), Move::Wait);
        assert_eq!(next_move(Some(&lease), &mut seen, at(59), OWN), Move::Wait);
        assert_eq!(next_move(Some(&lease), &mut seen, at(60), OWN), Move::TakeOver);
        let (mut seen, lease) = (None, held("b", "1", 1));
        assert_eq!(next_move(Some(&lease), &mut seen, at(0), OWN), Move::Wait);
        assert_eq!(next_move(Some(&lease), &mut seen, at(14), OWN), Move::Wait);
    }

    #[test]
    fn a_lease_that_names_this_process_is_waited_for_like_any_other() {
        let mut seen = None;
        assert_eq!(next_move(Some(&held("own", "1", 15)), &mut seen, at(0), OWN), Move::Wait);
    }
}
