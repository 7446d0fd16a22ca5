//! Creates the tables, and refuses a database of another program or version.

use std::path::Path;

use rusqlite::Connection;

use super::{Trouble, intent_events};
use crate::error::StoreError;

/// The newest schema that this program knows.
const VERSION: i64 = 3;

/// SQLite application id of our database: the letters `prov`.
const APPLICATION: i64 = 0x7072_6f76;

const TABLES: &str = "
    CREATE TABLE fence (
        only     INTEGER PRIMARY KEY CHECK (only = 1),
        next     INTEGER NOT NULL,
        reserved INTEGER NOT NULL,
        boot     TEXT NOT NULL
    ) STRICT;
    INSERT INTO fence VALUES (1, 1, 1, '');
    CREATE TABLE lease (
        run_id     TEXT PRIMARY KEY NOT NULL,
        fence      INTEGER NOT NULL UNIQUE,
        scope      TEXT NOT NULL,
        owner      TEXT NOT NULL,
        granted_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE pin (
        run_id TEXT PRIMARY KEY NOT NULL,
        seq    INTEGER NOT NULL,
        hash   TEXT NOT NULL
    ) STRICT;
";

/// Tables of version 3: the events of intents of agents that share a checkout.
const INTENTS: &str = "
    CREATE TABLE intent_event (
        seq       INTEGER PRIMARY KEY AUTOINCREMENT,
        intent_id TEXT NOT NULL,
        event     TEXT NOT NULL,
        hash      TEXT NOT NULL
    ) STRICT;
    CREATE INDEX intent_event_of ON intent_event (intent_id, seq);
    CREATE TRIGGER intent_event_stays BEFORE UPDATE ON intent_event
    BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
    CREATE TABLE intent_index (
        intent_id   TEXT PRIMARY KEY NOT NULL,
        last        INTEGER NOT NULL,
        open        INTEGER NOT NULL,
        declared_at INTEGER NOT NULL,
        expires_at  INTEGER NOT NULL,
        renewed_at  INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX intent_index_open ON intent_index (open, declared_at, intent_id);
    CREATE TABLE IF NOT EXISTS intent_digest (
        digest    TEXT PRIMARY KEY NOT NULL,
        intent_id TEXT NOT NULL
    ) STRICT;
";

/// Version 2 stored the state of an intent, which becomes its first event; a record and its digest
/// are the event and its hash. Its table of events was written and never read.
const BEFORE_INTENTS: &str = "DROP TABLE intent_event;";
const AFTER_INTENTS: &str = "
    INSERT INTO intent_event (intent_id, event, hash)
        SELECT intent_id, record, digest FROM intent ORDER BY declared_at, intent_id;
    INSERT INTO intent_index
        SELECT intent_id, seq, open, declared_at, expires_at, 0
        FROM intent JOIN intent_event USING (intent_id);
    DROP TABLE intent;
";

/// Whether the database is ours, has the newest schema and an index that fits.
pub(super) fn is_current(connection: &Connection) -> bool {
    let is = |name: &str, wanted: i64| {
        let found = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        found.is_ok_and(|found| found == wanted)
    };
    let current = is("application_id", APPLICATION) && is("user_version", VERSION);
    current && intent_events::is_indexed(connection).unwrap_or(false)
}

/// Checks that the database is ours, and brings an empty or older one to the newest schema.
///
/// The caller has its turn at the lock file.
pub(super) fn prepare(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let pragma = |name: &str| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(StoreError::database(path))
    };
    let version = pragma("user_version")?;
    if pragma("application_id")? == APPLICATION {
        if version > VERSION {
            return Err(StoreError::Newer {
                path: path.to_owned(),
                found: version,
                known: VERSION,
            });
        }
        if version == VERSION {
            set_mode(connection, path)?;
            return catch_up(connection, path);
        }
        if version == 1 || version == 2 {
            set_mode(connection, path)?;
            let tables = match version {
                1 => INTENTS.to_owned(),
                _ => format!("{BEFORE_INTENTS}{INTENTS}{AFTER_INTENTS}"),
            };
            return run(connection, path, &tables);
        }
    }
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(StoreError::database(path))?;
    if version != 0 || tables != 0 {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
        });
    }
    set_mode(connection, path)?;
    run(connection, path, &format!("{TABLES}{INTENTS}"))
}

/// Brings the database to the newest schema in one transaction: a crash leaves it unchanged.
fn run(connection: &Connection, path: &Path, tables: &str) -> Result<(), StoreError> {
    let script = format!(
        "PRAGMA synchronous = FULL;
         BEGIN IMMEDIATE;
         {tables}
         PRAGMA user_version = {VERSION};
         PRAGMA application_id = {APPLICATION};
         COMMIT;"
    );
    connection
        .execute_batch(&script)
        .map_err(StoreError::database(path))
}

/// Makes the index of intents anew if it is behind their events.
fn catch_up(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let make = || -> Result<(), Trouble> {
        if !intent_events::is_indexed(connection)? {
            let transaction = connection.unchecked_transaction()?;
            intent_events::index(&transaction)?;
            transaction.commit()?;
        }
        Ok(())
    };
    make().map_err(|trouble| trouble.at(path))
}

fn set_mode(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .and_then(|()| connection.pragma_update(None, "foreign_keys", true))
        .map_err(StoreError::database(path))
}
