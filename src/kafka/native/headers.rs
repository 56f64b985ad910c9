//! Headers of a message as bytes, in order, null values kept.
//!
//! librdkafka gives a key as a C string, so one with a zero byte in it is cut there. Text has none; nor does any known client
//! write such keys.

use crate::kafka::record::Header;
use rdkafka::bindings::{
    rd_kafka_header_add, rd_kafka_header_get_all, rd_kafka_headers_destroy, rd_kafka_headers_new, rd_kafka_headers_t,
    rd_kafka_message_headers, rd_kafka_message_t,
};
use rdkafka::error::{IsError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;
use std::ffi::CStr;
use std::ptr;

/// Copies the headers of `message`. Fails where their bytes are not in Kafka's format.
///
/// # Safety
/// `message` is a message that librdkafka handed out and that was not destroyed yet.
pub(super) unsafe fn read(message: *const rd_kafka_message_t) -> Result<Vec<Header>, RDKafkaErrorCode> {
    let mut headers = ptr::null_mut();
    // SAFETY: the caller vouches for the message; the headers stay the message's.
    match unsafe { rd_kafka_message_headers(message, &raw mut headers) } {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOENT => Ok(Vec::new()),
        error if error.is_error() => Err(error.into()),
        // SAFETY: the headers live as long as the message.
        _ => Ok((0..).map_while(|index| unsafe { get(headers, index) }).collect()),
    }
}

/// # Safety
/// `headers` are live headers of librdkafka.
unsafe fn get(headers: *const rd_kafka_headers_t, index: usize) -> Option<Header> {
    let (mut key, mut value, mut size) = (ptr::null(), ptr::null(), 0);
    // SAFETY: the caller vouches for the headers; an index past the end is answered with an error.
    let error = unsafe { rd_kafka_header_get_all(headers, index, &raw mut key, &raw mut value, &raw mut size) };
    if error.is_error() {
        return None;
    }
    // SAFETY: without an error the key is a C string, and the value null or `size` bytes, both alive with the headers.
    unsafe {
        let value = (!value.is_null()).then(|| std::slice::from_raw_parts(value.cast::<u8>(), size).to_vec());
        Some(Header { key: CStr::from_ptr(key).to_bytes().to_vec(), value })
    }
}

/// Headers for a message to be sent.
pub(super) struct NativeHeaders(*mut rd_kafka_headers_t);

impl NativeHeaders {
    pub(super) fn build(headers: &[Header]) -> Result<Self, RDKafkaErrorCode> {
        // SAFETY: allocates; `self` frees it unless the message takes it over.
        let built = Self(unsafe { rd_kafka_headers_new(headers.len()) });
        headers.iter().try_for_each(|header| built.add(header)).map(|()| built)
    }

    fn add(&self, Header { key, value }: &Header) -> Result<(), RDKafkaErrorCode> {
        let (bytes, size) = value.as_ref().map_or((ptr::null(), 0), |value| (value.as_ptr(), value.len()));
        let (key_size, size) = (key.len().cast_signed(), size.cast_signed());
        // SAFETY: key and value are copied; a length below the type's middle is what every slice has.
        let error = unsafe { rd_kafka_header_add(self.0, key.as_ptr().cast(), key_size, bytes.cast(), size) };
        if error.is_error() { Err(error.into()) } else { Ok(()) }
    }

    pub(super) fn as_ptr(&self) -> *mut rd_kafka_headers_t {
        self.0
    }

    /// To be called once a message has taken the headers over.
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for NativeHeaders {
    fn drop(&mut self) {
        // SAFETY: nobody else has these headers.
        unsafe { rd_kafka_headers_destroy(self.0) }
    }
}
