//! Entries to records of the ledger topic and back. The format is described in `docs/ledger.md`; a change that an older
//! operator would misread takes a new [`VERSION`].

use super::entry::Entry;
use crate::kafka::TopicId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub const VERSION: u32 = 1;

/// Why a record of the ledger topic is no entry. Reading stops at the first: an owner that cannot read all of the ledger
/// does not know what was sent.
#[derive(Debug, thiserror::Error)]
pub enum DecodeEntry {
    #[error("its key is \"{0}\", which no entry has")]
    ReadKey(String),
    #[error("it has no value")]
    FindValue,
    #[error("it has format version {found}, and this operator reads up to {VERSION}: upgrade the operator")]
    SupportVersion { found: u32 },
    #[error("it is of the kind \"{0}\", which this operator does not know: upgrade the operator")]
    KnowKind(String),
    #[error("its key says \"{key}\", its value \"{value}\"")]
    MatchKey { key: String, value: String },
    #[error("its value is not as the format says: {0}")]
    ParseValue(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Head {
    v: u32,
    kind: String,
}

/// Nested rather than flattened: serde's flattening cannot read maps with numbers as keys.
#[derive(Serialize)]
struct Envelope<'e, T> {
    v: u32,
    kind: &'e str,
    entry: &'e T,
}

#[derive(Deserialize)]
struct Body<T> {
    entry: T,
}

/// The value of the record that holds the entry.
pub fn encode(entry: &Entry) -> Vec<u8> {
    let kind = entry.kind();
    match entry {
        Entry::Claim(claim) => envelope(kind, claim),
        Entry::Start(start) => envelope(kind, start),
        Entry::Intent(intent) => envelope(kind, intent),
        Entry::Outcome(outcome) => envelope(kind, outcome),
        Entry::Uncertain(uncertain) => envelope(kind, uncertain),
        Entry::Release(release) => envelope(kind, release),
        Entry::End(end) => envelope(kind, end),
    }
}

fn envelope<T: Serialize>(kind: &str, entry: &T) -> Vec<u8> {
    let written = serde_json::to_vec(&Envelope { v: VERSION, kind, entry });
    written.expect("memory takes what is written to it, and entries hold nothing that JSON has no form for")
}

/// The entry of a record, or none if it is about another dead-letter topic.
pub fn decode(dlq: TopicId, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Option<Entry>, DecodeEntry> {
    let key = key.unwrap_or_default();
    let unreadable = || DecodeEntry::ReadKey(String::from_utf8_lossy(key).into_owned());
    let text = str::from_utf8(key).map_err(|_| unreadable())?;
    let topic = text.split('/').next().and_then(|id| TopicId::try_parse(id).ok()).ok_or_else(unreadable)?;
    if topic != dlq {
        return Ok(None);
    }
    let entry = decode_value(value.ok_or(DecodeEntry::FindValue)?)?;
    let expected = entry.key(dlq);
    if text == expected {
        Ok(Some(entry))
    } else {
        Err(DecodeEntry::MatchKey { key: text.to_owned(), value: expected })
    }
}

fn decode_value(value: &[u8]) -> Result<Entry, DecodeEntry> {
    let head: Head = serde_json::from_slice(value)?;
    if head.v != VERSION {
        return Err(DecodeEntry::SupportVersion { found: head.v });
    }
    Ok(match head.kind.as_str() {
        "claim" => Entry::Claim(body(value)?),
        "start" => Entry::Start(body(value)?),
        "intent" => Entry::Intent(body(value)?),
        "outcome" => Entry::Outcome(body(value)?),
        "uncertain" => Entry::Uncertain(body(value)?),
        "release" => Entry::Release(body(value)?),
        "end" => Entry::End(body(value)?),
        _ => return Err(DecodeEntry::KnowKind(head.kind)),
    })
}

fn body<T: DeserializeOwned>(value: &[u8]) -> Result<T, DecodeEntry> {
    let body: Body<T> = serde_json::from_slice(value)?;
    Ok(body.entry)
}
