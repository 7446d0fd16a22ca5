//! Says what went wrong with a ledger, a lock or the registry.

use std::io;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::json::JsonError;
use provost_core::lease::RequestError;
use provost_core::record::ChainError;

/// Why the store could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What we wanted to do.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Something else stands where a regular file belongs.
    #[error("{} is {found}, not a regular file", path.display())]
    NotRegular {
        /// Where.
        path: PathBuf,
        /// What stands there.
        found: &'static str,
    },
    /// The file system does not keep the promises of locks and syncs.
    #[error("{} lies on a network file system, where locks cannot be trusted", path.display())]
    Network {
        /// Where.
        path: PathBuf,
    },
    /// More bytes than we read.
    #[error("{} has more than {limit} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The most we read.
        limit: u64,
    },
    /// The ledger is not the chain it should be.
    #[error("{}, line {line}: the chain is broken", path.display())]
    Chain {
        /// Which ledger.
        path: PathBuf,
        /// The first bad line, from 1.
        line: u64,
        /// What is wrong with it.
        source: ChainError,
    },
    /// The event would make a line that nobody could read again.
    #[error("the event cannot be written so that it reads back as itself")]
    Event(#[source] ChainError),
    /// Somebody else wrote, replaced or removed the ledger we append to.
    #[error("{} changed behind our back: {what}", path.display())]
    Moved {
        /// Which ledger.
        path: PathBuf,
        /// How it changed.
        what: &'static str,
    },
    /// An earlier append failed, so nobody knows what is on disk.
    #[error("{} takes no more records after a failed write; read it again", path.display())]
    Poisoned {
        /// Which ledger.
        path: PathBuf,
    },
    /// Others kept the lock for too long.
    #[error("{} is locked by others for more than {seconds} s", path.display())]
    Busy {
        /// Which lock.
        path: PathBuf,
        /// How long we waited.
        seconds: u64,
    },
    /// SQLite refused.
    #[error("the registry {} cannot be used", path.display())]
    Database {
        /// Which database.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The database belongs to a later version of this program.
    #[error(
        "the registry {} has schema {found}, this program knows up to {known}; use a newer provost",
        path.display()
    )]
    Newer {
        /// Which database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema we know.
        known: i64,
    },
    /// A database, but not ours.
    #[error("{} is a database of another program", path.display())]
    Foreign {
        /// Which database.
        path: PathBuf,
    },
    /// A value in the registry does not read as what it should be.
    #[error("the {column} of {key} in the registry does not parse")]
    Row {
        /// Which column it stands in.
        column: &'static str,
        /// The run whose lease it belongs to.
        key: String,
        /// What is wrong with it.
        source: JsonError,
    },
    /// A number in the registry is outside of its range.
    #[error("the registry holds an impossible number: {number}")]
    Number {
        /// The number.
        number: i128,
    },
    /// Others took all reserved fencing numbers at once.
    #[error("the registry has no fencing number left just now; try again")]
    Fences,
    /// A request for a lease that makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The sealed head of this run is pinned, and it is another one.
    #[error("the head of {run_id} is pinned already, to another record")]
    Pinned {
        /// Which run.
        run_id: String,
    },
}

impl StoreError {
    /// The code a command that stops with this error ends with.
    pub fn code(&self) -> Code {
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

    /// Adds which database it was.
    pub(crate) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Database {
            path: path.clone(),
            source,
        }
    }

    /// Adds what we wanted to do with which file.
    pub(crate) fn io<E: Into<io::Error>>(doing: &'static str, path: &Path) -> impl Fn(E) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path: path.clone(),
            source: source.into(),
        }
    }
}
