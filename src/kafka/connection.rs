//! The wire client: what librdkafka cannot ask a Kafka cluster, asked over tokio with kafka-protocol's messages.
//!
//! A call goes to any broker, to the controller, to a given broker or to the coordinators of groups. Broken connections,
//! elections and moved coordinators are met by asking again until the call's deadline.

mod call;
mod deadline;
mod error;
mod fields;
mod groups;
mod guarded;
mod link;
mod pool;
mod refusal;
mod rounds;
mod text;
mod transport;

#[cfg(test)]
mod tests;

pub use deadline::Deadline;
pub use error::ConnectionError;
pub use refusal::Refusal;

pub(super) use call::Call;
pub(super) use deadline::Pauses;
pub(super) use fields::{FieldError, Fields};
pub(super) use guarded::Guarded;
pub(super) use link::api_versions;
pub(super) use refusal::settled;
pub(super) use rounds::{Step, in_rounds};
pub(super) use text::{group_id, text, topic_name};

use kafka_protocol::messages::{MetadataRequest, MetadataResponse};
use pool::Pool;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transport::Address;

use super::settings::Settings;

/// Which broker a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Whichever answers: for what every broker knows.
    Any,
    /// The one that takes changes.
    Controller,
    Broker(i32),
}

/// A cheap handle on the connections to one cluster.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bootstrap: Result<Vec<Address>, ConnectionError>,
    pool: Pool,
    known: Mutex<Known>,
}

/// What was last heard about the cluster. Forgotten, and asked anew, as soon as it proves wrong.
#[derive(Debug, Default)]
struct Known {
    brokers: BTreeMap<i32, Address>,
    controller: Option<i32>,
    /// The coordinators of groups.
    coordinators: HashMap<String, i32>,
}

impl Connection {
    /// Connects nowhere yet. Bootstrap servers that cannot be read are told by the first call.
    pub fn new(settings: &Settings) -> Self {
        let bootstrap = Address::parse_list(&settings.bootstrap_servers);
        Self(Arc::new(Shared { bootstrap, pool: Pool::new(settings.clone()), known: Mutex::default() }))
    }

    /// Asks until an answer is there or the deadline passes.
    pub async fn ask<C: Call>(&self, route: Route, call: &C, deadline: Deadline) -> Result<C::Answer, ConnectionError> {
        self.ask_until(route, call, deadline, |_| true).await
    }

    /// As [`Self::ask`], and asks again while `is_final` says that the answer tells of a state that passes. The last
    /// answer is given when the deadline passes.
    pub async fn ask_until<C: Call>(
        &self,
        route: Route,
        call: &C,
        deadline: Deadline,
        is_final: impl Fn(&C::Answer) -> bool,
    ) -> Result<C::Answer, ConnectionError> {
        let mut pauses = Pauses::default();
        loop {
            let outcome = self.attempt(route, call, deadline).await;
            let ends = match &outcome {
                Ok(answer) => is_final(answer),
                Err(error) => !error.is_passing(),
            };
            if ends || !pauses.pause(deadline).await {
                return outcome;
            }
            self.forget_brokers();
        }
    }

    /// Asks once. Where another attempt could go elsewhere, a broker that hangs is given half of the time only.
    pub async fn attempt<C: Call>(
        &self,
        route: Route,
        call: &C,
        deadline: Deadline,
    ) -> Result<C::Answer, ConnectionError> {
        let address = self.find(route, deadline).await?;
        let patience = if route == Route::Controller { deadline } else { deadline.half() };
        self.attempt_at(&address, call, patience).await
    }

    async fn attempt_at<C: Call>(
        &self,
        address: &Address,
        call: &C,
        deadline: Deadline,
    ) -> Result<C::Answer, ConnectionError> {
        let pool = &self.0.pool;
        let link = pool.link(address, deadline).await?;
        let outcome = link.ask(call, deadline).await;
        if let Err(error) = &outcome
            && !matches!(error, ConnectionError::AgreeVersion { .. } | ConnectionError::WriteRequest { .. })
        {
            pool.discard(address, &link, error);
        }
        outcome
    }

    async fn find(&self, route: Route, deadline: Deadline) -> Result<Address, ConnectionError> {
        if route == Route::Any {
            return self.any_address();
        }
        if self.known().brokers.is_empty() {
            self.refresh(deadline).await?;
        }
        let known = self.known();
        let id = if let Route::Broker(id) = route { Some(id) } else { known.controller };
        let address = id.and_then(|id| known.brokers.get(&id)).cloned();
        match (address, route) {
            (Some(address), _) => Ok(address),
            (None, Route::Broker(id)) => Err(ConnectionError::FindBroker { id }),
            (None, _) => {
                drop(known);
                self.any_address()
            }
        }
    }

    fn any_address(&self) -> Result<Address, ConnectionError> {
        let bootstrap = self.0.bootstrap.as_ref().map_err(Clone::clone)?;
        let brokers: Vec<Address> = self.known().brokers.values().cloned().collect();
        let all = brokers.into_iter().chain(bootstrap.iter().cloned());
        self.0.pool.most_promising(all).ok_or(ConnectionError::FindBootstrap)
    }

    async fn refresh(&self, deadline: Deadline) -> Result<(), ConnectionError> {
        let request = MetadataRequest::default().with_topics(Some(Vec::new())).with_allow_auto_topic_creation(false);
        let address = self.any_address()?;
        let answer = self.attempt_at(&address, &request, deadline.half()).await?;
        self.learn(&answer);
        Ok(())
    }

    /// Takes the cluster's brokers from an answer to Metadata.
    pub fn learn(&self, answer: &MetadataResponse) {
        let brokers = answer.brokers.iter().filter_map(|broker| {
            let port = u16::try_from(broker.port).ok()?;
            Some((broker.node_id.0, Address::new(broker.host.as_str(), port)))
        });
        let mut known = self.known();
        known.brokers = brokers.collect();
        known.controller = Some(answer.controller_id.0).filter(|id| *id >= 0);
    }

    fn forget_brokers(&self) {
        let mut known = self.known();
        known.brokers.clear();
        known.controller = None;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
