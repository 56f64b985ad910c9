//! Sending and committing by a transactional producer whose events a [`ThreadedProducer`] serves.

use super::headers::NativeHeaders;
use crate::kafka::record::Header;
use rdkafka::bindings::{
    RD_KAFKA_MSG_F_COPY, rd_kafka_commit_transaction, rd_kafka_error_code, rd_kafka_error_destroy,
    rd_kafka_error_is_fatal, rd_kafka_error_string, rd_kafka_error_t, rd_kafka_produceva, rd_kafka_vtype_t,
    rd_kafka_vu_s__bindgen_ty_1, rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1, rd_kafka_vu_t,
};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{Producer, ProducerContext, ThreadedProducer};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::time::Duration;

/// What librdkafka says of a call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NativeError {
    pub code: RDKafkaErrorCode,
    pub message: String,
    /// Whether the producer can do nothing more.
    pub is_fatal: bool,
}

/// A record to be enqueued; all of it is copied.
pub struct Message<'m> {
    pub topic: &'m str,
    pub partition: i32,
    pub key: Option<&'m [u8]>,
    pub value: Option<&'m [u8]>,
    pub headers: &'m [Header],
    /// Handed to [`ProducerContext::delivery`].
    pub index: usize,
}

/// Enqueues a record. Null and empty keys, values and header values stay what they are.
pub fn produce<C>(producer: &ThreadedProducer<C>, message: &Message<'_>) -> Result<(), NativeError>
where
    C: ProducerContext<DeliveryOpaque = usize> + 'static,
{
    let Ok(topic) = CString::new(message.topic) else { return Err(invalid("a topic name has no zero byte")) };
    let headers = NativeHeaders::build(message.headers).map_err(|code| failed(code, code.to_string()))?;
    let fields = [
        field(rd_kafka_vtype_t::RD_KAFKA_VTYPE_TOPIC, |u| u.cstr = topic.as_ptr()),
        field(rd_kafka_vtype_t::RD_KAFKA_VTYPE_PARTITION, |u| u.i32_ = message.partition),
        field(rd_kafka_vtype_t::RD_KAFKA_VTYPE_MSGFLAGS, |u| u.i = RD_KAFKA_MSG_F_COPY),
        field(rd_kafka_vtype_t::RD_KAFKA_VTYPE_KEY, |u| u.mem = memory(message.key)),
        field(rd_kafka_vtype_t::RD_KAFKA_VTYPE_VALUE, |u| u.mem = memory(message.value)),
        field(rd_kafka_vtype_t::RD_KAFKA_VTYPE_OPAQUE, |u| u.ptr = message.index as *mut c_void),
        field(rd_kafka_vtype_t::RD_KAFKA_VTYPE_HEADERS, |u| u.headers = headers.as_ptr()),
    ];
    // SAFETY: the client lives as long as the producer; all fields point to what outlives the call, and are copied by it but
    // for the headers, which are the message's afterwards unless the call fails.
    let error = unsafe { rd_kafka_produceva(producer.client().native_ptr(), fields.as_ptr(), fields.len()) };
    take(error)?;
    headers.forget();
    Ok(())
}

/// Commits the open transaction, waiting for what is still on its way.
pub fn commit<C>(producer: &ThreadedProducer<C>, within: Duration) -> Result<(), NativeError>
where
    C: ProducerContext<DeliveryOpaque = usize> + 'static,
{
    let within = c_int::try_from(within.as_millis()).unwrap_or(c_int::MAX);
    // SAFETY: the client lives as long as the producer.
    take(unsafe { rd_kafka_commit_transaction(producer.client().native_ptr(), within) })
}

fn field(vtype: rd_kafka_vtype_t, set: impl FnOnce(&mut rd_kafka_vu_s__bindgen_ty_1)) -> rd_kafka_vu_t {
    let mut u = rd_kafka_vu_s__bindgen_ty_1 { _pad: [0; 64] };
    set(&mut u);
    rd_kafka_vu_t { vtype, u }
}

fn memory(bytes: Option<&[u8]>) -> rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
    let (start, size) = bytes.map_or((ptr::null(), 0), |bytes| (bytes.as_ptr(), bytes.len()));
    rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 { ptr: start.cast_mut().cast(), size }
}

fn take(error: *mut rd_kafka_error_t) -> Result<(), NativeError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a non-null error is the caller's to read and to free once, which is done here.
    unsafe {
        let message = CStr::from_ptr(rd_kafka_error_string(error)).to_string_lossy().into_owned();
        let is_fatal = rd_kafka_error_is_fatal(error) != 0;
        let code = rd_kafka_error_code(error).into();
        rd_kafka_error_destroy(error);
        Err(NativeError { code, message, is_fatal })
    }
}

fn invalid(message: &str) -> NativeError {
    failed(RDKafkaErrorCode::InvalidArgument, message.to_owned())
}

fn failed(code: RDKafkaErrorCode, message: String) -> NativeError {
    NativeError { code, message, is_fatal: false }
}
