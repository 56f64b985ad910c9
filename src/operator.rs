//! What every operator has: a leader lease, a manager that runs the controllers, probes, figures and a log.

pub mod health;
pub mod lease;
pub mod manager;
pub mod telemetry;
