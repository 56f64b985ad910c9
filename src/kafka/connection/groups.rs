//! Bulk calls to the coordinators of groups.

use futures::future::join_all;
use kafka_protocol::messages::FindCoordinatorRequest;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::protocol::StrBytes;
use std::collections::{BTreeMap, BTreeSet};

use super::{Call, Connection, ConnectionError, Deadline, Refusal, Route, Step, in_rounds};

/// The key type that asks for a group's coordinator.
const GROUP: i8 = 0;
/// Groups named in one request, so that neither it nor its answer grows without bound.
const GROUPS_AT_ONCE: usize = 500;

type Refusable<A> = Result<A, Refusal>;

impl Connection {
    /// Asks the coordinators of all `groups`, several groups in a request. `split` takes an answer apart by group.
    pub async fn ask_coordinators<C: Call, A>(
        &self,
        groups: &BTreeSet<String>,
        deadline: Deadline,
        request: impl Fn(&[String]) -> C,
        split: impl Fn(C::Answer) -> Vec<(String, Refusable<A>)>,
    ) -> Result<BTreeMap<String, Refusable<A>>, ConnectionError> {
        let (request, split) = (&request, &split);
        let round = |open: BTreeSet<String>| async move {
            let (by_broker, mut steps) = self.coordinators(open, deadline).await;
            let requests = by_broker.iter().flat_map(|(broker, groups)| {
                groups
                    .chunks(GROUPS_AT_ONCE)
                    .map(|groups| self.ask_coordinator(*broker, groups, deadline, request, split))
            });
            steps.extend(join_all(requests).await.into_iter().flatten());
            steps
        };
        in_rounds(groups.clone(), deadline, round).await
    }

    async fn ask_coordinator<C: Call, A>(
        &self,
        broker: i32,
        groups: &[String],
        deadline: Deadline,
        request: impl Fn(&[String]) -> C,
        split: impl Fn(C::Answer) -> Vec<(String, Refusable<A>)>,
    ) -> Vec<(String, Step<Refusable<A>>)> {
        match self.attempt(Route::Broker(broker), &request(groups), deadline).await {
            Ok(answer) => split(answer).into_iter().map(|(group, outcome)| self.weigh(group, outcome)).collect(),
            Err(error) => {
                self.forget_brokers();
                self.forget_coordinators(groups);
                all_failed(groups.iter().cloned(), &error)
            }
        }
    }

    fn weigh<A>(&self, group: String, outcome: Refusable<A>) -> (String, Step<Refusable<A>>) {
        match outcome {
            Err(refusal) if refusal.is_passing() => {
                self.forget_coordinators(std::slice::from_ref(&group));
                (group, Step::Again(Err(refusal)))
            }
            outcome => (group, Step::Done(outcome)),
        }
    }

    /// The groups by coordinator, and what came of those for which none could be found.
    async fn coordinators<A>(
        &self,
        groups: BTreeSet<String>,
        deadline: Deadline,
    ) -> (BTreeMap<i32, Vec<String>>, Vec<(String, Step<Refusable<A>>)>) {
        let unknown: Vec<String> = {
            let known = self.known();
            groups.iter().filter(|group| !known.coordinators.contains_key(*group)).cloned().collect()
        };
        let mut steps = Vec::new();
        for asked in unknown.chunks(GROUPS_AT_ONCE) {
            steps.extend(self.find_coordinators(asked, deadline).await);
        }
        let mut by_broker = BTreeMap::<i32, Vec<String>>::new();
        let known = self.known();
        for group in groups {
            if let Some(broker) = known.coordinators.get(&group) {
                by_broker.entry(*broker).or_default().push(group);
            }
        }
        (by_broker, steps)
    }

    async fn find_coordinators<A>(&self, groups: &[String], deadline: Deadline) -> Vec<(String, Step<Refusable<A>>)> {
        let keys = groups.iter().map(|group| StrBytes::from_string(group.clone())).collect();
        let request = FindCoordinatorRequest::default().with_key_type(GROUP).with_coordinator_keys(keys);
        match self.attempt(Route::Any, &request, deadline).await {
            Ok(answer) => answer.coordinators.iter().filter_map(|found| self.note_coordinator(found)).collect(),
            Err(error) => all_failed(groups.iter().cloned(), &error),
        }
    }

    /// Remembers a coordinator, or says why there is none.
    fn note_coordinator<A>(&self, found: &Coordinator) -> Option<(String, Step<Refusable<A>>)> {
        let group = found.key.to_string();
        match Refusal::from_code(found.error_code, found.error_message.as_deref()) {
            None => {
                self.known().coordinators.insert(group, found.node_id.0);
                None
            }
            Some(refusal) => Some(self.weigh(group, Err(refusal))),
        }
    }

    fn forget_coordinators(&self, groups: &[String]) {
        let mut known = self.known();
        for group in groups {
            known.coordinators.remove(group);
        }
    }
}

fn all_failed<A>(groups: impl Iterator<Item = String>, error: &ConnectionError) -> Vec<(String, Step<A>)> {
    groups.map(|group| (group, Step::Failed(error.clone()))).collect()
}
