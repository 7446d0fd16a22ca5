//! Reads and appends the events of intents, and keeps the index of them.

use provost_change::answer::Unread;
use provost_change::intent::fact::IntentFact;
use provost_change::intent::{Intent, VERSION};
use provost_change::ports::IntentEntry;
use provost_core::json;
use provost_core::object::sha256;
use rusqlite::{Connection, Transaction, params};
use serde_json::Value;

use super::Trouble;

/// Which intents are read.
#[derive(Clone, Copy)]
pub(super) enum Which<'a> {
    All,
    /// The open ones, and the one of this id.
    OpenAnd(Option<&'a str>),
    One(&'a str),
}

/// One event as it is stored: its number, its text and its hash.
type EventRow = (i64, String, String);

/// The events of an intent, and what the index says about it.
struct Chain {
    intent_id: String,
    last: i64,
    is_open: bool,
    renewed_at: i64,
    events: Vec<EventRow>,
}

/// The intents in the order of their declaration, and those that cannot be read.
pub(super) fn read_chains(
    connection: &Connection,
    which: Which<'_>,
) -> Result<(Vec<Intent>, Vec<Unread>), Trouble> {
    let (mut intents, mut unread) = (Vec::new(), Vec::new());
    for chain in chains(connection, which)? {
        match chain.intent() {
            Ok((intent, _)) => intents.push(intent),
            Err(why) => unread.push(Unread {
                intent_id: chain.intent_id,
                why,
            }),
        }
    }
    Ok((intents, unread))
}

fn chains(connection: &Connection, which: Which<'_>) -> Result<Vec<Chain>, Trouble> {
    let (condition, id) = match which {
        Which::All => ("?1 = ''", ""),
        Which::OpenAnd(named) => (
            "known.open = 1 OR known.intent_id = ?1",
            named.unwrap_or_default(),
        ),
        Which::One(id) => ("known.intent_id = ?1", id),
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT known.intent_id, known.last, known.open, known.renewed_at,
                event.seq, event.event, event.hash
         FROM intent_index known LEFT JOIN intent_event event USING (intent_id)
         WHERE {condition}
         ORDER BY known.declared_at, known.intent_id, event.seq"
    ))?;
    let mut rows = statement.query([id])?;
    let mut found: Vec<Chain> = Vec::new();
    while let Some(row) = rows.next()? {
        let intent_id: String = row.get(0)?;
        if found
            .last()
            .is_none_or(|chain| chain.intent_id != intent_id)
        {
            found.push(Chain {
                intent_id,
                last: row.get(1)?,
                is_open: row.get(2)?,
                renewed_at: row.get(3)?,
                events: Vec::new(),
            });
        }
        if let (Some(chain), Some(seq)) = (found.last_mut(), row.get(4)?) {
            chain.events.push((seq, row.get(5)?, row.get(6)?));
        }
    }
    Ok(found)
}

impl Chain {
    /// The intent with its last heartbeat, and the hash of its last event; or why it cannot be
    /// read.
    fn intent(&self) -> Result<(Intent, String), String> {
        let (mut intent, hash) = fold(&self.intent_id, &self.events)?;
        if self.events.last().map(|(seq, ..)| *seq) != Some(self.last) {
            return Err("its last event is missing".to_owned());
        }
        if intent.state.is_open() != self.is_open {
            return Err("the index does not fit its events".to_owned());
        }
        intent.lease_renewed_at = intent.lease_renewed_at.max(self.renewed_at);
        Ok((intent, hash))
    }
}

/// What the events of an intent add up to, and the hash of the last one.
fn fold(intent_id: &str, events: &[EventRow]) -> Result<(Intent, String), String> {
    let mut folded: Option<(Intent, String)> = None;
    for (_, event, hash) in events {
        let before = folded.as_ref().map_or("", |(_, hash)| hash);
        if chained(before, event) != *hash {
            return Err("its content does not fit its digest".to_owned());
        }
        let intent = match folded {
            None => declaration(intent_id, event)?,
            Some((intent, _)) => {
                let fact: IntentFact =
                    json::parse_own(event.as_bytes()).map_err(|error| error.to_string())?;
                intent.after(&fact)
            }
        };
        folded = Some((intent, hash.clone()));
    }
    folded.ok_or_else(|| "it has no events".to_owned())
}

/// The hash of an event that follows the one with the hash `before`; empty for the first.
fn chained(before: &str, event: &str) -> String {
    sha256(format!("{before}{event}").as_bytes())
}

