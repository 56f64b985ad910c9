//! One connection to one broker. Requests go out as they come, several at a time; answers find their callers by
//! correlation id.
//!
//! One task owns the stream and alone reads and writes it, frame by frame. A caller only holds the end of a channel, so
//! that dropping its future leaves the stream as it is: an answer nobody waits for is read and forgotten.

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use super::call::{Call, FIRST_VERSION, frame, read_answer};
use super::transport::{Address, Transport, open};
use super::{ConnectionError, Deadline};
use crate::kafka::settings::Settings;

/// Answers beyond this are taken for garbage: what is asked here stays far below it.
const LARGEST_FRAME: u64 = 32 << 20;
/// Requests that may wait for the stream before a caller has to.
const QUEUE: usize = 64;
/// How long a broker may take to accept a connection and say what it speaks.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The answer to ApiVersions of a broker that does not know the version asked for.
const UNSUPPORTED_VERSION: i16 = 35;

type Answered = oneshot::Sender<Bytes>;
type Waiting = Mutex<HashMap<i32, Answered>>;

struct Request {
    api: i16,
    version: i16,
    body: BytesMut,
    answered: Answered,
}

#[derive(Debug)]
pub struct Link {
    address: Address,
    /// The versions the broker speaks, first and last, by API key.
    versions: BTreeMap<i16, (i16, i16)>,
    requests: mpsc::Sender<Request>,
    /// Why it ended, once it has.
    ended: Arc<OnceLock<String>>,
}

impl Link {
    /// Connects and agrees on versions, within the connect time-out and the deadline.
    pub async fn open(address: &Address, settings: &Settings, deadline: Deadline) -> Result<Link, ConnectionError> {
        let deadline = deadline.sooner(CONNECT_TIMEOUT);
        let reach = |reason: String| ConnectionError::ReachBroker { address: address.to_string(), reason };
        let began = Instant::now();
        let opening = async {
            let mut stream = open(address, &settings.security).await.map_err(|error| reach(error.to_string()))?;
            let versions = agree_on_versions(&mut stream, address, &settings.client_id).await?;
            Ok(Self::start(address, settings, stream, versions))
        };
        match timeout_at(deadline.into(), opening).await {
            Ok(opened) => opened,
            Err(_) => Err(reach(format!("no answer within {:.1} s", began.elapsed().as_secs_f64()))),
        }
    }

    fn start(
        address: &Address,
        settings: &Settings,
        stream: Box<dyn Transport>,
        versions: BTreeMap<i16, (i16, i16)>,
    ) -> Link {
        let (requests, queue) = mpsc::channel(QUEUE);
        let ended = Arc::new(OnceLock::new());
        tokio::spawn(serve(stream, queue, settings.client_id.clone(), Arc::clone(&ended)));
        Link { address: address.clone(), versions, requests, ended }
    }

    pub fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }

    /// Sends one request and waits for its answer. Nothing is sent any more once the caller is gone.
    pub async fn ask<C: Call>(&self, call: &C, deadline: Deadline) -> Result<C::Answer, ConnectionError> {
        let version = self.agreed_version::<C>()?;
        let mut body = BytesMut::new();
        call.write(&mut body, version).map_err(|reason| ConnectionError::WriteRequest { api: C::name(), reason })?;
        let began = Instant::now();
        let answer = match timeout_at(deadline.into(), self.exchange(C::API as i16, version, body)).await {
            Ok(answer) => answer?,
            Err(_) => return Err(self.no_answer::<C>(began.elapsed())),
        };
        read_answer::<C>(answer, version).map_err(|reason| self.unreadable::<C>(reason))
    }

    async fn exchange(&self, api: i16, version: i16, body: BytesMut) -> Result<Bytes, ConnectionError> {
        let (answered, answer) = oneshot::channel();
        let request = Request { api, version, body, answered };
        self.requests.send(request).await.map_err(|_| self.broken())?;
        answer.await.map_err(|_| self.broken())
    }

    fn agreed_version<C: Call>(&self) -> Result<i16, ConnectionError> {
        let offered = self.versions.get(&(C::API as i16)).copied();
        agree(offered, C::VERSIONS).ok_or_else(|| ConnectionError::AgreeVersion {
            address: self.address.to_string(),
            api: C::name(),
            offered: offered.map_or("no version".into(), |(first, last)| format!("versions {first} to {last}")),
            known: format!("{} to {}", C::VERSIONS.0, C::VERSIONS.1),
        })
    }

    fn broken(&self) -> ConnectionError {
        let reason = self.ended.get().cloned().unwrap_or_else(|| "it was closed".into());
        ConnectionError::KeepConnection { address: self.address.to_string(), reason }
    }

    fn no_answer<C: Call>(&self, after: Duration) -> ConnectionError {
        ConnectionError::AwaitAnswer { address: self.address.to_string(), api: C::name(), after }
    }

    fn unreadable<C: Call>(&self, reason: String) -> ConnectionError {
        ConnectionError::ReadAnswer { address: self.address.to_string(), api: C::name(), reason }
    }
}

