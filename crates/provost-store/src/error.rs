//! Errors of ledgers, locks and the registry.

use std::io;
use std::path::{Path, PathBuf};

use provost_core::code::{Code, Coded};
use provost_core::json::ReadError;
use provost_core::lease::RequestError;
use provost_core::record::ChainError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried, after "cannot".
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Another kind of file is at the path of a regular file.
    #[error("{} is {found}, not a regular file", path.display())]
    NotRegular {
        path: PathBuf,
        /// What is there, with its article.
        found: &'static str,
    },
    /// The file system does not guarantee locks and syncs.
    #[error("{} lies on a network file system, where locks cannot be trusted", path.display())]
    Network { path: PathBuf },
    #[error("{} has more than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    /// The ledger is not a valid chain.
    #[error("{}, line {line}: the chain is broken", path.display())]
    Chain {
        path: PathBuf,
        /// The first bad line, from 1.
        line: u64,
        source: ChainError,
    },
    /// The event would make a line that cannot be read back.
    #[error("the event cannot be written so that it reads back as itself")]
    Event(#[source] ChainError),
    /// Another process wrote, replaced or removed the ledger during appends.
    #[error("{} was changed by another process: {what}", path.display())]
    Moved {
        path: PathBuf,
        /// How it changed.
        what: &'static str,
    },
    /// An earlier append failed, so the state on disk is unknown.
    #[error("{} takes no more records after a failed write; read it again", path.display())]
    Poisoned { path: PathBuf },
    /// Other processes held the lock for too long.
    #[error("{} was locked by another process for more than {seconds} s", path.display())]
    Busy {
        path: PathBuf,
        /// How long the caller waited.
        seconds: u64,
    },
    #[error("the registry {} cannot be used", path.display())]
    Database {
        path: PathBuf,
        source: rusqlite::Error,
    },
    /// The database belongs to a later version of this program.
    #[error(
        "the registry {} has schema {found}, this program knows up to {known}; use a newer provost",
        path.display()
    )]
    Newer {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("{} is a database of another program", path.display())]
    Foreign { path: PathBuf },
    /// A value in the registry does not parse.
    #[error("the {column} of {key} in the registry does not parse")]
    Row {
        column: &'static str,
        /// The run whose lease it belongs to.
        key: String,
        source: ReadError,
    },
    #[error("the registry holds an impossible number: {number}")]
    Number { number: i128 },
    /// Other processes took all reserved fencing numbers at once.
    #[error("the registry has no fencing number left just now; try again")]
    Fences,
    /// An invalid request for a lease.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The sealed head of this run is already pinned to another value.
    #[error("the head of {run_id} is pinned already, to another record")]
    Pinned { run_id: String },
}

impl Coded for StoreError {
    fn code(&self) -> Code {
        match self {
            Self::Chain { .. } | Self::Moved { .. } | Self::Pinned { .. } => Code::EvidenceAltered,
            Self::Event(_) | Self::Request(_) => Code::Bug,
            Self::Io { .. }
            | Self::NotRegular { .. }
            | Self::Network { .. }
            | Self::TooLarge { .. }
            | Self::Poisoned { .. }
            | Self::Busy { .. }
            | Self::Database { .. }
            | Self::Newer { .. }
            | Self::Foreign { .. }
            | Self::Row { .. }
            | Self::Fences
            | Self::Number { .. } => Code::StoreFailed,
        }
    }
}

impl StoreError {
    /// Adds the path of the database.
    pub(crate) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Database {
            path: path.clone(),
            source,
        }
    }

    /// Adds what was tried, and with which file.
    pub(crate) fn io<E: Into<io::Error>>(doing: &'static str, path: &Path) -> impl Fn(E) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path: path.clone(),
            source: source.into(),
        }
    }
}
