//! Keeps the intents of agents that share a checkout, beside the leases of runs.
//!
//! # Invariants
//!
//! - Intents are read and changed in one transaction; no other process can interfere.
//! - Every change of state adds a row to `intent_event`, and no row there is ever changed.
//! - A record that is damaged or of a later version is left as it is, and reported.

use provost_change::answer::Unread;
use provost_change::intent::{Intent, State, VERSION};
use provost_change::ports::{IntentEntry, IntentRegistry, RegistryView};
use provost_core::json;
use provost_core::lease::{Lease, Owner};
use provost_core::object::sha256;
use provost_core::path::RepoPath;
use provost_core::record::Head;
use provost_core::scope::Scope;
use provost_engine::ports::PortError;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use serde_json::Value;

use super::{Durability, Registry, Trouble, read_leases};
use crate::bundle::refuse;
use crate::error::StoreError;

impl IntentRegistry for Registry {
    fn turn(
        &mut self,
        named: Option<&str>,
        decide: &mut dyn FnMut(&RegistryView) -> Vec<IntentEntry>,
    ) -> Result<(), PortError> {
        let turn = self.write(Durability::Ordinary, |transaction| {
            let known = read(transaction, named)?;
            for entry in decide(&known) {
                put(transaction, &entry)?;
            }
            Ok(())
        });
        turn.map_err(refuse)
    }

    fn look(&mut self, named: Option<&str>) -> Result<RegistryView, PortError> {
        // One transaction, so that leases and intents are of one moment.
        let look = || -> Result<RegistryView, StoreError> {
            let transaction = self
                .connection
                .unchecked_transaction()
                .map_err(StoreError::database(&self.path))?;
            read(&transaction, named).map_err(|trouble| trouble.at(&self.path))
        };
        look().map_err(refuse)
    }

    fn past(&mut self) -> Result<Vec<Intent>, PortError> {
        let past = self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT intent_id, record, digest FROM intent
                 WHERE json_valid(record) AND json_extract(record, '$.edit_allowed')
                 ORDER BY declared_at, intent_id",
            )?;
            let mut rows = statement.query([])?;
            let mut intents = Vec::new();
            while let Some(row) = rows.next()? {
                let intent_id: String = row.get(0)?;
                let (record, digest): (String, String) = (row.get(1)?, row.get(2)?);
                // An unreadable record is reported where intents are listed.
                intents.extend(parse(&intent_id, &record, &digest));
            }
            Ok(intents)
        });
        past.map_err(refuse)
    }

    fn renew_all(&mut self, owner: &Owner, now: i64) -> Result<usize, PortError> {
        let mut renewed = 0;
        self.turn(None, &mut |known| {
            let mine = known.intents.iter();
            let mine = mine.filter(|one| one.owner == *owner && now < one.expires_at);
            let entries: Vec<IntentEntry> = mine
                .map(|one| IntentEntry {
                    intent: Intent {
                        lease_renewed_at: one.lease_renewed_at.max(now),
                        ..one.clone()
                    },
                    what: None,
                })
                .collect();
            renewed = entries.len();
            entries
        })?;
        Ok(renewed)
    }

    fn purge(&mut self, before: i64) -> Result<usize, PortError> {
        let purge = self.write(Durability::Ordinary, |transaction| {
            let gone = transaction.execute(
                "DELETE FROM intent WHERE open = 0 AND expires_at < ?1",
                [before],
            )?;
            transaction.execute(
                "DELETE FROM intent_event WHERE at < ?1
                 AND intent_id NOT IN (SELECT intent_id FROM intent)",
                [before],
            )?;
            Ok(gone)
        });
        purge.map_err(refuse)
    }

    fn keep_digest(&mut self, digest: &str, intent_id: &str) -> Result<(), PortError> {
        let keep = self.write(Durability::Ordinary, |transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO intent_digest (digest, intent_id) VALUES (?1, ?2)",
                params![digest, intent_id],
            )?;
            Ok(())
        });
        keep.map_err(refuse)
    }

    fn pin_chain(&mut self, intent_id: &str, head: &Head) -> Result<(), PortError> {
        self.pin_change(intent_id, head).map_err(refuse)
    }

    fn intent_of(&mut self, digest: &str) -> Result<Option<String>, PortError> {
        let found = self.read(|connection| {
            let found = connection
                .prepare_cached("SELECT intent_id FROM intent_digest WHERE digest = ?1")?
                .query_row([digest], |row| row.get(0))
                .optional()?;
            Ok(found)
        });
        found.map_err(refuse)
    }
}

