//! Keeps the intents of agents that share a checkout, beside the leases of runs.
//!
//! # Invariants
//!
//! - Intents are read and changed in one transaction; no other process can interfere.
//! - The events of an intent are the truth: the first is its declaration, each later one a fact, and
//!   its state is the fold over them. Rows are only added. Each has the hash of itself and of the
//!   one before.
//! - `intent_index` has what is needed to find intents, and is made anew from the events when it is
//!   behind them. Its `renewed_at` is the last heartbeat of a lease, which is no event.
//! - Events that are damaged, missing or of a later version are left as they are, and reported.

use provost_change::answer::Unread;
use provost_change::intent::{Intent, State};
use provost_change::ports::{IntentEntry, IntentRegistry, RegistryView};
use provost_core::lease::{Lease, Owner};
use provost_core::path::RepoPath;
use provost_core::record::Head;
use provost_core::scope::Scope;
use provost_engine::ports::PortError;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::intent_events::{Which, put, read_chains};
use super::{Durability, SqliteRegistry, Trouble, read_leases};
use crate::bundle::refuse;
use crate::error::StoreError;

impl IntentRegistry for SqliteRegistry {
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
        let past = self.read(|connection| Ok(read_chains(connection, Which::All)?.0));
        let mut past = past.map_err(refuse)?;
        past.retain(|intent| intent.edit_allowed);
        Ok(past)
    }

    fn renew_all(&mut self, owner: &Owner, now: i64) -> Result<usize, PortError> {
        self.beat(owner, None, now)
    }

    fn renew_one(&mut self, owner: &Owner, intent_id: &str, now: i64) -> Result<usize, PortError> {
        self.beat(owner, Some(intent_id), now)
    }

    fn purge(&mut self, before: i64) -> Result<usize, PortError> {
        let purge = self.write(Durability::Ordinary, |transaction| {
            transaction.execute(
                "DELETE FROM intent_event WHERE intent_id IN
                 (SELECT intent_id FROM intent_index WHERE open = 0 AND expires_at < ?1)",
                [before],
            )?;
            let gone = transaction.execute(
                "DELETE FROM intent_index WHERE open = 0 AND expires_at < ?1",
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

impl SqliteRegistry {
    /// Renews the leases of open intents of `owner` that are not expired: of `one`, or of all.
    fn beat(&mut self, owner: &Owner, one: Option<&str>, now: i64) -> Result<usize, PortError> {
        let beat = self.write(Durability::Ordinary, |transaction| {
            let known = read_intents(transaction, None)?.0;
            let meant = |intent: &&Intent| {
                let live = intent.owner == *owner && now < intent.expires_at;
                live && one.is_none_or(|one| one == intent.intent_id)
            };
            let mut renewed = 0;
            for intent in known.iter().filter(meant) {
                renewed += transaction
                    .prepare_cached(
                        "UPDATE intent_index SET renewed_at = max(renewed_at, ?2)
                         WHERE intent_id = ?1",
                    )?
                    .execute(params![intent.intent_id, now])?;
            }
            Ok(renewed)
        });
        beat.map_err(refuse)
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
    read_chains(connection, Which::OpenAnd(named))
}
