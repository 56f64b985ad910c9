//! The environment of the tests: a real API server, real brokers, real clients and the real operator program.
//!
//! What takes long to start is started once for the whole run and shared; every test has names of its own. Everything
//! started here ends with the test program, also when it panics or is killed: each child watches its stdin.

pub mod apply;
mod clients;
mod cluster;
mod kafka;
mod operator;
mod process;
pub mod proxy;
mod story;
mod until;

pub use clients::{Clients, Found};
pub use cluster::Cluster;
pub use kafka::{Kafka, Options};
pub use operator::Operator;
pub use story::{Story, accept, message, reason, reject};
pub use until::{PATIENCE, until};

use std::env;
use std::path::{Path, PathBuf};

/// Where the programs of the environment are built to.
fn cache(folder: &str) -> PathBuf {
    let cache = env::var_os("REDRIVE_CACHE").map(PathBuf::from);
    let found = cache.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache")).join(folder);
    assert!(found.exists(), "{} is missing: run `make test-environment`", found.display());
    found
}
