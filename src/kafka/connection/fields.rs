//! Field by field reading of what kafka-protocol does not know, in the flexible encoding (KIP-482) and the old one.

use bytes::{Buf, Bytes, TryGetError};
use kafka_protocol::protocol::buf::ByteBuf;
use thiserror::Error;
use uuid::Uuid;

use super::guarded::Guarded;

#[derive(Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    #[error("{0}")]
    EndTooEarly(#[from] TryGetError),
    #[error("a text is not UTF-8")]
    ReadText,
    #[error("a length of {0} is out of range")]
    ReadLength(i64),
    #[error("null stands where a value must")]
    ReadNull,
}

/// Reads fields one after the other. No length is trusted before the bytes are there.
pub struct Fields<'a>(pub &'a mut Guarded);

impl Fields<'_> {
    pub fn i16(&mut self) -> Result<i16, FieldError> {
        Ok(self.0.try_get_i16()?)
    }

    pub fn i32(&mut self) -> Result<i32, FieldError> {
        Ok(self.0.try_get_i32()?)
    }

    pub fn i64(&mut self) -> Result<i64, FieldError> {
        Ok(self.0.try_get_i64()?)
    }

    pub fn uuid(&mut self) -> Result<Uuid, FieldError> {
        Ok(Uuid::from_u128(self.0.try_get_u128()?))
    }

    /// An array of the flexible encoding; null counts as empty.
    pub fn compact_array<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, FieldError>,
    ) -> Result<Vec<T>, FieldError> {
        let count = self.varint()?.saturating_sub(1);
        (0..count).map(|_| element(self)).collect()
    }

    pub fn compact_text(&mut self) -> Result<String, FieldError> {
        self.compact_nullable_text()?.ok_or(FieldError::ReadNull)
    }

    pub fn compact_nullable_text(&mut self) -> Result<Option<String>, FieldError> {
        match self.varint()? {
            0 => Ok(None),
            length => Ok(Some(self.text(length as usize - 1)?)),
        }
    }

    /// Passes over the tagged fields at the end of a structure: what later versions add without a new number.
    pub fn tags(&mut self) -> Result<(), FieldError> {
        for _ in 0..self.varint()? {
            self.varint()?;
            let size = self.varint()? as usize;
            self.bytes(size)?;
        }
        Ok(())
    }

    /// An array of the old encoding; null counts as empty.
    pub fn old_array<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, FieldError>,
    ) -> Result<Vec<T>, FieldError> {
        let count = self.i32()?;
        if count > self.0.remaining() as i32 {
            return Err(FieldError::ReadLength(count.into()));
        }
        (0..count).map(|_| element(self)).collect()
    }

    pub fn old_text(&mut self) -> Result<String, FieldError> {
        let length = self.i16()?;
        self.text(usize::try_from(length).map_err(|_| FieldError::ReadLength(length.into()))?)
    }

    fn varint(&mut self) -> Result<u32, FieldError> {
        let mut value = 0;
        for at in 0..5 {
            let byte = self.0.try_get_u8()?;
            value |= u32::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    fn text(&mut self, length: usize) -> Result<String, FieldError> {
        String::from_utf8(self.bytes(length)?.into()).map_err(|_| FieldError::ReadText)
    }

    fn bytes(&mut self, length: usize) -> Result<Bytes, FieldError> {
        let available = self.0.remaining();
        self.0.try_get_bytes(length).map_err(|_| TryGetError { requested: length, available }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(bytes: &[u8], read: impl FnOnce(&mut Fields) -> Result<T, FieldError>) -> Result<T, FieldError> {
        read(&mut Fields(&mut Guarded::new(Bytes::copy_from_slice(bytes))))
    }

    #[test]
    fn flexible_fields_are_read() {
        assert_eq!(read(b"\x03ab", |f| f.compact_text()), Ok("ab".into()));
        assert_eq!(read(b"\x00", |f| f.compact_nullable_text()), Ok(None));
        assert_eq!(read(b"\x00", |f| f.compact_text()), Err(FieldError::ReadNull));
        assert_eq!(read(b"\x03\x00\x01\x00\x02", |f| f.compact_array(Fields::i16)), Ok(vec![1, 2]));
        assert_eq!(read(b"\x01\x07\x02xy\x00\x05", |f| f.tags().and_then(|()| f.i16())), Ok(5));
    }

    #[test]
    fn old_fields_are_read() {
        assert_eq!(read(b"\x00\x02ab", |f| f.old_text()), Ok("ab".into()));
        assert_eq!(read(b"\x00\x00\x00\x01\x00\x07", |f| f.old_array(Fields::i16)), Ok(vec![7]));
        assert_eq!(read(b"\xff\xff\xff\xff", |f| f.old_array(Fields::i16)), Ok(vec![]));
    }

    #[test]
    fn bad_lengths_are_errors() {
        assert_eq!(read(b"\xff\xff", |f| f.old_text()), Err(FieldError::ReadLength(-1)));
        assert!(read(b"\x7f\xff\xff\xff\x00", |f| f.old_array(Fields::i16)).is_err());
        assert!(read(b"\x09ab", |f| f.compact_text()).is_err());
        assert_eq!(read(b"\x02\xff", |f| f.compact_text()), Err(FieldError::ReadText));
    }
}
