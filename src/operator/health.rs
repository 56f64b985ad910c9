//! /healthz, /readyz and /metrics.
//!
//! Ready means that the CRDs were seen and the API server answered lately: a follower is as ready as the leader.
//! Kafka plays no part, or one cluster's trouble would take the operator away from all the others.

use crate::context::{Metrics, boot_time};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// What the probes report; clones share it.
#[derive(Clone, Debug)]
pub struct Health {
    crds_seen: Arc<AtomicBool>,
    /// Milliseconds of [`boot_time`] of the API server's last answer.
    answered: Arc<AtomicU64>,
    patience: Duration,
}

impl Health {
    /// `patience`: how long the API server may be silent before this process counts as not ready.
    pub fn new(patience: Duration) -> Self {
        Self { crds_seen: Arc::default(), answered: Arc::default(), patience }
    }

    pub fn saw_crds(&self) {
        self.crds_seen.store(true, Ordering::Relaxed);
    }

    pub fn saw_api_server(&self) {
        let now = u64::try_from(boot_time().as_millis()).unwrap_or(u64::MAX);
        self.answered.store(now, Ordering::Relaxed);
    }

    /// Why this process is not ready, if it is not.
    fn obstacle(&self) -> Option<&'static str> {
        if !self.crds_seen.load(Ordering::Relaxed) {
            return Some("the CRDs of redrive.dev are not installed: kubectl apply --server-side -f crds/");
        }
        let answered = Duration::from_millis(self.answered.load(Ordering::Relaxed));
        (boot_time().saturating_sub(answered) > self.patience).then_some("the API server does not answer")
    }
}

#[derive(Clone)]
struct Served {
    health: Health,
    metrics: Metrics,
}

/// Serves for as long as it is polled.
pub async fn serve(listener: TcpListener, health: Health, metrics: Metrics) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(figures))
        .with_state(Served { health, metrics });
    axum::serve(listener, router).await
}

async fn readyz(State(served): State<Served>) -> (StatusCode, &'static str) {
    match served.health.obstacle() {
        None => (StatusCode::OK, "ok"),
        Some(obstacle) => (StatusCode::SERVICE_UNAVAILABLE, obstacle),
    }
}

async fn figures(State(served): State<Served>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    match served.metrics.encode() {
        Ok(page) => (kind, page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_takes_crds_and_a_recent_answer() {
        let health = Health::new(Duration::from_secs(60));
        assert!(health.obstacle().is_some_and(|obstacle| obstacle.contains("CRDs")));
        health.saw_crds();
        health.saw_api_server();
        assert_eq!(health.obstacle(), None);
        let impatient = Health { patience: Duration::ZERO, ..health };
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(impatient.obstacle(), Some("the API server does not answer"));
    }
}
