//! What the controllers share: built by the operator for one term of leadership, used by `dlq` and `replay`.
//!
//! It stands apart from `operator` so that the controllers need not know how an operator campaigns, serves or stops.

mod clusters;
mod config;
mod events;
mod leadership;
mod metrics;
mod shutdown;

pub use clusters::Clusters;
pub use config::{Config, LogFormat};
pub use events::Events;
pub use leadership::{Leadership, boot_time};
pub use metrics::{Metrics, Outcome};
pub use shutdown::{Shutdown, Trigger};

use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};

/// The field manager of everything the operator writes.
pub const FIELD_MANAGER: &str = "redrive";

/// Everything a controller needs, for one term: another term has another context, which shares all but the leadership.
#[derive(Clone)]
pub struct Context {
    pub client: Client,
    pub config: Config,
    pub leadership: Leadership,
    pub events: Events,
    pub metrics: Metrics,
    pub clusters: Clusters,
}

impl Context {
    /// The objects of one kind in one namespace.
    pub fn namespaced<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// One `Api` per namespace to watch, or a single one over all of them where none is named.
    pub fn watched<K>(&self) -> Vec<Api<K>>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        if self.config.namespaces.is_empty() {
            return vec![Api::all(self.client.clone())];
        }
        self.config.namespaces.iter().map(|namespace| self.namespaced(namespace)).collect()
    }
}
