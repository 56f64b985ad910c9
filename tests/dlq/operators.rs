//! Two operator processes: one acts, and another goes on after it.

use super::world::World;
use crate::support::{Kafka, Operator, until};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use serde_json::json;
use std::time::{Duration, Instant};

impl World {
    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn lease(&self) -> LeaseSpec {
        let lease = self.leases().get_opt("redrive").await.expect("the API server answers");
        lease.and_then(|lease| lease.spec).unwrap_or_default()
    }

    async fn led_by(&self, identity: &str) -> LeaseSpec {
        let held = |lease: &LeaseSpec| lease.holder_identity.as_deref() == Some(identity);
        until(&format!("the lease of {identity}"), || self.lease(), held).await
    }
}

async fn leads(operator: &Operator) -> bool {
    operator.get("/metrics").await.is_ok_and(|page| page.contains("\nredrive_leader 1"))
}

#[tokio::test]
async fn one_leads_and_another_takes_over_when_it_is_killed() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-failover").await);
    let first = world.operator("first").await;
    let term = world.led_by("first").await.lease_transitions;
    // It is ready, though it only follows.
    let second = world.operator("second").await;
    world.apply("one", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    world.reaches("one", "Ready").await;
    assert_eq!((leads(&first).await, leads(&second).await), (true, false));

    first.kill();
    let lease = world.led_by("second").await;
    assert_eq!(lease.lease_transitions, term.map(|term| term + 1));
    world.apply("two", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    world.reaches("two", "Ready").await;
}

#[tokio::test]
async fn a_stopped_leader_ends_in_time_and_hands_over_at_once() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-stop").await);
    let first = world.operator("first").await;
    world.led_by("first").await;
    world.apply("stop", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    // In the middle of work that can't succeed, too.
    world.apply("away", "127.0.0.1:1", json!({})).await;
    world.reaches("stop", "Ready").await;

    let asked = Instant::now();
    first.terminate();
    first.ended().await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(world.lease().await.holder_identity.as_deref(), Some(""));
    let _second = world.operator("second").await;
    world.led_by("second").await;
}

#[tokio::test]
async fn a_leader_that_was_stopped_for_longer_than_its_lease_does_not_act_on() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-stopped").await);
    let first = world.operator("first").await;
    world.led_by("first").await;
    first.stop();
    let second = world.operator("second").await;
    world.led_by("second").await;
    first.cont();
    until("the loss to be noticed", || leads(&first), |leads| !leads).await;
    world.apply("after", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    world.reaches("after", "Ready").await;
    assert_eq!(world.lease().await.holder_identity.as_deref(), Some("second"));
    assert!(leads(&second).await);
}

#[tokio::test]
async fn a_leader_cut_off_from_the_api_server_stops_before_another_can_begin() {
    let (kafka, world) = (Kafka::shared().await, World::new("dlq-cut-off").await);
    let first = world.operator("first").await;
    world.led_by("first").await;
    let second = world.operator("second").await;
    first.api.freeze();
    // Both change within one lease: the one first, then the other.
    until("the loss to be noticed", || leads(&first), |leads| !leads).await;
    assert_eq!(world.lease().await.holder_identity.as_deref(), Some("first"));
    world.led_by("second").await;
    first.api.thaw();
    world.apply("cut-off", &kafka.direct(), json!({"topic": {"create": "Always"}})).await;
    world.reaches("cut-off", "Ready").await;
    assert_eq!((leads(&first).await, leads(&second).await), (false, true));
}

#[tokio::test]
async fn a_leader_whose_lease_was_taken_campaigns_again() {
    let world = World::new("dlq-taken").await;
    let operator = world.operator("own").await;
    let term = world.led_by("own").await.lease_transitions.unwrap_or(0);
    let take = async || {
        let mut lease = world.leases().get("redrive").await.ok()?;
        let spec = lease.spec.get_or_insert_default();
        (spec.holder_identity, spec.lease_transitions) = (Some("somebody".into()), Some(term + 1));
        // Refused where the holder has renewed in between.
        world.leases().replace("redrive", &Default::default(), &lease).await.ok()
    };
    until("the lease to be taken", take, Option::is_some).await;
    until("the loss to be noticed", || leads(&operator), |leads| !leads).await;
    // Somebody never renews, so it is waited out.
    assert_eq!(world.led_by("own").await.lease_transitions, Some(term + 2));
}
