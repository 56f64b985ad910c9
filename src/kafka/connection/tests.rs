//! The connection against a broker that misbehaves by plan.

use futures::FutureExt;
use kafka_protocol::messages::{ListGroupsRequest, ListGroupsResponse};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::*;

const API_VERSIONS: [u8; 2] = [0, 18];
const LIST_GROUPS: [u8; 2] = [0, 16];

/// One connection as the broker sees it.
struct Peer(TcpStream);

impl Peer {
    /// The correlation id of the next request, or None when the client is gone.
    async fn request(&mut self) -> Option<i32> {
        let size = self.0.read_i32().await.ok()?;
        let mut request = vec![0; usize::try_from(size).unwrap()];
        self.0.read_exact(&mut request).await.ok()?;
        Some(i32::from_be_bytes(request[4..8].try_into().unwrap()))
    }

    async fn send(&mut self, bytes: &[u8]) {
        // The client may be gone already, which is what some tests are about.
        drop(self.0.write_all(bytes).await);
    }

    async fn frame(&mut self, correlation: i32, body: &[u8]) {
        let size = i32::try_from(4 + body.len()).unwrap();
        self.send(&[&size.to_be_bytes(), &correlation.to_be_bytes(), body].concat()).await;
    }

    /// Answers the first request of a connection: ListGroups in version 5 is all this broker knows.
    async fn greet(&mut self) {
        if let Some(correlation) = self.request().await {
            let spoken = [&LIST_GROUPS[..], &[0, 5, 0, 5, 0], &API_VERSIONS, &[0, 0, 0, 3, 0]].concat();
            self.frame(correlation, &[&[0, 0, 3], &spoken[..], &[0, 0, 0, 0, 0]].concat()).await;
        }
    }

    /// An empty list of groups with this error code.
    async fn answer(&mut self, correlation: i32, code: i16) {
        let [high, low] = code.to_be_bytes();
        self.frame(correlation, &[0, 0, 0, 0, 0, high, low, 1, 0]).await;
    }
}

struct Fake {
    connection: Connection,
    address: String,
    connections: Arc<AtomicUsize>,
}

/// A broker that serves each connection with `serve`, which is given the connection's number.
async fn fake<F>(serve: impl Fn(usize, Peer) -> F + Send + Sync + 'static) -> Fake
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(counted.fetch_add(1, Ordering::SeqCst), Peer(stream)));
        }
    });
    Fake { connection: Connection::new(&Settings::plaintext(&address)), address, connections }
}

impl Fake {
    async fn ask_within(&self, time: Duration) -> Result<ListGroupsResponse, ConnectionError> {
        self.connection.ask(Route::Any, &ListGroupsRequest::default(), Deadline::within(time)).await
    }

    async fn ask(&self) -> Result<ListGroupsResponse, ConnectionError> {
        self.ask_within(Duration::from_secs(10)).await
    }
}

#[tokio::test]
async fn answers_find_their_callers_in_any_order() {
    let fake = fake(|_, mut peer| async move {
        peer.greet().await;
        let (first, second) = (peer.request().await.unwrap(), peer.request().await.unwrap());
        peer.answer(second, 2).await;
        peer.answer(first, 1).await;
    })
    .await;
    let (first, second) = tokio::join!(fake.ask(), fake.ask());
    assert_eq!((first.unwrap().error_code, second.unwrap().error_code), (1, 2));
    assert_eq!(fake.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_caller_that_goes_leaves_the_stream_in_step() {
    let asked = Arc::new(Notify::new());
    let seen = Arc::clone(&asked);
    let fake = fake(move |_, mut peer| {
        let seen = Arc::clone(&seen);
        async move {
            peer.greet().await;
            let abandoned = peer.request().await.unwrap();
            seen.notify_one();
            let kept = peer.request().await.unwrap();
            peer.answer(abandoned, 1).await;
            peer.answer(kept, 2).await;
        }
    })
    .await;
    tokio::select! {
        _ = fake.ask() => panic!("nothing was answered yet"),
        () = asked.notified() => {}
    }
    assert_eq!(fake.ask().await.unwrap().error_code, 2);
    assert_eq!(fake.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_connection_that_breaks_in_an_answer_is_made_anew() {
    let fake = fake(|number, mut peer| async move {
        peer.greet().await;
        let correlation = peer.request().await.unwrap();
        match number {
            0 => peer.send(&[0, 0, 0, 100, 0, 0]).await,
            _ => peer.answer(correlation, 0).await,
        }
    })
    .await;
    assert!(fake.ask().await.is_ok());
    assert_eq!(fake.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_broker_that_says_nothing_is_named_at_the_deadline() {
    let fake = fake(|_, mut peer| async move {
        peer.greet().await;
        while peer.request().await.is_some() {}
    })
    .await;
    let began = Instant::now();
    let error = fake.ask_within(Duration::from_millis(1500)).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(2));
    assert!(matches!(error, ConnectionError::AwaitAnswer { .. }) && error.address() == fake.address, "{error}");
}

#[tokio::test]
async fn a_port_that_speaks_something_else_is_an_error() {
    let fake = fake(|_, mut peer| async move { peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n").await }).await;
    let error = fake.ask_within(Duration::from_millis(1500)).await.unwrap_err();
    assert_eq!(error.reason(), "what it sends is not Kafka's protocol");
    assert_eq!(error.address(), fake.address);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error_at_once() {
    let fake = fake(|_, mut peer| async move {
        peer.greet().await;
        let correlation = peer.request().await.unwrap();
        peer.frame(correlation, &[0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]).await;
    })
    .await;
    let error = fake.ask().await.unwrap_err();
    assert!(matches!(error, ConnectionError::ReadAnswer { .. }), "{error}");
}

#[tokio::test]
async fn an_answer_nobody_asked_for_ends_the_connection() {
    let fake = fake(|number, mut peer| async move {
        peer.greet().await;
        let correlation = peer.request().await.unwrap();
        peer.answer(if number == 0 { correlation + 7 } else { correlation }, 0).await;
        peer.request().await;
    })
    .await;
    assert!(fake.ask().await.is_ok());
    assert_eq!(fake.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_state_that_passes_is_asked_again_until_it_has() {
    let fake = fake(|_, mut peer| async move {
        peer.greet().await;
        for code in [15, 14, 0] {
            let correlation = peer.request().await.unwrap();
            peer.answer(correlation, code).await;
        }
    })
    .await;
    let deadline = Deadline::within(Duration::from_secs(10));
    let is_final = |answer: &ListGroupsResponse| settled(answer.error_code);
    let answer = fake.connection.ask_until(Route::Any, &ListGroupsRequest::default(), deadline, is_final).await;
    assert_eq!(answer.unwrap().error_code, 0);
}

#[tokio::test]
async fn a_request_whose_caller_has_gone_is_not_sent() {
    let requests = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&requests);
    let fake = fake(move |_, mut peer| {
        let counted = Arc::clone(&counted);
        async move {
            peer.greet().await;
            while let Some(correlation) = peer.request().await {
                *counted.lock().unwrap() += 1;
                peer.answer(correlation, 0).await;
            }
        }
    })
    .await;
    fake.ask().await.unwrap();
    // On this test's one thread the writer cannot run before the caller is dropped.
    assert!(fake.ask().now_or_never().is_none());
    fake.ask().await.unwrap();
    assert_eq!(*requests.lock().unwrap(), 2);
}
