//! Reading single partitions from given offsets, without a group: librdkafka's "legacy consumer".

use super::headers;
use crate::kafka::record::Record;
use rdkafka::ClientConfig;
use rdkafka::bindings::{
    rd_kafka_consume_batch_queue, rd_kafka_consume_start_queue, rd_kafka_consume_stop, rd_kafka_last_error,
    rd_kafka_message_destroy, rd_kafka_message_t, rd_kafka_message_timestamp, rd_kafka_queue_destroy,
    rd_kafka_queue_new, rd_kafka_queue_t, rd_kafka_seek, rd_kafka_topic_destroy, rd_kafka_topic_name,
    rd_kafka_topic_new, rd_kafka_topic_t,
};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{IsError, KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A fetch's word for a topic made anew under its name; librdkafka passes it on, but has no name for it.
const INCONSISTENT_TOPIC_ID: c_int = 103;

/// A connection to the cluster. Clones share it.
#[derive(Clone)]
pub struct Consumer(Arc<BaseConsumer<Faults>>);

/// Keeps the last thing that went wrong with the connection, which librdkafka goes on retrying.
#[derive(Default)]
struct Faults(Mutex<Option<String>>);

impl ClientContext for Faults {
    fn error(&self, _: KafkaError, reason: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
    }

    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, "{message}");
    }
}

impl ConsumerContext for Faults {}

impl Consumer {
    pub fn new(config: &ClientConfig) -> KafkaResult<Self> {
        config.create_with_context(Faults::default()).map(Arc::new).map(Self)
    }

    /// Takes in what librdkafka has to say about the connection, and says the last of it.
    pub fn last_fault(&self) -> Option<String> {
        // One event a call; they are few, as only warnings and errors are logged.
        (0..16).for_each(|_| drop(self.0.poll(Duration::ZERO)));
        self.0.context().0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The log start offset and the end of a partition, asked from its leader.
    pub fn watermarks(&self, topic: &str, partition: i32, within: Duration) -> KafkaResult<(i64, i64)> {
        self.0.fetch_watermarks(topic, partition, within)
    }

    /// What is wrong with a partition by the brokers' metadata: the topic's error, or that it has no such partition. While the
    /// brokers don't answer nothing is known to be wrong.
    pub fn partition_error(&self, topic: &str, partition: i32, within: Duration) -> Option<RDKafkaErrorCode> {
        let metadata = self.0.fetch_metadata(Some(topic), within).ok()?;
        let topic = metadata.topics().first()?;
        match topic.error() {
            Some(error) => Some(error.into()),
            None if topic.partitions().iter().all(|of| of.id() != partition) => {
                Some(RDKafkaErrorCode::UnknownPartition)
            }
            None => None,
        }
    }

    pub fn queue(&self) -> Queue {
        // SAFETY: the client is alive, as the queue keeps it.
        let queue = unsafe { rd_kafka_queue_new(self.0.client().native_ptr()) };
        Queue { queue, _client: self.clone() }
    }

    pub fn topic(&self, name: &str) -> KafkaResult<Topic> {
        let text = CString::new(name)?;
        // SAFETY: the client is alive, as the topic keeps it; the name is copied.
        let topic = unsafe { rd_kafka_topic_new(self.0.client().native_ptr(), text.as_ptr(), ptr::null_mut()) };
        let topic = NonNull::new(topic).ok_or_else(|| KafkaError::Subscription(name.to_owned()))?;
        Ok(Topic { topic, started: BTreeSet::new(), _client: self.clone() })
    }
}

/// Where the messages of started partitions arrive.
pub struct Queue {
    queue: *mut rd_kafka_queue_t,
    _client: Consumer,
}

// SAFETY: librdkafka's objects may be used from any thread.
unsafe impl Send for Queue {}

impl Queue {
    /// Waits for a message up to `within`, then gives it and those already there, up to `most` in all.
    pub fn take(&self, most: usize, within: Duration) -> Vec<Message<'_>> {
        // librdkafka waits until it has as many as asked for: so the first is asked for alone.
        let mut messages = self.await_all(1, within);
        if !messages.is_empty() && most > 1 {
            messages.extend(self.await_all(most - 1, Duration::ZERO));
        }
        messages
    }

    fn await_all(&self, most: usize, within: Duration) -> Vec<Message<'_>> {
        let within = c_int::try_from(within.as_millis()).unwrap_or(c_int::MAX);
        let mut messages = vec![ptr::null_mut(); most];
        // SAFETY: the queue is alive, and the array has room for `most`. As many of it as the answer says are messages then.
        let taken = unsafe { rd_kafka_consume_batch_queue(self.queue, within, messages.as_mut_ptr(), most) };
        messages.truncate(usize::try_from(taken).unwrap_or(0));
        messages.into_iter().filter_map(NonNull::new).map(|message| Message(message, PhantomData)).collect()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: nobody else has it, and the client is still alive.
        unsafe { rd_kafka_queue_destroy(self.queue) }
    }
}

