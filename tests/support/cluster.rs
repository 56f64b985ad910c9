//! A real API server, shared by the tests of one run: each works in a namespace of its own.

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tokio::sync::OnceCell;

/// Ends the cluster and clears its folder when the other end of stdin is closed: also when the tests panic or are killed.
const KEEPER: &str =
    r#""$0" --dir "$1" 2>"$1/log" & cluster=$!; read -r _; kill "$cluster"; wait "$cluster"; rm -rf "$1""#;

pub struct Cluster {
    kubeconfig: PathBuf,
    /// Holds the stdin that keeps the cluster alive.
    _keeper: Child,
}

static SHARED: OnceCell<Cluster> = OnceCell::const_new();

impl Cluster {
    /// The cluster of this run, with the CRDs installed; started by the first test that asks.
    pub async fn shared() -> &'static Cluster {
        SHARED.get_or_init(Self::start).await
    }

    async fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("rd-").tempdir().expect("a temporary folder").keep();
        let started = tokio::task::spawn_blocking(move || Self::start_in(&folder)).await;
        let cluster = started.expect("the API server starts");
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
        cluster.kubectl(&["apply", "--server-side", "-f", &crds.to_string_lossy()]).await.expect("the CRDs are taken");
        let established = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"];
        cluster.kubectl(&established).await.expect("the CRDs are established");
        cluster
    }

    fn start_in(folder: &Path) -> Self {
        let mut command = Command::new("sh");
        command.arg("-c").arg(KEEPER).arg(tool("testcluster")).arg(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut keeper = command.spawn().expect("a shell");
        let lines = BufReader::new(keeper.stdout.take().expect("it is piped")).lines();
        let ready = lines.map_while(Result::ok).any(|line| line.starts_with("ready "));
        assert!(ready, "the API server did not start, see {}/log", folder.display());
        Self { kubeconfig: folder.join("kubeconfig"), _keeper: keeper }
    }

    /// A client of the calling test's own: its connections end with the test's runtime.
    pub async fn client(&self) -> Client {
        let file = Kubeconfig::read_from(&self.kubeconfig).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
        Client::try_from(config.expect("a configuration")).expect("a client")
    }

    pub async fn namespace(&self, name: &str) {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let api = Api::<Namespace>::all(self.client().await);
        api.create(&PostParams::default(), &namespace).await.expect("a new namespace");
    }

    /// Port of the API server on this machine.
    pub fn port(&self) -> u16 {
        let file = std::fs::read_to_string(&self.kubeconfig).expect("a kubeconfig");
        let server = file.lines().find_map(|line| line.trim().strip_prefix("server: https://127.0.0.1:"));
        server.and_then(|port| port.parse().ok()).expect("a server's port")
    }

    /// The kubeconfig with another port on this machine: that of a proxy.
    pub fn kubeconfig_by_way_of(&self, port: u16) -> String {
        let file = std::fs::read_to_string(&self.kubeconfig).expect("a kubeconfig");
        file.replace(&format!("127.0.0.1:{}", self.port()), &format!("127.0.0.1:{port}"))
    }

    /// What kubectl prints, or what it complains about.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = tokio::process::Command::new(tool("kubectl"));
        let output = command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments).output().await;
        let output = output.expect("kubectl runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }
}

fn tool(name: &str) -> PathBuf {
    super::cache("cluster").join(name)
}
