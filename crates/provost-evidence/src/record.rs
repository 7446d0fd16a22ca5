//! The hash chain of events: records of a ledger.
//!
//! A record is one JSON object on one line: the event of the contract format plus `seq`, `prev` and
//! `hash`. The hash covers the canonical spelling of all other fields of the record, including the
//! hash of the previous record. So a record that is changed, moved or dropped breaks the chain from
//! there on. Only the end of a chain can be cut undetected; a head pinned elsewhere shows that.
//!
//! A record may also carry a `mac`, made with a secret of the user who wrote it. It covers all that
//! the hash covers except itself, so the `mac` of the last record vouches for the whole chain.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::json;
use crate::object::sha256;
use crate::user_secret::{Purpose, Secret};

/// The `prev` of the first record of a chain.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The fields of a record, sorted: those of its event, its number and two hashes.
const FIELDS: [&str; 11] = [
    "attempt",
    "event_type",
    "hash",
    "level",
    "payload",
    "prev",
    "run_id",
    "seq",
    "task_id",
    "trace_id",
    "ts",
];

/// The field that shows who wrote a record; optional.
const MAC: &str = "mac";

/// How much a record matters to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Normal operation.
    Info,
    /// Something that may need attention.
    Warn,
    /// A gate refused or a step failed.
    Error,
}

/// An event without a place in a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, as RFC 3339 in UTC. Informational: `seq` is the order.
    pub ts: String,
    pub level: Level,
    pub event_type: String,
    pub run_id: String,
    pub task_id: Option<String>,
    /// From 1.
    pub attempt: Option<u32>,
    pub payload: Map<String, Value>,
    /// Joins the records of one run across tools.
    pub trace_id: String,
}

/// The kind and the facts of an event, from a variant whose content is an object.
pub fn tagged(fact: &impl Serialize) -> (String, Map<String, Value>) {
    let variant = match serde_json::to_value(fact) {
        Ok(Value::Object(variant)) => variant.into_iter().next(),
        _ => None,
    };
    match variant {
        Some((kind, Value::Object(payload))) => (kind, payload),
        // Anything else has no kind, and no fold accepts it as a fact.
        _ => (String::new(), Map::new()),
    }
}

impl Event {
    /// The inverse of [`tagged`].
    pub fn untagged<T: DeserializeOwned>(&self) -> Result<T, json::ReadError> {
        let payload = json::Node::from(&self.payload);
        json::from_tagged(&self.event_type, payload).map_err(|error| match error {
            json::ReadError::Shape { field, what } => {
                let inside = field.strip_prefix(&self.event_type);
                let field = match inside {
                    Some(inside) => format!("payload{inside}"),
                    None => "event_type".to_owned(),
                };
                json::ReadError::Shape { field, what }
            }
            other => other,
        })
    }
}

/// One line of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    #[serde(flatten)]
    pub event: Event,
    /// Its number, from 0.
    pub seq: u64,
    pub prev: String,
    pub hash: String,
    /// Shows the user who wrote the record that it is their own; only that user can check it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

/// The end of a chain, which the next record continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The number of the next record.
    pub next: u64,
    pub hash: String,
}

impl Head {
    pub fn genesis() -> Self {
        Self::after(GENESIS)
    }

    /// The head of a chain that continues another one after `hash`.
    pub fn after(hash: &str) -> Self {
        Self {
            next: 0,
            hash: hash.to_owned(),
        }
    }

    /// Makes `event` the next record, and advances the head.
    pub fn append(&mut self, event: Event) -> Record {
        self.append_marked(event, None)
    }

    /// Like [`Self::append`], with a `mac` made with `secret`, if there is one.
    pub fn append_marked(&mut self, event: Event, secret: Option<&Secret>) -> Record {
        let mut record = Record {
            event,
            seq: self.next,
            prev: self.hash.clone(),
            hash: String::new(),
            mac: None,
        };
        record.mac = secret.map(|secret| secret.mac(Purpose::Record, record.claim().as_bytes()));
        record.hash = record.digest();
        self.next += 1;
        self.hash.clone_from(&record.hash);
        record
    }

    /// Advances the head over `record`, whose content has this `digest`, if it is the next one.
    fn follow(&mut self, record: &Record, digest: &str) -> Result<(), Broken> {
        let broken = |what| {
            Err(Broken {
                seq: self.next,
                what,
            })
        };
        if record.seq != self.next {
            return broken("its number is not the next one");
        }
        if record.prev != self.hash {
            return broken("it does not name the record before it");
        }
        if record.hash != digest {
            return broken("its content does not fit its hash");
        }
        self.next += 1;
        self.hash.clone_from(&record.hash);
        Ok(())
    }
}

impl Record {
    /// The hash this record must have.
    fn digest(&self) -> String {
        digest(&self.fields())
    }