/// A topic, some of whose partitions may be started.
pub struct Topic {
    topic: NonNull<rd_kafka_topic_t>,
    started: BTreeSet<i32>,
    _client: Consumer,
}

// SAFETY: librdkafka's objects may be used from any thread.
unsafe impl Send for Topic {}

impl Topic {
    /// Goes on with a started partition at another offset. What of it still waits in its queue is never given out.
    pub fn seek(&mut self, partition: i32, offset: i64) -> Result<(), RDKafkaErrorCode> {
        // SAFETY: the topic is alive. No time to wait: the fetching moves on its own.
        let error = unsafe { rd_kafka_seek(self.topic.as_ptr(), partition, offset, 0) };
        if error.is_error() { Err(error.into()) } else { Ok(()) }
    }

    /// Starts to fetch from `offset` on. A partition that is started already is stopped first, and what of it still waits
    /// in the queue is never given out.
    pub fn start(&mut self, partition: i32, offset: i64, queue: &Queue) -> Result<(), RDKafkaErrorCode> {
        self.stop(partition);
        // SAFETY: topic and queue are alive; librdkafka keeps the queue alive while the partition is started.
        let started = unsafe { rd_kafka_consume_start_queue(self.topic.as_ptr(), partition, offset, queue.queue) };
        if started != 0 {
            // SAFETY: no precondition; the error is this thread's last.
            return Err(unsafe { rd_kafka_last_error() }.into());
        }
        self.started.insert(partition);
        Ok(())
    }

    pub fn stop(&mut self, partition: i32) {
        if self.started.remove(&partition) {
            // SAFETY: the topic is alive. It only fails for partitions that are not started.
            unsafe { rd_kafka_consume_stop(self.topic.as_ptr(), partition) };
        }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        for partition in std::mem::take(&mut self.started) {
            // SAFETY: the topic is alive.
            unsafe { rd_kafka_consume_stop(self.topic.as_ptr(), partition) };
        }
        // SAFETY: nobody else has this reference, and the client is still alive.
        unsafe { rd_kafka_topic_destroy(self.topic.as_ptr()) }
    }
}

/// A record, or word that the partition's end was reached or that something is wrong with it. It must not outlive the client,
/// which its queue keeps alive.
pub struct Message<'q>(NonNull<rd_kafka_message_t>, PhantomData<&'q Queue>);

impl Message<'_> {
    fn raw(&self) -> *const rd_kafka_message_t {
        self.0.as_ptr()
    }

    /// None for a record.
    pub fn error(&self) -> Option<RDKafkaErrorCode> {
        // SAFETY: the message is alive until it is dropped. The code is read as the number it is, as brokers may send ones that
        // the enumeration lacks.
        let code = unsafe { (&raw const (*self.raw()).err).cast::<c_int>().read() };
        match code {
            0 => None,
            INCONSISTENT_TOPIC_ID => Some(RDKafkaErrorCode::UnknownTopicId),
            _ => Some(RDKafkaRespErr::try_from(code).map_or(RDKafkaErrorCode::Unknown, RDKafkaErrorCode::from)),
        }
    }

    pub fn topic(&self) -> &str {
        // SAFETY: a message's topic, if it has one, lives as long as the message, and its name is a C string.
        unsafe {
            let topic = (*self.raw()).rkt;
            if topic.is_null() { "" } else { CStr::from_ptr(rd_kafka_topic_name(topic)).to_str().unwrap_or_default() }
        }
    }

    pub fn partition(&self) -> i32 {
        // SAFETY: the message is alive.
        unsafe { (*self.raw()).partition }
    }

    /// Of a record its own; at the end of a partition the next one to be.
    pub fn offset(&self) -> i64 {
        // SAFETY: the message is alive.
        unsafe { (*self.raw()).offset }
    }

    /// Bytes of key and value.
    pub fn size(&self) -> usize {
        // SAFETY: the message is alive.
        unsafe { (*self.raw()).len + (*self.raw()).key_len }
    }

    /// Copies the record. Fails where its headers are not in Kafka's format.
    pub fn to_record(&self) -> Result<Record, RDKafkaErrorCode> {
        let raw = self.raw();
        // SAFETY: the message is alive; a record's payload and key are null or as long as said.
        unsafe {
            Ok(Record {
                partition: (*raw).partition,
                offset: (*raw).offset,
                timestamp: rd_kafka_message_timestamp(raw, ptr::null_mut()),
                key: bytes((*raw).key, (*raw).key_len),
                value: bytes((*raw).payload, (*raw).len),
                headers: headers::read(raw)?,
            })
        }
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { rd_kafka_message_destroy(self.0.as_ptr()) }
    }
}

/// # Safety
/// `start` is null or points to `size` bytes.
unsafe fn bytes(start: *const c_void, size: usize) -> Option<Vec<u8>> {
    // SAFETY: the caller vouches for it.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start.cast::<u8>(), size) }.to_vec())
}
