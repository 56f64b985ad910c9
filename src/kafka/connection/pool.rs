//! The open links by address: made when first needed, made anew when broken.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::{Instant, timeout_at};

use super::link::Link;
use super::transport::Address;
use super::{ConnectionError, Deadline};
use crate::kafka::settings::Settings;

#[derive(Debug)]
pub struct Pool {
    settings: Settings,
    slots: Mutex<BTreeMap<Address, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Held while connecting, so that a broker gets one connection however many callers want it.
    opening: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    link: Option<Arc<Link>>,
    /// The last attempt's failure, as long as none has succeeded since.
    failure: Option<(Instant, ConnectionError)>,
}

impl Pool {
    pub fn new(settings: Settings) -> Self {
        Self { settings, slots: Mutex::default() }
    }

    /// The link to a broker. Callers who wait for the same attempt to connect share its failure.
    pub async fn link(&self, address: &Address, deadline: Deadline) -> Result<Arc<Link>, ConnectionError> {
        let slot = self.slot(address);
        if let Some(link) = slot.open_link() {
            return Ok(link);
        }
        let asked = Instant::now();
        let _opening = timeout_at(deadline.into(), slot.opening.lock()).await.map_err(|_| busy(address))?;
        if let Some(link) = slot.open_link() {
            return Ok(link);
        }
        if let Some(failure) = slot.failure_since(asked) {
            return Err(failure);
        }
        match Link::open(address, &self.settings, deadline).await {
            Ok(link) => Ok(slot.put(link)),
            Err(error) => {
                slot.state().failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Takes a link out of use after a failure on it. Calls under way on it may still end well.
    pub fn discard(&self, address: &Address, link: &Arc<Link>, error: &ConnectionError) {
        let slot = self.slot(address);
        let mut state = slot.state();
        state.failure = Some((Instant::now(), error.clone()));
        if state.link.as_ref().is_some_and(|held| Arc::ptr_eq(held, link)) {
            state.link = None;
        }
    }

    /// The address to try first: one without a failure before those with one, an open link before one yet to be made.
    pub fn most_promising(&self, addresses: impl Iterator<Item = Address>) -> Option<Address> {
        let ranked = addresses.map(|address| {
            let slot = self.slot(&address);
            let failed = slot.state().failure.as_ref().map(|(at, _)| *at);
            ((failed, slot.open_link().is_none()), address)
        });
        // The first of equals, which min_by_key gives: bootstrap servers are tried in the order they were written.
        ranked.min_by_key(|(rank, _)| *rank).map(|(_, address)| address)
    }

    fn slot(&self, address: &Address) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(address.clone()).or_default())
    }
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_link(&self) -> Option<Arc<Link>> {
        self.state().link.clone().filter(|link| link.is_open())
    }

    fn failure_since(&self, asked: Instant) -> Option<ConnectionError> {
        let state = self.state();
        state.failure.as_ref().filter(|(at, _)| *at >= asked).map(|(_, error)| error.clone())
    }

    fn put(&self, link: Link) -> Arc<Link> {
        let link = Arc::new(link);
        *self.state() = State { link: Some(Arc::clone(&link)), failure: None };
        link
    }
}

fn busy(address: &Address) -> ConnectionError {
    ConnectionError::ReachBroker { address: address.to_string(), reason: "it takes too long to connect".into() }
}
