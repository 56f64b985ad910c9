//! What a dead letter of a share group says of the record it stands for (KIP-1191).
//!
//! The broker writes six headers, all UTF-8 text, numbers in decimal. It copies none of the original's own headers.

use crate::kafka::Coordinates;
use crate::kafka::record::Record;

const TOPIC: &str = "__dlq.errors.topic";
const PARTITION: &str = "__dlq.errors.partition";
const OFFSET: &str = "__dlq.errors.offset";
const GROUP: &str = "__dlq.errors.group";
const DELIVERY_COUNT: &str = "__dlq.errors.delivery.count";
const MESSAGE: &str = "__dlq.errors.message";
/// Named by the KIP's text, written by no broker up to 4.4; read where a later one does.
const EXCEPTION_CLASS: &str = "__dlq.errors.exception.class.name";
const EXCEPTION_MESSAGE: &str = "__dlq.errors.exception.message";

const REJECTED: &str = "Offset rejected by client.";
const DELIVERY_LIMIT: &str = "Offset delivery count exceeded the threshold.";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where the dead letter itself is.
    pub partition: i32,
    pub offset: i64,
    /// When it was dead-lettered, in milliseconds since the epoch.
    pub timestamp: i64,
    /// The share group that gave the record up.
    pub group: String,
    /// Where the record was that was given up: the identity of the message.
    pub source: Coordinates,
    pub cause: Cause,
    /// The broker's own words; empty where it gave none.
    pub message: String,
    /// How often the record was delivered; none where the broker does not say.
    pub deliveries: Option<i32>,
    /// Whether there is a key or a value. The broker leaves both out with copying off, and also, unmarked, for records too
    /// large or deleted meanwhile; so without one it cannot be told from a record whose key and value were null.
    pub has_copy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A consumer acknowledged the record with REJECT.
    Rejected,
    /// Delivered as often as `share.delivery.count.limit` allows, never accepted.
    DeliveryLimit,
    /// A cause this version does not know.
    Other,
}

