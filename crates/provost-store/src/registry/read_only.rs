//! Reads a registry that nobody uses, without making what a use needs.
//!
//! A database with a log begins each use by making the log and its index, and ends the last one by
//! removing them. A command that asks one question spends more on that than on the answer. Whoever
//! has a turn and finds no log knows that nobody else has the database open, because opening it
//! takes a turn as well: then it is a file like any other and is read as it is.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{PATIENCE, Registry, files, schema};
use crate::error::StoreError;
use crate::file;
use crate::lock::ShortLock;

impl Registry {
    /// Asks the registry at `path` something that changes nothing.
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
                // It is never entered: what cannot be written needs no turn, and this one is ours.
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

/// The database as it lies there; nothing if it has to be opened to know more.
fn at_rest(path: &Path) -> Option<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(address(path), flags).ok()?;
    schema::is_current(&connection).then_some(connection)
}

/// The address of a file that does not change while it is open.
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