/// The highest version both sides know.
fn agree(offered: Option<(i16, i16)>, known: (i16, i16)) -> Option<i16> {
    let (first, last) = offered?;
    let version = last.min(known.1);
    (version >= first.max(known.0)).then_some(version)
}

/// The first exchange of a connection, before any other request.
async fn agree_on_versions(
    stream: &mut Box<dyn Transport>,
    address: &Address,
    client_id: &str,
) -> Result<BTreeMap<i16, (i16, i16)>, ConnectionError> {
    let api = ApiVersionsRequest::name();
    let unreadable =
        |reason: String| ConnectionError::ReadAnswer { address: address.to_string(), api: api.clone(), reason };
    let broken = |reason: std::io::Error| ConnectionError::ReachBroker {
        address: address.to_string(),
        reason: reason.to_string(),
    };
    let request =
        versions_request(client_id).map_err(|reason| ConnectionError::WriteRequest { api: api.clone(), reason })?;
    stream.write_all(&request).await.map_err(broken)?;
    stream.flush().await.map_err(broken)?;
    let (_, answer) = read_frame(stream).await.map_err(broken)?;
    if answer.starts_with(&UNSUPPORTED_VERSION.to_be_bytes()) {
        return Err(ConnectionError::AgreeVersion {
            address: address.to_string(),
            api,
            offered: "a version older than Kafka 2.4's".into(),
            known: FIRST_VERSION.to_string(),
        });
    }
    let answer = read_answer::<ApiVersionsRequest>(answer, FIRST_VERSION).map_err(unreadable)?;
    spoken(&answer).map_err(unreadable)
}

fn spoken(answer: &ApiVersionsResponse) -> Result<BTreeMap<i16, (i16, i16)>, String> {
    match answer.error_code {
        0 => Ok(answer.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version))).collect()),
        code => Err(format!("it carries error {code}")),
    }
}

fn versions_request(client_id: &str) -> Result<BytesMut, String> {
    let mut body = BytesMut::new();
    api_versions().write(&mut body, FIRST_VERSION)?;
    frame(ApiVersionsRequest::API as i16, FIRST_VERSION, 0, client_id, &body)
}

/// Says who we are, as KIP-511 wants it.
pub fn api_versions() -> ApiVersionsRequest {
    ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str(env!("CARGO_PKG_NAME")))
        .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")))
}

/// Owns the stream until it breaks or the last user of the link is gone, then lets all waiting callers know.
async fn serve(
    stream: Box<dyn Transport>,
    mut queue: mpsc::Receiver<Request>,
    client_id: String,
    ended: Arc<OnceLock<String>>,
) {
    let (reading, writing) = tokio::io::split(stream);
    let waiting = Waiting::default();
    let reason = tokio::select! {
        reason = write_requests(writing, &mut queue, &client_id, &waiting) => reason,
        reason = read_answers(reading, &waiting) => reason,
    };
    // The reason first: callers look for it as soon as their channel closes, which is when `waiting` and the queue go.
    if let Err(unused) = ended.set(reason) {
        tracing::debug!(reason = unused, "a connection to Kafka ended twice");
    }
}

/// Ends with the reason why no more can be written.
async fn write_requests(
    mut stream: impl AsyncWrite + Unpin,
    queue: &mut mpsc::Receiver<Request>,
    client_id: &str,
    waiting: &Waiting,
) -> String {
    let mut correlation = 0_i32;
    while let Some(request) = queue.recv().await {
        if request.answered.is_closed() {
            continue;
        }
        correlation = correlation.wrapping_add(1);
        let framed = match frame(request.api, request.version, correlation, client_id, &request.body) {
            Ok(framed) => framed,
            Err(reason) => return reason,
        };
        locked(waiting).insert(correlation, request.answered);
        if let Err(error) = stream.write_all(&framed).await {
            return error.to_string();
        }
        if let Err(error) = stream.flush().await {
            return error.to_string();
        }
    }
    "nobody uses it any more".into()
}

/// Ends with the reason why no more can be read.
async fn read_answers(mut stream: impl AsyncRead + Unpin, waiting: &Waiting) -> String {
    loop {
        let (correlation, answer) = match read_frame(&mut stream).await {
            Ok(read) => read,
            Err(error) => return error.to_string(),
        };
        match locked(waiting).remove(&correlation) {
            // The caller may have gone meanwhile; its answer then goes too.
            Some(answered) => drop(answered.send(answer)),
            None => return format!("an answer came to request {correlation}, which was never made"),
        }
    }
}

/// Reads one answer: its correlation id and the rest. Memory grows with the bytes that arrive, not with the size claimed.
async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<(i32, Bytes)> {
    let size = stream.read_i32().await?;
    let size = u64::try_from(size).ok().filter(|size| (4..=LARGEST_FRAME).contains(size));
    let size = size.ok_or_else(|| std::io::Error::other("what it sends is not Kafka's protocol"))?;
    let mut read = Vec::new();
    stream.take(size).read_to_end(&mut read).await?;
    if (read.len() as u64) < size {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let mut frame = Bytes::from(read);
    let correlation = frame.get_i32();
    Ok((correlation, frame))
}

fn locked(waiting: &Waiting) -> std::sync::MutexGuard<'_, HashMap<i32, Answered>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
