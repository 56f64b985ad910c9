//! Real Kafka 4.4 brokers, one or three, each reachable directly and by way of a proxy.

use super::clients::Clients;
use super::process::{Kept, end_of};
use super::proxy::KafkaProxy;
use super::{cache, until};
use redrive::kafka::settings::Settings;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use tokio::sync::OnceCell;

pub struct Options {
    pub nodes: usize,
    pub share_version: u8,
    /// Further lines of server.properties.
    pub properties: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        Self { nodes: 1, share_version: 2, properties: "" }
    }
}

struct Node {
    folder: PathBuf,
    broker: Mutex<Option<Kept>>,
    share_version: u8,
}

/// Ports of one node.
#[derive(Clone, Copy)]
struct Ports {
    direct: u16,
    proxied: u16,
    controller: u16,
}

pub struct Kafka {
    nodes: Vec<Node>,
    ports: Vec<Ports>,
    pub proxy: KafkaProxy,
    _folder: tempfile::TempDir,
}

static SHARED: OnceCell<Kafka> = OnceCell::const_new();

impl Kafka {
    /// The broker of this run: settings as by default, but for times short enough to test with.
    pub async fn shared() -> &'static Kafka {
        SHARED.get_or_init(|| Self::start(Options::default())).await
    }

    /// Brokers of one test's own, for as long as the run lasts.
    pub async fn own(options: Options) -> &'static Kafka {
        Box::leak(Box::new(Self::start(options).await))
    }

    /// Brokers of the caller's own.
    pub async fn start(options: Options) -> Kafka {
        let folder = tempfile::Builder::new().prefix("rdk-").tempdir().expect("a temporary folder");
        let ports: Vec<_> =
            (0..options.nodes).map(|_| Ports { direct: free(), proxied: free(), controller: free() }).collect();
        let proxy = KafkaProxy::start(ports.iter().map(|ports| ports.proxied).collect());
        let nodes = (0..options.nodes).map(|index| {
            let folder = folder.path().join(index.to_string());
            std::fs::create_dir_all(&folder).expect("a folder");
            let properties = properties(index, &ports, &proxy.ports, &folder.join("data"), options.properties);
            std::fs::write(folder.join("server.properties"), properties).expect("its settings");
            Node { folder, broker: Mutex::new(None), share_version: options.share_version }
        });
        let kafka = Kafka { nodes: nodes.collect(), ports, proxy, _folder: folder };
        for index in 0..options.nodes {
            kafka.nodes[index].launch();
        }
        for index in 0..options.nodes {
            kafka.nodes[index].until_ready().await;
        }
        kafka
    }

    /// Addresses for the tests' own clients.
    pub fn direct(&self) -> String {
        addresses(self.ports.iter().map(|ports| ports.direct))
    }

    /// Addresses by way of the proxy, for the operator.
    pub fn proxied(&self) -> String {
        addresses(self.proxy.ports.iter().copied())
    }

    /// The same, as the product takes them.
    pub fn settings(&self) -> Settings {
        Settings::plaintext(self.direct())
    }

    pub fn clients(&self) -> Clients {
        Clients::of(&self.direct())
    }

    /// As if the machine had lost power.
    pub fn kill(&self, index: usize) {
        drop(self.nodes[index].broker.lock().expect("no panic while locked").take());
    }

    pub async fn restart(&self, index: usize) {
        self.nodes[index].launch();
        self.nodes[index].until_ready().await;
    }
}

impl Node {
    fn launch(&self) {
        let cache = cache("kafka");
        let classpath = std::fs::read_to_string(cache.join("classpath")).expect("the class path of the broker");
        let mut command = Command::new("java");
        command.args(["-Xms64m", "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]);
        command.arg(format!("-XX:SharedArchiveFile={}", cache.join("broker.jsa").display()));
        command
            .arg(format!("-Dlog4j2.configurationFile={}", cache.join("log4j2.yaml").display()))
            .arg("-Dlog.level=WARN");
        command.args(["-cp", &classpath, "dev.redrive.test.Broker"]);
        command.arg(self.folder.join("server.properties")).arg(self.share_version.to_string());
        *self.broker.lock().expect("no panic while locked") = Some(Kept::start(&command, &self.folder.join("log")));
    }

    async fn until_ready(&self) {
        let log = self.folder.join("log");
        let look = || async { std::fs::read_to_string(&log).unwrap_or_default() };
        let ready = |log: &String| log.lines().any(|line| line == "ready");
        until(&format!("a broker that is ready ({})", end_of(&log)), look, ready).await;
    }
}

/// A port that is free now. Nobody else on the machine is likely to take it before it is used.
pub fn free() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

fn addresses(ports: impl Iterator<Item = u16>) -> String {
    ports.map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>().join(",")
}

fn properties(index: usize, ports: &[Ports], proxies: &[u16], data: &std::path::Path, more: &str) -> String {
    let Ports { direct, proxied, controller } = ports[index];
    let voters = ports.iter().enumerate().map(|(node, ports)| format!("{}@127.0.0.1:{}", node + 1, ports.controller));
    let (replicas, in_sync) = (ports.len().min(3), if ports.len() >= 3 { 2 } else { 1 });
    let all = BTreeMap::from([
        ("process.roles", "broker,controller".to_string()),
        ("node.id", (index + 1).to_string()),
        (
            "listeners",
            format!("DIRECT://127.0.0.1:{direct},PROXIED://127.0.0.1:{proxied},CONTROLLER://127.0.0.1:{controller}"),
        ),
        ("advertised.listeners", format!("DIRECT://127.0.0.1:{direct},PROXIED://127.0.0.1:{}", proxies[index])),
        ("listener.security.protocol.map", "DIRECT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT".into()),
        ("inter.broker.listener.name", "DIRECT".into()),
        ("controller.listener.names", "CONTROLLER".into()),
        ("controller.quorum.voters", voters.collect::<Vec<_>>().join(",")),
        ("log.dirs", data.display().to_string()),
        ("group.share.min.record.lock.duration.ms", "1000".into()),
        ("group.share.min.session.timeout.ms", "5000".into()),
        ("group.share.min.heartbeat.interval.ms", "500".into()),
        ("group.share.assignment.interval.ms", "0".into()),
        ("group.initial.rebalance.delay.ms", "0".into()),
        ("auto.create.topics.enable", "false".into()),
        ("num.network.threads", "2".into()),
        ("num.io.threads", "4".into()),
        ("log.cleaner.dedupe.buffer.size", "4194304".into()),
        ("default.replication.factor", replicas.to_string()),
        ("min.insync.replicas", in_sync.to_string()),
    ]);
    let mut text: String = all.into_iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    for topic in ["offsets.topic", "transaction.state.log", "share.coordinator.state.topic"] {
        text += &format!("{topic}.num.partitions=1\n{topic}.replication.factor={replicas}\n");
    }
    for topic in ["transaction.state.log", "share.coordinator.state.topic"] {
        text += &format!("{topic}.min.isr={in_sync}\n");
    }
    text + more
}
