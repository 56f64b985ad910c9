//! The life of an operator process: wait for the CRDs, campaign, run the controllers while leading, campaign again
//! after a loss, and end in good order on SIGTERM.

use crate::api::{DLQReplay, ShareGroupDLQ};
use crate::context::{Clusters, Config, Context, Events, Metrics, Shutdown};
use crate::dlq;
use crate::operator::health::{self, Health};
use crate::operator::lease::{Candidate, Term};
use crate::replay;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// What the controllers have to finish in after a SIGTERM; with the release of the lease it stays below ten seconds.
const GRACE: Duration = Duration::from_secs(6);

/// How often missing CRDs are looked for.
const CRD_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Error)]
pub enum RunError {
    #[error("no API server is configured: run in a pod, or set KUBECONFIG ({0})")]
    FindApiServer(#[source] kube::Error),
    #[error("the address {address} can't be listened on: {source}; choose another one with --listen")]
    Listen { address: std::net::SocketAddr, source: io::Error },
    #[error("probes and figures can't be served any more: {0}")]
    Serve(#[source] io::Error),
    #[error("signals can't be handled: {0}")]
    HandleSignals(#[source] io::Error),
    #[error("a controller ended without being asked to")]
    StopController,
}

/// Runs the operator until SIGTERM or SIGINT.
pub async fn run(config: Config) -> Result<(), RunError> {
    let client = Client::try_default().await.map_err(RunError::FindApiServer)?;
    let shutdown = on_signals().map_err(RunError::HandleSignals)?;
    let address = config.listen;
    let listener = TcpListener::bind(address).await.map_err(|source| RunError::Listen { address, source })?;
    let address = listener.local_addr().unwrap_or(address);
    let (metrics, health) = (Metrics::default(), Health::new(config.lease_duration()));
    let identity = config.identity.clone().unwrap_or_else(unique_identity);
    tracing::info!(version = env!("CARGO_PKG_VERSION"), %identity, %address, "redrive starts");

    let served = health::serve(listener, health.clone(), metrics.clone());
    let manager = Manager { client, config, identity, metrics, health, clusters: Clusters::default() };
    // Probes are answered until the very end.
    tokio::select! {
        managed = manager.manage(shutdown) => managed,
        served = served => served.map_err(RunError::Serve),
    }
}

fn on_signals() -> io::Result<Shutdown> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (trigger, shutdown) = Shutdown::new();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("asked to stop");
        trigger.request();
    });
    Ok(shutdown)
}

/// The host name tells an operator's pod; the random part tells two processes of it apart.
fn unique_identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}_{}", uuid::Uuid::new_v4())
}

struct Manager {
    client: Client,
    config: Config,
    identity: String,
    metrics: Metrics,
    health: Health,
    clusters: Clusters,
}

impl Manager {
    async fn manage(&self, shutdown: Shutdown) -> Result<(), RunError> {
        let candidate = self.candidate();
        let working = async {
            tokio::join!(self.crds::<ShareGroupDLQ>(), self.crds::<DLQReplay>());
            self.health.saw_crds();
        };
        tokio::select! {
            () = working => {}
            () = shutdown.clone().requested() => return Ok(()),
        }
        while !shutdown.is_requested() {
            let term = tokio::select! {
                term = candidate.lead() => term,
                () = shutdown.clone().requested() => return Ok(()),
            };
            self.lead(term, &shutdown).await?;
        }
        Ok(())
    }

    fn candidate(&self) -> Candidate {
        let namespace = self.config.lease_namespace.as_deref().unwrap_or(self.client.default_namespace());
        let (name, duration) = (&self.config.lease_name, self.config.lease_duration());
        Candidate::new(self.client.clone(), namespace, name, &self.identity, duration, self.health.clone())
    }

    /// Waits until objects of the kind can be listed. The CRD itself is not looked at: an operator for named namespaces
    /// has no right to.
    async fn crds<K>(&self)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug,
        K: serde::de::DeserializeOwned,
    {
        let api: Api<K> = match self.config.namespaces.first() {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let mut told = false;
        while let Err(error) = api.list_metadata(&ListParams::default().limit(1)).await {
            if !told {
                let (kind, error) = (K::kind(&()), sentence(&error));
                tracing::warn!(%kind, error, "can't be listed yet, waiting: is its CRD installed?");
                told = true;
            }
            sleep(CRD_PAUSE).await;
        }
        self.health.saw_api_server();
    }

    /// One term: runs the controllers until the term is lost or the process is to end.
    async fn lead(&self, mut term: Term<'_>, shutdown: &Shutdown) -> Result<(), RunError> {
        let context = Arc::new(self.context(&term));
        tracing::info!(term = context.leadership.term(), "leading");
        self.metrics.leads(true);
        let mut controllers = start(&context, shutdown);
        let lost = tokio::select! {
            () = term.keep() => true,
            () = ended(&mut controllers) => false,
            () = overdue(shutdown) => false,
        };
        // Whatever is still at work is cut short: after a loss at once, after a SIGTERM when its grace is over.
        controllers.shutdown().await;
        self.metrics.leads(false);
        if lost {
            tracing::warn!("not leading any more");
            return Ok(());
        }
        term.release().await;
        if shutdown.is_requested() { Ok(()) } else { Err(RunError::StopController) }
    }

    fn context(&self, term: &Term<'_>) -> Context {
        Context {
            client: self.client.clone(),
            config: self.config.clone(),
            leadership: term.leadership(),
            events: Events::new(self.client.clone(), &self.identity, self.metrics.clone()),
            metrics: self.metrics.clone(),
            clusters: self.clusters.clone(),
        }
    }
}

/// The API server's own words where it has some.
fn sentence(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.trim().to_owned(),
        other => other.to_string(),
    }
}

fn start(context: &Arc<Context>, shutdown: &Shutdown) -> JoinSet<()> {
    let mut controllers = JoinSet::new();
    controllers.spawn(dlq::controller::run(context.clone(), shutdown.clone()));
    controllers.spawn(replay::controller::run(context.clone(), shutdown.clone()));
    controllers
}

/// Returns when all controllers have ended in good order, or the first of them has not.
async fn ended(controllers: &mut JoinSet<()>) {
    while let Some(end) = controllers.join_next().await {
        if let Err(error) = end {
            tracing::error!(%error, "a controller broke down");
            return;
        }
    }
}

async fn overdue(shutdown: &Shutdown) {
    shutdown.clone().requested().await;
    sleep(GRACE).await;
    tracing::warn!("the controllers did not finish in time, cutting them short");
}
