//! Reads an idle registry, without creating the files that a writer needs.
//!
//! The first user of a database with a log makes the log and its index, and the last one removes
//! them. A command with one question spends more on that than on the answer. Opening the database
//! takes a turn at the lock. So a process that has the turn and finds no log knows that no other
//! process has the database open. Then it reads the database as a plain file.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{PATIENCE, SqliteRegistry, files, schema};
use crate::error::StoreError;
use crate::file;
use crate::lock::ShortLock;

impl SqliteRegistry {
    /// Runs a query that changes nothing on the registry at `path`.
    pub fn glance<T, E: From<StoreError>>(
        path: &Path,
        ask: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let path = file::resolve_directory(path)?;
        file::refuse_network(&path)?;
        let lock = path.with_extension("lock");
        let turnstile = ShortLock::open(&lock, PATIENCE)?;
        let turn = turnstile.enter()?;
        if files(&path)? == [true, false, false]
            && let Some(connection) = at_rest(&path)
        {
            let mut registry = Self {
                // The lock is never taken: a connection that cannot write needs no turn.
                turnstile: ShortLock::open(&lock, PATIENCE)?,
                path,
                connection,
            };
            return ask(&mut registry);
        }
        drop(turn);
        ask(&mut Self::open(&path)?)
    }
}

/// The database as a plain file; `None` if it must be opened in the ordinary way.
fn at_rest(path: &Path) -> Option<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(address(path), flags).ok()?;
    schema::is_current(&connection).then_some(connection)
}

/// The SQLite address of a file that does not change while it is open.
fn address(path: &Path) -> OsString {
    let mut address = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(*byte),
            byte if byte.is_ascii_alphanumeric() => address.push(*byte),
            byte => address.extend(format!("%{byte:02X}").bytes()),
        }
    }
    address.extend(b"?immutable=1");
    OsString::from_vec(address)
}
