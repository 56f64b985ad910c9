//! A proxy before the brokers that understands just enough of Kafka's protocol to stop a chosen request or its answer,
//! and a plain one before the API server that can be frozen.

use super::kafka::free;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Kafka's numbers of the requests that tests stop.
pub const PRODUCE: i16 = 0;
pub const END_TXN: i16 = 26;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Request,
    Answer,
}

/// What is to be stopped: the `nth` (from 1) request of that kind whose bytes contain all of `contains`, or its answer.
#[derive(Clone, Debug)]
pub struct Gate {
    pub api: i16,
    pub contains: Vec<String>,
    pub nth: u32,
    pub side: Side,
}

struct Watching {
    gate: Gate,
    seen: Mutex<u32>,
    held: watch::Sender<bool>,
    released: watch::Sender<bool>,
}

impl Watching {
    /// Whether this very request is the one.
    fn takes(&self, api: i16, frame: &[u8]) -> bool {
        let contains = |text: &String| frame.windows(text.len()).any(|window| window == text.as_bytes());
        if api != self.gate.api || !self.gate.contains.iter().all(contains) {
            return false;
        }
        let mut seen = self.seen.lock().expect("no panic while locked");
        *seen += 1;
        *seen == self.gate.nth
    }

    async fn hold(&self) {
        self.held.send_replace(true);
        let mut released = self.released.subscribe();
        // An error means that the test is over.
        let _ = released.wait_for(|released| *released).await;
    }
}

/// A gate as its test sees it; released when dropped.
pub struct Held(Arc<Watching>);

impl Held {
    /// Returns when the request or answer has come and is held.
    pub async fn reached(&self) {
        let mut held = self.0.held.subscribe();
        let waited = tokio::time::timeout(super::PATIENCE, held.wait_for(|held| *held)).await;
        assert!(waited.is_ok(), "{:?} was never reached", self.0.gate);
    }

    pub fn release(&self) {
        self.0.released.send_replace(true);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

type Gates = Arc<Mutex<Vec<Arc<Watching>>>>;

pub struct KafkaProxy {
    pub ports: Vec<u16>,
    gates: Gates,
    /// False: nothing passes, in either direction.
    open: Arc<watch::Sender<bool>>,
}

impl KafkaProxy {
    /// One port for each broker.
    pub fn start(brokers: Vec<u16>) -> Self {
        let (gates, open) = (Gates::default(), Arc::new(watch::Sender::new(true)));
        let ports = brokers.into_iter().map(|broker| {
            let (gates, open) = (gates.clone(), open.clone());
            serve(move |client| pass_kafka(client, broker, gates.clone(), open.subscribe()))
        });
        Self { ports: ports.collect(), gates: gates.clone(), open }
    }

    pub fn hold(&self, gate: Gate) -> Held {
        let watching = Watching {
            gate,
            seen: Mutex::new(0),
            held: watch::Sender::new(false),
            released: watch::Sender::new(false),
        };
        let watching = Arc::new(watching);
        self.gates.lock().expect("no panic while locked").push(watching.clone());
        Held(watching)
    }

    /// Lets nothing through any more, as a network that swallows everything.
    pub fn freeze(&self) {
        self.open.send_replace(false);
    }

    pub fn thaw(&self) {
        self.open.send_replace(true);
    }
}

/// Passes bytes on to the API server until it is frozen.
pub struct ApiProxy {
    pub port: u16,
    open: Arc<watch::Sender<bool>>,
}

impl ApiProxy {
    pub fn start(server: u16) -> Self {
        let open = Arc::new(watch::Sender::new(true));
        let passing = open.clone();
        Self { port: serve(move |client| pass_plain(client, server, passing.subscribe())), open }
    }

    pub fn freeze(&self) {
        self.open.send_replace(false);
    }

    pub fn thaw(&self) {
        self.open.send_replace(true);
    }
}

/// Serves on a thread of its own, as every test has another runtime.
fn serve<F>(pass: impl Fn(TcpStream) -> F + Send + 'static) -> u16
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let port = free();
    let (ready, started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port for the proxy");
            ready.send(()).expect("the test waits");
            while let Ok((client, _)) = listener.accept().await {
                let passing = pass(client);
                // A connection that breaks is the business of both its ends.
                tokio::spawn(async move { drop(passing.await) });
            }
        });
    });
    started.recv().expect("the proxy starts");
    port
}

async fn pass_plain(client: TcpStream, server: u16, open: watch::Receiver<bool>) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server)).await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (one, other) = (copy(from_client, to_server, open.clone()), copy(from_server, to_client, open));
    tokio::select! {
        done = one => done,
        done = other => done,
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        until_open(&mut open).await;
        to.write_all(&bytes[..count]).await?;
    }
}

async fn until_open(open: &mut watch::Receiver<bool>) {
    // An error means that the test is over, and with it all that could be held up.
    let _ = open.wait_for(|open| *open).await;
}

/// Gates that wait for the answer of a request, by its correlation id.
type Expected = Arc<Mutex<HashMap<i32, Arc<Watching>>>>;

async fn pass_kafka(client: TcpStream, broker: u16, gates: Gates, open: watch::Receiver<bool>) -> io::Result<()> {
    let broker = TcpStream::connect(("127.0.0.1", broker)).await?;
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    let expected = Expected::default();
    let requests = pass_requests(from_client, to_broker, gates, expected.clone(), open.clone());
    let answers = pass_answers(from_broker, to_client, expected, open);
    tokio::select! {
        done = requests => done,
        done = answers => done,
    }
}

async fn frame(from: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let length = from.read_i32().await?;
    let mut frame = vec![0; usize::try_from(length).unwrap_or(0)];
    from.read_exact(&mut frame).await?;
    Ok(frame)
}

async fn forward(to: &mut OwnedWriteHalf, frame: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(frame.len() + 4);
    bytes.extend(i32::try_from(frame.len()).unwrap_or(0).to_be_bytes());
    bytes.extend(frame);
    to.write_all(&bytes).await
}

async fn pass_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    gates: Gates,
    expected: Expected,
    mut open: watch::Receiver<bool>,
) -> io::Result<()> {
    loop {
        let frame = frame(&mut from).await?;
        let api = i16::from_be_bytes([frame[0], frame[1]]);
        let correlation = i32::from_be_bytes([frame[4], frame[5], frame[6], frame[7]]);
        let gates: Vec<_> = gates.lock().expect("no panic while locked").clone();
        for gate in gates.iter().filter(|gate| gate.takes(api, &frame)) {
            match gate.gate.side {
                Side::Request => gate.hold().await,
                Side::Answer => drop(expected.lock().expect("no panic while locked").insert(correlation, gate.clone())),
            }
        }
        until_open(&mut open).await;
        forward(&mut to, &frame).await?;
    }
}

async fn pass_answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    expected: Expected,
    mut open: watch::Receiver<bool>,
) -> io::Result<()> {
    loop {
        let frame = frame(&mut from).await?;
        let correlation = i32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
        let gate = expected.lock().expect("no panic while locked").remove(&correlation);
        if let Some(gate) = gate {
            gate.hold().await;
        }
        until_open(&mut open).await;
        forward(&mut to, &frame).await?;
    }
}
