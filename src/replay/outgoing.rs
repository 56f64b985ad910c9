//! The record a dead letter is replayed as: the original, byte for byte, with a few headers that say where it was. Pure.

use super::letter::Letter;
use crate::kafka::Coordinates;
use crate::kafka::record::{Header, Record};
use crate::kafka::sender::Outgoing;

/// All headers Redrive adds begin so. A record that is replayed again gets new ones in their place.
const OURS: &[u8] = b"redrive.";
/// The context headers the broker writes into a dead letter begin so (KIP-1191).
pub const ERRORS: &[u8] = b"__dlq.errors.";

pub const REPLAYED_FROM: &str = "redrive.replayed_from";
pub const DEAD_LETTER: &str = "redrive.dead_letter";
pub const REPLAY: &str = "redrive.replay";
pub const ATTEMPT: &str = "redrive.attempt";
pub const ORIGINAL_TIMESTAMP: &str = "redrive.original_timestamp";

/// What is the same for all messages of one replay.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// Name of the dead-letter topic.
    pub dead_letter_topic: String,
    /// `<namespace>/<name>/<uid>` of the DLQReplay.
    pub replay: String,
}

/// The message as the source topic still has it.
pub fn of_original(letter: &Letter, original: Record, provenance: &Provenance, to: (String, i32)) -> Outgoing {
    let timestamp = original.timestamp;
    let replaced = |key: &[u8]| letter.error_headers.iter().any(|header| header.key == key);
    outgoing(letter, original, Some(timestamp), provenance, to, |key| !key.starts_with(OURS) && !replaced(key))
}

/// The message as the dead letter holds it: the broker copies key and value, and no header (kafka-facts), so that every
/// context header in it is the broker's.
pub fn of_copy(letter: &Letter, copy: Record, provenance: &Provenance, to: (String, i32)) -> Outgoing {
    outgoing(letter, copy, None, provenance, to, |key| !key.starts_with(OURS) && !key.starts_with(ERRORS))
}

fn outgoing(
    letter: &Letter,
    record: Record,
    timestamp: Option<i64>,
    provenance: &Provenance,
    (topic, partition): (String, i32),
    keep: impl Fn(&[u8]) -> bool,
) -> Outgoing {
    let mut headers: Vec<Header> = record.headers.into_iter().filter(|header| keep(&header.key)).collect();
    headers.extend(letter.error_headers.iter().cloned());
    headers.extend(added(letter, timestamp, provenance));
    Outgoing { topic, partition, key: record.key, value: record.value, headers }
}

fn added(letter: &Letter, timestamp: Option<i64>, provenance: &Provenance) -> impl Iterator<Item = Header> {
    let here = Coordinates::new(&provenance.dead_letter_topic, letter.partition, letter.offset);
    let always = [
        (REPLAYED_FROM, letter.source.to_string()),
        (DEAD_LETTER, here.to_string()),
        (REPLAY, provenance.replay.clone()),
        (ATTEMPT, letter.attempt.to_string()),
    ];
    let time = timestamp.filter(|t| *t >= 0).map(|t| (ORIGINAL_TIMESTAMP, t.to_string()));
    let header = |(key, value): (&str, String)| Header { key: key.into(), value: Some(value.into_bytes()) };
    always.into_iter().chain(time).map(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::dead_letter::Cause;

    fn letter() -> Letter {
        Letter {
            partition: 1,
            offset: 9,
            timestamp: 1_000,
            source: Coordinates::new("orders", 2, 77),
            cause: Cause::Rejected,
            deliveries: Some(1),
            attempt: 2,
            has_copy: true,
            error_headers: vec![],
        }
    }

    fn header(key: &str, value: Option<&[u8]>) -> Header {
        Header { key: key.into(), value: value.map(<[u8]>::to_vec) }
    }

    fn record(headers: Vec<Header>) -> Record {
        Record { partition: 2, offset: 77, timestamp: 500, key: None, value: Some(vec![]), headers }
    }

    fn provenance() -> Provenance {
        Provenance { dead_letter_topic: "dlq.orders".into(), replay: "shop/fixed/u1".into() }
    }

    fn text(outgoing: &Outgoing) -> Vec<(String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        outgoing.headers.iter().map(|h| (text(&h.key), h.value.as_deref().map(text))).collect()
    }

    #[test]
    fn an_original_keeps_its_bytes_and_order_and_gets_new_provenance() {
        let own = vec![
            header("a", Some(b"1")),
            header("a", None),
            header("redrive.attempt", Some(b"1")),
            header("__dlq.errors.topic", Some(b"somebody else's")),
            header("b", Some(&[0xff])),
        ];
        let sent = of_original(&letter(), record(own.clone()), &provenance(), ("orders".into(), 2));
        assert_eq!(sent.headers[..4], [own[0].clone(), own[1].clone(), own[3].clone(), own[4].clone()]);
        assert_eq!((sent.key.clone(), sent.value.clone()), (None, Some(vec![])));
        let expected = [
            ("redrive.replayed_from", "orders-2@77"),
            ("redrive.dead_letter", "dlq.orders-1@9"),
            ("redrive.replay", "shop/fixed/u1"),
            ("redrive.attempt", "2"),
            ("redrive.original_timestamp", "500"),
        ];
        let expected: Vec<_> = expected.map(|(k, v)| (k.to_string(), Some(v.to_string()))).into();
        assert_eq!(text(&sent)[4..], expected);
    }

    #[test]
    fn a_copy_is_sent_without_the_brokers_context_headers() {
        let copied =
            record(vec![header("__dlq.errors.topic", Some(b"orders")), header("__dlq.errors.offset", Some(b"77"))]);
        let sent = of_copy(&letter(), copied, &provenance(), ("orders".into(), 2));
        let keys: Vec<_> = text(&sent).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [REPLAYED_FROM, DEAD_LETTER, REPLAY, ATTEMPT], "the original's time is not known");
    }

    #[test]
    fn the_dead_letters_context_headers_take_the_place_of_the_originals_where_they_are_kept() {
        let mut letter = letter();
        letter.error_headers = vec![header("__dlq.errors.topic", Some(b"orders"))];
        let own = vec![header("__dlq.errors.topic", Some(b"somebody else's")), header("a", None)];
        let sent = of_original(&letter, record(own), &provenance(), ("scratch".into(), 0));
        let expected = [("a".to_string(), None), ("__dlq.errors.topic".to_string(), Some("orders".to_string()))];
        assert_eq!(text(&sent)[..2], expected);
    }
}