    /// The fields of this record without its hash.
    fn fields(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else {
            // A record is an object with string keys; serialising it cannot fail.
            return Map::new();
        };
        fields.remove("hash");
        fields
    }

    /// The text that the `mac` of this record covers.
    fn claim(&self) -> String {
        let mut fields = self.fields();
        fields.remove(MAC);
        json::canonical_object(&fields)
    }

    /// Whether the holder of `secret` wrote this record, and with it all records before it.
    pub fn is_by(&self, secret: &Secret) -> bool {
        let mac = self.mac.as_deref();
        mac.is_some_and(|mac| secret.made(mac, Purpose::Record, self.claim().as_bytes()))
    }

    /// The record as its line, without the newline.
    pub fn line(&self) -> String {
        // As above: this cannot fail, and an empty line would break the chain visibly.
        serde_json::to_value(self)
            .map(|value| json::canonical(&value))
            .unwrap_or_default()
    }
}

/// The hash for a record with these `fields`, which are all but its hash.
fn digest(fields: &Map<String, Value>) -> String {
    sha256(json::canonical_object(fields).as_bytes())
}

/// The place where a chain is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {seq}: {what}")]
pub struct Broken {
    /// The number of the first invalid record.
    pub seq: u64,
    pub what: &'static str,
}

/// A ledger, parsed from its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// Oldest first.
    pub records: Vec<Record>,
    pub head: Head,
    /// The length of the records in bytes; what follows is an incomplete line.
    pub whole: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    #[error("line {line} is not a record")]
    Line {
        /// From 1.
        line: usize,
        source: json::ReadError,
    },
    /// A line is a record, but not in canonical form.
    #[error("line {line} is not in canonical form")]
    Spelling {
        /// From 1.
        line: usize,
    },
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Parses a ledger that continues `head`.
///
/// A last line without its newline is the result of a crash. It is not a record and not an error,
/// and `whole` says where it begins.
pub fn read(bytes: &[u8], mut head: Head) -> Result<Chain, ChainError> {
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let mut records = Vec::new();
    let lines = bytes[..whole]
        .strip_suffix(b"\n")
        .map(|body| body.split(|byte| *byte == b'\n'));
    for (index, bytes) in lines.into_iter().flatten().enumerate() {
        let line = Line::read(bytes).map_err(|source| ChainError::Line {
            line: index + 1,
            source,
        })?;
        if !line.is_spelled {
            return Err(ChainError::Spelling { line: index + 1 });
        }
        let Line { record, digest, .. } = line;
        head.follow(&record, &digest)?;
        records.push(record);
    }
    Ok(Chain {
        records,
        head,
        whole,
    })
}

/// One parsed line of a ledger.
struct Line {
    record: Record,
    /// The hash of its content.
    digest: String,
    /// Whether it is in canonical form.
    is_spelled: bool,
}