/// Why a record of a dead-letter topic is no dead letter that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotADeadLetter {
    #[error("the record has no header {0}, or it is null")]
    FindHeader(&'static str),
    #[error("the header {0} is not UTF-8 text")]
    DecodeHeader(&'static str),
    #[error("the header {0} is empty")]
    FillHeader(&'static str),
    #[error("the header {TOPIC} is no name that a topic can have")]
    NameTopic,
    #[error("the header {header} should be a number from 0 up, but is \"{value}\"")]
    ParseNumber { header: &'static str, value: String },
}

/// The longest name of a topic.
const LONGEST_NAME: usize = 249;

/// Reads the headers of a record of a dead-letter topic. Anyone may write to such a topic, so nothing about them is assumed.
pub fn read(record: &Record) -> Result<DeadLetter, NotADeadLetter> {
    let source = Coordinates {
        topic: topic(record)?,
        partition: required(number(record, PARTITION)?, PARTITION)?,
        offset: required(number(record, OFFSET)?, OFFSET)?,
    };
    let message = message(record)?;
    Ok(DeadLetter {
        partition: record.partition,
        offset: record.offset,
        timestamp: record.timestamp,
        group: name(record, GROUP)?,
        source,
        cause: cause(&message),
        message,
        deliveries: number(record, DELIVERY_COUNT)?,
        has_copy: record.key.is_some() || record.value.is_some(),
    })
}

fn cause(message: &str) -> Cause {
    match message {
        REJECTED => Cause::Rejected,
        DELIVERY_LIMIT => Cause::DeliveryLimit,
        _ => Cause::Other,
    }
}

fn message(record: &Record) -> Result<String, NotADeadLetter> {
    for header in [MESSAGE, EXCEPTION_MESSAGE, EXCEPTION_CLASS] {
        if let Some(text) = text(record, header)? {
            return Ok(text.to_owned());
        }
    }
    Ok(String::new())
}

fn text<'r>(record: &'r Record, header: &'static str) -> Result<Option<&'r str>, NotADeadLetter> {
    let bytes = record.header(header);
    bytes.map(str::from_utf8).transpose().map_err(|_| NotADeadLetter::DecodeHeader(header))
}

fn name(record: &Record, header: &'static str) -> Result<String, NotADeadLetter> {
    let name = required(text(record, header)?, header)?;
    if name.is_empty() { Err(NotADeadLetter::FillHeader(header)) } else { Ok(name.to_owned()) }
}

/// A name that no topic can have was not written by a broker.
fn topic(record: &Record) -> Result<String, NotADeadLetter> {
    let name = name(record, TOPIC)?;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let named = name.len() <= LONGEST_NAME && name.bytes().all(legal);
    if named { Ok(name) } else { Err(NotADeadLetter::NameTopic) }
}

fn number<N>(record: &Record, header: &'static str) -> Result<Option<N>, NotADeadLetter>
where
    N: std::str::FromStr + PartialOrd + Default,
{
    let Some(digits) = text(record, header)? else { return Ok(None) };
    let number = digits.parse().ok().filter(|number: &N| *number >= N::default());
    number.map(Some).ok_or_else(|| NotADeadLetter::ParseNumber { header, value: digits.to_owned() })
}

fn required<T>(found: Option<T>, header: &'static str) -> Result<T, NotADeadLetter> {
    found.ok_or(NotADeadLetter::FindHeader(header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::record::Header;
    use proptest::prelude::*;

    fn letter() -> Record {
        let headers = [
            (TOPIC, "orders"),
            (PARTITION, "3"),
            (OFFSET, "41"),
            (GROUP, "billing"),
            (DELIVERY_COUNT, "5"),
            (MESSAGE, DELIVERY_LIMIT),
        ];
        let headers = headers.map(|(key, value)| Header { key: key.into(), value: Some(value.into()) });
        Record { partition: 1, offset: 7, timestamp: 99, key: None, value: None, headers: headers.into() }
    }

    fn with(header: &str, value: Option<&[u8]>) -> Record {
        let mut record = letter();
        record.headers.retain(|h| h.key != header.as_bytes());
        record.headers.push(Header { key: header.into(), value: value.map(Into::into) });
        record
    }

    #[test]
    fn a_dead_letter_names_its_message() {
        let read = read(&letter()).unwrap();
        let expected = DeadLetter {
            partition: 1,
            offset: 7,
            timestamp: 99,
            group: "billing".into(),
            source: Coordinates::new("orders", 3, 41),
            cause: Cause::DeliveryLimit,
            message: DELIVERY_LIMIT.into(),
            deliveries: Some(5),
            has_copy: false,
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn the_broker_s_words_decide_the_cause() {
        let cause = |text: &str| read(&with(MESSAGE, Some(text.as_bytes()))).unwrap().cause;
        assert_eq!(cause("Offset rejected by client."), Cause::Rejected);
        assert_eq!(cause("Offset delivery count exceeded the threshold."), Cause::DeliveryLimit);
        assert_eq!(cause("offset rejected by client"), Cause::Other);
    }

    #[test]
    fn exception_headers_stand_in_for_the_message() {
        let mut record = letter();
        record.headers.retain(|h| h.key != MESSAGE.as_bytes());
        assert_eq!(read(&record).unwrap().message, "");
        record.headers.push(Header { key: EXCEPTION_CLASS.into(), value: Some(b"a.B".into()) });
        assert_eq!(read(&record).unwrap().message, "a.B");
        record.headers.push(Header { key: EXCEPTION_MESSAGE.into(), value: Some(b"broken".into()) });
        let read = read(&record).unwrap();
        assert_eq!((read.message.as_str(), read.cause), ("broken", Cause::Other));
    }

    #[test]
    fn an_empty_value_is_a_copy_and_a_null_one_is_none() {
        let mut record = letter();
        record.value = Some(Vec::new());
        assert!(read(&record).unwrap().has_copy);
    }

    #[test]
    fn each_malformed_header_is_named() {
        for header in [TOPIC, PARTITION, OFFSET, GROUP] {
            let mut record = letter();
            record.headers.retain(|h| h.key != header.as_bytes());
            assert_eq!(read(&record), Err(NotADeadLetter::FindHeader(header)));
            assert_eq!(read(&with(header, None)), Err(NotADeadLetter::FindHeader(header)));
        }
        for header in [TOPIC, PARTITION, OFFSET, GROUP, DELIVERY_COUNT, MESSAGE] {
            assert_eq!(read(&with(header, Some(b"\xff"))), Err(NotADeadLetter::DecodeHeader(header)));
        }
        for header in [TOPIC, GROUP] {
            assert_eq!(read(&with(header, Some(b""))), Err(NotADeadLetter::FillHeader(header)));
        }
        for header in [PARTITION, OFFSET, DELIVERY_COUNT] {
            for value in ["", "-1", "x", "99999999999999999999"] {
                let expected = NotADeadLetter::ParseNumber { header, value: value.into() };
                assert_eq!(read(&with(header, Some(value.as_bytes()))), Err(expected));
            }
        }
    }

    #[test]
    fn a_missing_delivery_count_is_unknown() {
        assert_eq!(read(&with(DELIVERY_COUNT, None)).unwrap().deliveries, None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(header in 0..6usize, value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..30))) {
            let headers = [TOPIC, PARTITION, OFFSET, GROUP, DELIVERY_COUNT, MESSAGE];
            let _ = read(&with(headers[header], value.as_deref()));
        }
    }

    #[test]
    fn a_source_that_no_topic_can_be_called_is_refused() {
        for name in ["x".repeat(250).as_str(), "or ders", "orders/1", "b\u{e4}r"] {
            let mut record = letter();
            let topic = record.headers.iter_mut().find(|header| header.key == TOPIC.as_bytes());
            topic.expect("the header").value = Some(name.as_bytes().to_vec());
            assert_eq!(read(&record), Err(NotADeadLetter::NameTopic), "{name}");
        }
    }
}