impl Registry {
    /// The state changes of an intent, oldest first: event name, and the state after it.
    pub fn history(&mut self, intent_id: &str) -> Result<Vec<(String, Intent)>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT what, record FROM intent_event WHERE intent_id = ?1 ORDER BY seq",
            )?;
            let mut rows = statement.query([intent_id])?;
            let mut history = Vec::new();
            while let Some(row) = rows.next()? {
                let text: String = row.get(1)?;
                let intent = super::from_text("intent", intent_id, &text)?;
                history.push((row.get(0)?, intent));
            }
            Ok(history)
        })
    }
}

/// The scopes held by live agents, as leases that conflict with those of runs.
///
/// A waiting agent holds nothing. An intent has no fencing number, so the fence is a placeholder.
pub(super) fn as_leases(connection: &Connection) -> Result<Vec<Lease>, Trouble> {
    let known = read_intents(connection, None)?.0;
    let lease = |intent: Intent| {
        let entries: Vec<RepoPath> = intent.scope.allowed_files;
        (intent.state == State::Active).then(|| Lease {
            run_id: intent.intent_id,
            scope: Scope::of(entries),
            owner: intent.owner,
            fence: 0,
            granted_at: intent.declared_at,
            expires_at: intent.expires_at,
        })
    };
    Ok(known.into_iter().filter_map(lease).collect())
}

fn read(connection: &Connection, named: Option<&str>) -> Result<RegistryView, Trouble> {
    let (intents, unread) = read_intents(connection, named)?;
    Ok(RegistryView {
        intents,
        leases: read_leases(connection)?,
        unread,
    })
}

fn read_intents(
    connection: &Connection,
    named: Option<&str>,
) -> Result<(Vec<Intent>, Vec<Unread>), Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT intent_id, record, digest FROM intent WHERE open = 1 OR intent_id = ?1
         ORDER BY declared_at, intent_id",
    )?;
    let mut rows = statement.query([named.unwrap_or_default()])?;
    let (mut intents, mut unread) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let intent_id: String = row.get(0)?;
        let (record, digest): (String, String) = (row.get(1)?, row.get(2)?);
        match parse(&intent_id, &record, &digest) {
            Ok(intent) => intents.push(intent),
            Err(why) => unread.push(Unread { intent_id, why }),
        }
    }
    Ok((intents, unread))
}

/// Parses a record, or returns why it is not understood.
fn parse(intent_id: &str, record: &str, digest: &str) -> Result<Intent, String> {
    if sha256(record.as_bytes()) != digest {
        return Err("its content does not fit its digest".to_owned());
    }
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

fn put(transaction: &Transaction<'_>, entry: &IntentEntry) -> Result<(), Trouble> {
    let intent = &entry.intent;
    let record = serde_json::to_value(intent).ok();
    // A failure becomes a NULL, which the schema refuses.
    let record = record.map(|value| json::canonical(&value));
    let digest = record.as_ref().map(|record| sha256(record.as_bytes()));
    transaction
        .prepare_cached(
            "INSERT INTO intent (intent_id, record, digest, open, declared_at, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (intent_id) DO UPDATE SET record = ?2, digest = ?3, open = ?4,
                 expires_at = ?6",
        )?
        .execute(params![
            intent.intent_id,
            record,
            digest,
            intent.state.is_open(),
            intent.declared_at,
            intent.expires_at,
        ])?;
    if let Some(what) = entry.what {
        transaction
            .prepare_cached(
                "INSERT INTO intent_event (intent_id, at, what, record) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                intent.intent_id,
                intent.lease_renewed_at,
                what.name(),
                record
            ])?;
    }
    Ok(())
}