impl Line {
    fn read(bytes: &[u8]) -> Result<Self, json::ReadError> {
        let mut value = json::parse(bytes)?;
        let mut is_spelled = json::canonical(&value).as_bytes() == bytes;
        let mut digested = String::new();
        if let Value::Object(fields) = &mut value {
            // With unknown or missing fields the canonical form would differ, and a level can be
            // parsed from more than its name.
            let known = fields.keys().filter(|name| *name != MAC);
            let marked = fields.get(MAC).is_none_or(Value::is_string);
            is_spelled &= known.eq(FIELDS) && fields["level"].is_string() && marked;
            let hash = fields.remove("hash");
            digested = digest(fields);
            fields.extend(hash.map(|hash| ("hash".to_owned(), hash)));
        }
        Ok(Self {
            record: json::from_value(value)?,
            digest: digested,
            is_spelled,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(text: &str) -> Event {
        Event {
            ts: "2026-01-01T00:00:00Z".into(),
            level: Level::Info,
            event_type: "STEP_STARTED".into(),
            run_id: "run_1".into(),
            task_id: None,
            attempt: Some(1),
            payload: Map::from_iter([("text".to_owned(), Value::from(text))]),
            trace_id: "trace".into(),
        }
    }

    fn ledger(texts: &[String]) -> Vec<String> {
        let mut head = Head::genesis();
        texts
            .iter()
            .map(|text| head.append(event(text)).line() + "\n")
            .collect()
    }

    fn check(lines: &[String]) -> Result<Chain, ChainError> {
        read(lines.concat().as_bytes(), Head::genesis())
    }

    #[test]
    fn a_torn_last_line_is_not_a_record() {
        let lines = ledger(&["a".into(), "b".into()]);
        let bytes = lines.concat();
        for cut in lines[0].len()..bytes.len() {
            let chain = read(&bytes.as_bytes()[..cut], Head::genesis()).unwrap();
            assert_eq!(
                (chain.records.len(), chain.whole),
                (1, lines[0].len()),
                "{cut}"
            );
        }
    }

    #[test]
    fn the_last_mac_vouches_for_the_whole_chain_and_for_no_other() {
        let (mine, other) = (Secret::of([7; 32]), Secret::of([8; 32]));
        let mut head = Head::genesis();
        let first = head.append_marked(event("a"), Some(&mine));
        let second = head.append_marked(event("b"), Some(&mine));
        assert!(first.is_by(&mine) && second.is_by(&mine));
        assert!(!second.is_by(&other));
        let lines = [first.line() + "\n", second.line() + "\n"];
        let read = check(&lines).unwrap().records;
        assert_eq!(read, [first.clone(), second.clone()]);
        assert!(read[1].is_by(&mine));
        // A record that another writer appends or replaces is not mine.
        let mut forged = head.append(event("c"));
        assert!(!forged.is_by(&mine));
        forged.mac.clone_from(&second.mac);
        assert!(!forged.is_by(&mine));
        let mut head = Head::genesis();
        head.append(event("x"));
        let mut moved = head.append(event("b"));
        moved.mac = second.mac;
        assert!(!moved.is_by(&mine));
    }

    #[test]
    fn a_mac_that_was_changed_breaks_the_chain() {
        let record = Head::genesis().append_marked(event("a"), Some(&Secret::of([7; 32])));
        let line = record.line() + "\n";
        let mac = record.mac.unwrap();
        let other = line.replace(&mac, &"0".repeat(64));
        assert!(check(std::slice::from_ref(&line)).is_ok());
        assert!(matches!(check(&[other]), Err(ChainError::Broken(_))));
        let gone = line.replace(&format!("\"mac\":\"{mac}\","), "");
        assert!(matches!(check(&[gone]), Err(ChainError::Broken(_))));
    }

    #[test]
    fn a_record_has_exactly_its_fields() {
        let mut head = Head::genesis();
        let record = head.append(event("a"));
        let spelled = |change: fn(&mut Map<String, Value>)| {
            let Ok(Value::Object(mut fields)) = serde_json::to_value(&record) else {
                panic!("a record is an object");
            };
            change(&mut fields);
            fields.remove("hash");
            let hash = digest(&fields);
            fields.insert("hash".to_owned(), Value::from(hash));
            read(
                (json::canonical_object(&fields) + "\n").as_bytes(),
                Head::genesis(),
            )
        };
        assert!(spelled(|_| {}).is_ok());
        let added = spelled(|fields| drop(fields.insert("more".to_owned(), Value::Null)));
        assert!(
            matches!(added, Err(ChainError::Spelling { line: 1 })),
            "{added:?}"
        );
        // A nullable field may not be missing.
        let missing = spelled(|fields| drop(fields.remove("task_id")));
        assert!(
            matches!(missing, Err(ChainError::Spelling { line: 1 })),
            "{missing:?}"
        );
        let swapped = spelled(|fields| {
            fields.remove("task_id");
            fields.insert("more".to_owned(), Value::Null);
        });
        assert!(
            matches!(swapped, Err(ChainError::Spelling { line: 1 })),
            "{swapped:?}"
        );
        let odd = spelled(|fields| {
            let level = serde_json::json!({ "INFO": null });
            fields.insert("level".to_owned(), level);
        });
        assert!(odd.is_err(), "{odd:?}");
        let other = spelled(|fields| drop(fields.insert("seq".to_owned(), Value::from(1.5))));
        assert!(
            matches!(other, Err(ChainError::Line { line: 1, .. })),
            "{other:?}"
        );
    }

    proptest! {
        #[test]
        fn a_chain_shows_every_change(
            texts in prop::collection::vec(".{0,8}", 2..6),
            at: prop::sample::Index,
            other: prop::sample::Index,
            byte: prop::sample::Index,
            bit in 0..7_u8,
        ) {
            let lines = ledger(&texts);
            let chain = check(&lines).unwrap();
            prop_assert_eq!(chain.records.len(), texts.len());

            let mut flipped = lines.concat().into_bytes();
            let place = byte.index(flipped.len() - 1);
            flipped[place] ^= 1 << bit;
            prop_assert!(read(&flipped, Head::genesis()).is_err());

            let mut swapped = lines.clone();
            let (a, b) = (at.index(lines.len()), other.index(lines.len()));
            swapped.swap(a, b);
            prop_assert_eq!(check(&swapped).is_ok(), a == b);

            // Except the last record: only a head pinned elsewhere shows that it is missing.
            let mut dropped = lines.clone();
            dropped.remove(at.index(lines.len() - 1));
            prop_assert!(check(&dropped).is_err());

            let mut repeated = lines.clone();
            repeated.insert(a, lines[a].clone());
            prop_assert!(check(&repeated).is_err());
        }
    }
}
