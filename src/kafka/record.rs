//! A Kafka record as it is: null and empty told apart, headers in order, nothing assumed to be text.

/// One header. Kafka calls keys strings, yet nothing stops a producer from writing other bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub partition: i32,
    pub offset: i64,
    /// Milliseconds since the epoch; -1 where the record has none.
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<Header>,
}

impl Record {
    /// Bytes of key, value and headers, without Kafka's own few bytes around them.
    pub fn size(&self) -> usize {
        let bytes = |part: &Option<Vec<u8>>| part.as_ref().map_or(0, Vec::len);
        let headers = self.headers.iter().map(|h| h.key.len() + bytes(&h.value));
        bytes(&self.key) + bytes(&self.value) + headers.sum::<usize>()
    }

    /// The value of the last header of that key, as consumers read it.
    pub fn header(&self, key: &str) -> Option<&[u8]> {
        let found = self.headers.iter().rev().find(|h| h.key == key.as_bytes());
        found.and_then(|h| h.value.as_deref())
    }
}
