//! The operator, as the real program in a process of its own.

use super::Cluster;
use super::kafka::free;
use super::process::{Kept, end_of};
use super::proxy::ApiProxy;
use super::until;
use std::path::PathBuf;
use std::process::Command;

pub struct Operator {
    process: Kept,
    log: PathBuf,
    port: u16,
    /// Between the operator and the API server.
    pub api: ApiProxy,
    _folder: tempfile::TempDir,
}

impl Operator {
    /// Starts one for a namespace, with a lease and a ledger of that namespace's own, and waits until it is ready.
    pub async fn start(namespace: &str, arguments: &[&str]) -> Self {
        let cluster = Cluster::shared().await;
        let folder = tempfile::Builder::new().prefix("rdo-").tempdir().expect("a temporary folder");
        let (log, port) = (folder.path().join("log"), free());
        let api = ApiProxy::start(cluster.port());
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, cluster.kubeconfig_by_way_of(api.port)).expect("a kubeconfig");
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        command.args(["run", "--namespaces", namespace, "--lease-namespace", namespace, "--lease-seconds", "5"]);
        command.args(["--ledger-topic", &Self::ledger(namespace), "--ledger-partitions", "1", "--resync-seconds", "2"]);
        command.args(["--listen", &format!("127.0.0.1:{port}")]).args(arguments).env("KUBECONFIG", &kubeconfig);
        let operator = Self { process: Kept::start(&command, &log), log, port, api, _folder: folder };
        operator.until_ready().await;
        operator
    }

    /// The ledger topic of a test's operators.
    pub fn ledger(namespace: &str) -> String {
        format!("redrive.{namespace}")
    }

    async fn until_ready(&self) {
        let look = || async { self.get("/readyz").await.unwrap_or_default() };
        until("an operator that is ready", look, |answer: &String| answer.contains(" 200 ")).await;
    }

    /// The answer of the operator's own server, headers and all.
    pub async fn get(&self, path: &str) -> std::io::Result<String> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: redrive\r\nConnection: close\r\n\r\n").as_bytes())
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    pub fn kill(&self) {
        self.process.signal("KILL");
    }

    /// Asks it to end in good order.
    pub fn terminate(&self) {
        self.process.signal("TERM");
    }

    /// Stops it as the kernel would, without its knowing.
    pub fn stop(&self) {
        self.process.signal("STOP");
    }

    pub fn cont(&self) {
        self.process.signal("CONT");
    }

    pub async fn ended(&self) {
        until("the operator's end", || async { self.process.is_running() }, |running| !running).await;
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the end of the operator's log\n{}\n---", end_of(&self.log));
        }
    }
}