/// Parses the first event, or returns why it is not understood.
fn declaration(intent_id: &str, record: &str) -> Result<Intent, String> {
    let value = json::parse(record.as_bytes()).map_err(|error| error.to_string())?;
    match value.get("version").and_then(Value::as_u64) {
        Some(version) if version <= u64::from(VERSION) => {}
        Some(version) => {
            return Err(format!(
                "its version {version} is newer than this program knows"
            ));
        }
        None => return Err("it has no version".to_owned()),
    }
    let intent: Intent = json::from_value(value).map_err(|error| error.to_string())?;
    if intent.intent_id == intent_id {
        Ok(intent)
    } else {
        Err("it is the record of another intent".to_owned())
    }
}

/// Appends an event, and notes in the index what the intent is after it.
pub(super) fn put(transaction: &Transaction<'_>, entry: &IntentEntry) -> Result<(), Trouble> {
    let (intent, before, event) = match entry {
        IntentEntry::Declared(intent) => (
            Intent::clone(intent),
            String::new(),
            serde_json::to_value(intent),
        ),
        IntentEntry::Changed { intent_id, fact } => {
            let chains = chains(transaction, Which::One(intent_id))?;
            let known = chains.first().and_then(|chain| chain.intent().ok());
            let (intent, before) = known.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            (intent.after(fact), before, serde_json::to_value(fact))
        }
    };
    // A failure becomes a NULL, which the schema refuses.
    let event = event.ok().map(|event| json::canonical(&event));
    let hash = event.as_ref().map(|event| chained(&before, event));
    transaction
        .prepare_cached("INSERT INTO intent_event (intent_id, event, hash) VALUES (?1, ?2, ?3)")?
        .execute(params![intent.intent_id, event, hash])?;
    let last = transaction.last_insert_rowid();
    if before.is_empty() {
        // A second declaration of the same intent is refused by the key of the index.
        transaction
            .prepare_cached("INSERT INTO intent_index VALUES (?1, 0, 0, ?2, 0, 0)")?
            .execute(params![intent.intent_id, intent.declared_at])?;
    }
    note(transaction, &intent, last)
}

fn note(connection: &Connection, intent: &Intent, last: i64) -> Result<(), Trouble> {
    connection
        .prepare_cached(
            "UPDATE intent_index SET last = ?2, open = ?3, expires_at = ?4,
                 renewed_at = max(renewed_at, ?5)
             WHERE intent_id = ?1",
        )?
        .execute(params![
            intent.intent_id,
            last,
            intent.state.is_open(),
            intent.expires_at,
            intent.lease_renewed_at,
        ])?;
    Ok(())
}

/// Whether the index knows every event.
pub(super) fn is_indexed(connection: &Connection) -> rusqlite::Result<bool> {
    let behind: bool = connection.query_row(
        "SELECT EXISTS (
             SELECT 1 FROM (SELECT intent_id, max(seq) AS last FROM intent_event GROUP BY intent_id)
                 AS event
             LEFT JOIN intent_index known USING (intent_id)
             WHERE known.last IS NULL OR known.last < event.last)",
        [],
        |row| row.get(0),
    )?;
    Ok(!behind)
}

/// Makes the index anew from the events. An intent that cannot be read counts as open, so that it
/// is reported.
pub(super) fn index(connection: &Connection) -> Result<(), Trouble> {
    connection.execute_batch(
        "INSERT OR IGNORE INTO intent_index
         SELECT intent_id, max(seq), 1, 0, 0, 0 FROM intent_event GROUP BY intent_id;",
    )?;
    for chain in chains(connection, Which::All)? {
        let last = chain.events.last().map_or(chain.last, |(seq, ..)| *seq);
        // Events that are missing at the end stay noticeable.
        let last = last.max(chain.last);
        match fold(&chain.intent_id, &chain.events) {
            Ok((intent, _)) => {
                connection.execute(
                    "UPDATE intent_index SET declared_at = ?2 WHERE intent_id = ?1",
                    params![intent.intent_id, intent.declared_at],
                )?;
                note(connection, &intent, last)?;
            }
            Err(_) => {
                connection.execute(
                    "UPDATE intent_index SET last = ?2, open = 1 WHERE intent_id = ?1",
                    params![chain.intent_id, last],
                )?;
            }
        }
    }
    Ok(())
}
