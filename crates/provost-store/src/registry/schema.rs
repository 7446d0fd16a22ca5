//! Creates the tables, and refuses a database of another program or version.

use std::path::Path;

use rusqlite::Connection;

use crate::error::StoreError;

/// The newest schema that this program knows.
const VERSION: i64 = 2;

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

/// Tables of version 2: the intents of agents that share a checkout.
const INTENTS: &str = "
    CREATE TABLE intent (
        intent_id   TEXT PRIMARY KEY NOT NULL,
        record      TEXT NOT NULL,
        digest      TEXT NOT NULL,
        open        INTEGER NOT NULL,
        declared_at INTEGER NOT NULL,
        expires_at  INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX intent_open ON intent (open, declared_at, intent_id);
    CREATE TABLE intent_event (
        seq       INTEGER PRIMARY KEY AUTOINCREMENT,
        intent_id TEXT NOT NULL,
        at        INTEGER NOT NULL,
        what      TEXT NOT NULL,
        record    TEXT NOT NULL
    ) STRICT;
    CREATE INDEX intent_event_of ON intent_event (intent_id, seq);
    CREATE TRIGGER intent_event_stays BEFORE UPDATE ON intent_event
    BEGIN SELECT RAISE(ABORT, 'rows are only added'); END;
    CREATE TABLE intent_digest (
        digest    TEXT PRIMARY KEY NOT NULL,
        intent_id TEXT NOT NULL
    ) STRICT;
";

/// Whether the database is ours and has the newest schema.
pub(super) fn is_current(connection: &Connection) -> bool {
    let is = |name: &str, wanted: i64| {
        let found = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        found.is_ok_and(|found| found == wanted)
    };
    is("application_id", APPLICATION) && is("user_version", VERSION)
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
            return set_mode(connection, path);
        }
        if version == 1 {
            set_mode(connection, path)?;
            return run(connection, path, INTENTS);
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

fn set_mode(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .and_then(|()| connection.pragma_update(None, "foreign_keys", true))
        .map_err(StoreError::database(path))
}
