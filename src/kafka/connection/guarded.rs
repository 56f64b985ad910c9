//! A buffer that survives a broker, or something else on its port, that answers garbage.
//!
//! kafka-protocol reserves room for as many elements as an array claims to have before it reads the first one, so that
//! five bad bytes can ask for hundreds of gigabytes and end the process. Every length, count and size of a flexible
//! message is an unsigned varint (KIP-482) and stands for at least as many bytes, or one less: so no varint may exceed
//! what is left of the answer by more than one. The varints show as runs of single bytes, which is where they are checked.
//! Numbers of tagged fields are varints too, and have no such bound: small values pass anyway, as they can do no harm.

use bytes::{Buf, Bytes, TryGetError};
use kafka_protocol::protocol::buf::ByteBuf;
use std::ops::Range;

/// Up to here a varint passes whatever is left.
const HARMLESS: u64 = 0x7f;
/// Varints of this many continued bytes are beyond any answer that fits a frame.
const MOST_CONTINUED: u32 = 4;

pub struct Guarded {
    bytes: Bytes,
    /// The varint being read: its value so far, and how many of its bytes were read.
    value: u64,
    read: u32,
}

impl Guarded {
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, value: 0, read: 0 }
    }

    fn check(&mut self, byte: u8) -> Result<(), TryGetError> {
        self.value |= u64::from(byte & 0x7f) << (7 * self.read);
        self.read += 1;
        let ends = byte < 0x80;
        let available = self.bytes.len();
        let fits = self.value <= HARMLESS.max(available as u64 + 1) && (ends || self.read < MOST_CONTINUED);
        let requested = usize::try_from(self.value).unwrap_or(usize::MAX);
        if ends || !fits {
            self.forget();
        }
        if fits { Ok(()) } else { Err(TryGetError { requested, available }) }
    }

    fn forget(&mut self) {
        (self.value, self.read) = (0, 0);
    }
}

impl Buf for Guarded {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.forget();
        self.bytes.advance(count);
    }

    fn try_get_u8(&mut self) -> Result<u8, TryGetError> {
        let byte = self.bytes.try_get_u8()?;
        self.check(byte)?;
        Ok(byte)
    }
}

impl ByteBuf for Guarded {
    fn peek_bytes(&mut self, range: Range<usize>) -> Bytes {
        self.bytes.slice(range)
    }

    fn get_bytes(&mut self, size: usize) -> Bytes {
        self.forget();
        self.bytes.split_to(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::MetadataResponse;
    use kafka_protocol::protocol::Decodable;

    fn guarded(bytes: &[u8]) -> Guarded {
        Guarded::new(Bytes::copy_from_slice(bytes))
    }

    fn read_varint(buffer: &mut Guarded) -> Result<(), TryGetError> {
        while buffer.try_get_u8()? >= 0x80 {}
        Ok(())
    }

    #[test]
    fn lengths_up_to_the_rest_and_one_pass() {
        let mut long = vec![0x81, 0x02]; // 257
        long.resize(2 + 256, 0);
        assert!(read_varint(&mut guarded(&long)).is_ok());
        long.pop();
        assert!(read_varint(&mut guarded(&long)).is_err());
    }

    #[test]
    fn numbers_of_tagged_fields_pass_at_the_end_of_an_answer() {
        assert!(read_varint(&mut guarded(&[100, 0])).is_ok());
    }

    #[test]
    fn endless_varints_fail_even_behind_a_bad_boolean() {
        assert!(read_varint(&mut guarded(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x01])).is_err());
        assert!(read_varint(&mut guarded(&[0xff; 64])).is_err());
    }

    #[test]
    fn other_reads_begin_a_new_varint() {
        let mut buffer = guarded(&[1, 0, 0, 0, 9, 2, 0]);
        assert_eq!(buffer.try_get_u8(), Ok(1));
        assert_eq!(buffer.try_get_i32(), Ok(9));
        assert_eq!(buffer.try_get_u8(), Ok(2));
    }

    #[test]
    fn an_array_that_claims_four_billion_elements_is_an_error() {
        let mut answer = guarded(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0]);
        assert!(MetadataResponse::decode(&mut answer, 12).is_err());
    }
}
