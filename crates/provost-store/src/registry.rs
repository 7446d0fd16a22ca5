//! SQLite database of the present leases and intents, and of the ends of the chains of runs.
//!
//! # Invariants
//!
//! - A request for a lease is decided and answered in one transaction, by the rule in core.
//! - Fencing numbers grow, also across a power failure.
//! - The ledger of a run is authoritative: losing this database loses no evidence.
//! - A database that is damaged, foreign or newer is refused with a reason, and left unchanged.
//!
//! Every write first takes its turn at a lock file. SQLite's own waiting sleeps and starves among
//! many processes; it remains the second protection, should the lock file be removed.

mod fence;
mod intent_events;
mod intents;
mod pins;
mod read_only;
mod schema;

use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::json;
use provost_core::lease::{self, Acquired, Answer, Lease, LeaseRequest, Owner};
use provost_core::scope::Scope;
use rusqlite::{Connection, OpenFlags, Row, Transaction, TransactionBehavior, params};

pub use self::pins::Pin;
use crate::error::StoreError;
use crate::file;
use crate::lock::ShortLock;

/// How long a caller waits for other processes before that is an error.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct SqliteRegistry {
    path: PathBuf,
    connection: Connection,
    turnstile: ShortLock,
}

/// What a power failure may do to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// The last writes may be lost; their owners died with the machine.
    Ordinary,
    /// The write is on disk when the call returns.
    Synced,
}

impl SqliteRegistry {
    /// Opens the registry at `path`, or makes it; its directory must exist.
    ///
    /// The lock file lies beside it, as `registry.lock` beside `registry.db`.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = file::resolve_directory(path)?;
        file::refuse_network(&path)?;
        let turnstile = ShortLock::open(&path.with_extension("lock"), PATIENCE)?;
        let turn = turnstile.enter()?;
        let [is_there, ..] = files(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&path, flags)
            .and_then(|connection| {
                connection.busy_timeout(PATIENCE)?;
                Ok(connection)
            })
            .map_err(StoreError::database(&path))?;
        schema::prepare(&connection, &path)?;
        if !is_there {
            file::sync_directory(&path)?;
        }
        drop(turn);
        Ok(Self {
            path,
            connection,
            turnstile,
        })
    }

    /// Requests a lease on a whole scope; `alive` says whether the owner of a lease is alive.
    ///
    /// Expired leases and those of dead owners are removed first.
    pub fn acquire(
        &mut self,
        request: &LeaseRequest,
        alive: &dyn Fn(&Owner) -> bool,
    ) -> Result<Acquired, StoreError> {
        self.reserve_fences(&request.owner.boot)?;
        self.write(Durability::Ordinary, |transaction| {
            let mut held = read_leases(transaction)?;
            // Intents of agents in the shared checkout conflict like leases.
            held.extend(intents::as_leases(transaction)?);
            let decision = lease::decide(request, &held, alive).map_err(StoreError::from)?;
            for run_id in &decision.gone {
                transaction.execute("DELETE FROM lease WHERE run_id = ?1", [run_id])?;
            }
            match decision.answer {
                Answer::Held(holders) => Ok(Acquired::Held(holders)),
                Answer::Own(lease) => {
                    transaction.execute(
                        "UPDATE lease SET expires_at = ?2 WHERE run_id = ?1",
                        params![lease.run_id, lease.expires_at],
                    )?;
                    Ok(Acquired::Granted(lease))
                }
                Answer::Free => {
                    let lease = request.granted(fence::take(transaction)?);
                    insert(transaction, &lease)?;
                    Ok(Acquired::Granted(lease))
                }
            }
        })
    }

    /// Moves the end of a lease to `expires_at`, never to an earlier time.
    ///
    /// `false` means that the lease is lost: it expired and another run requested leases since, or
    /// a later lease replaced it.
    pub fn renew(&mut self, run_id: &str, fence: u64, expires_at: i64) -> Result<bool, StoreError> {
        self.write(Durability::Ordinary, |transaction| {
            let changed = transaction.execute(
                "UPDATE lease SET expires_at = max(expires_at, ?3)
                 WHERE run_id = ?1 AND fence = ?2",
                params![run_id, fence::to_column(fence)?, expires_at],
            )?;
            Ok(changed == 1)
        })
    }

    /// Releases what a run holds, if anything.
    pub fn release(&mut self, run_id: &str) -> Result<(), StoreError> {
        self.write(Durability::Ordinary, |transaction| {
            transaction.execute("DELETE FROM lease WHERE run_id = ?1", [run_id])?;
            Ok(())
        })
    }

    /// Takes the lease `fence` away from a run; `false` if the run does not hold that lease.
    pub fn release_one(&mut self, run_id: &str, fence: u64) -> Result<bool, StoreError> {
        self.write(Durability::Synced, |transaction| {
            let gone = transaction.execute(
                "DELETE FROM lease WHERE run_id = ?1 AND fence = ?2",
                params![run_id, fence::to_column(fence)?],
            )?;
            Ok(gone == 1)
        })
    }

    /// All leases, oldest first, also expired ones that are not yet removed.
    pub fn leases(&mut self) -> Result<Vec<Lease>, StoreError> {
        self.read(read_leases)
    }

    /// Runs SQLite's integrity check; `Ok` contains the damage, if any.
    pub fn damage(&mut self) -> Result<Option<String>, StoreError> {
        self.read(|connection| {
            let report: String =
                connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
            Ok((report != "ok").then_some(report))
        })
    }

    /// Reserves new fencing numbers, on disk, if there are none left.
    fn reserve_fences(&mut self, boot: &str) -> Result<(), StoreError> {
        if self.read(|connection| fence::has_some(connection, boot))? {
            return Ok(());
        }
        self.write(Durability::Synced, |transaction| {
            fence::reserve(transaction, boot)
        })
    }

    /// Reads without a turn: SQLite shows the state before or after a write.
    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        work(&self.connection).map_err(|trouble| trouble.at(&self.path))
    }

    /// Does `work` in one transaction that no other process can interrupt.
    fn write<T>(
        &mut self,
        durability: Durability,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let _turn = self.turnstile.enter()?;
        let connection = &mut self.connection;
        let run = || -> Result<T, Trouble> {
            let level = match durability {
                Durability::Ordinary => "NORMAL",
                Durability::Synced => "FULL",
            };
            connection.pragma_update(None, "synchronous", level)?;
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let answer = work(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        };
        run().map_err(|trouble| trouble.at(&self.path))
    }
}

/// An error inside a transaction, before the path of the database is added.
enum Trouble {
    Sql(rusqlite::Error),
    Store(StoreError),
}

impl Trouble {
    fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Sql(source) => StoreError::database(path)(source),
            Self::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Whether the database, its log and the index of its log exist.
///
/// Stat'ed and never opened here: closing any descriptor of the database would drop the locks that
/// SQLite has on it in this process.
fn files(path: &Path) -> Result<[bool; 3], StoreError> {
    let is_there = |suffix: &str| {
        let mut beside = path.to_owned().into_os_string();
        beside.push(suffix);
        let beside = PathBuf::from(beside);
        match rustix::fs::lstat(&beside) {
            Ok(stat) => file::require_regular(&beside, &stat).map(|()| true),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(error) => Err(StoreError::io("look at", &beside)(error)),
        }
    };
    Ok([is_there("")?, is_there("-wal")?, is_there("-shm")?])
}

fn insert(transaction: &Transaction<'_>, lease: &Lease) -> Result<(), Trouble> {
    transaction.execute(
        "INSERT INTO lease (run_id, fence, scope, owner, granted_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            lease.run_id,
            fence::to_column(lease.fence)?,
            to_text(&lease.scope),
            to_text(&lease.owner),
            lease.granted_at,
            lease.expires_at,
        ],
    )?;
    Ok(())
}

fn read_leases(connection: &Connection) -> Result<Vec<Lease>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT run_id, fence, scope, owner, granted_at, expires_at FROM lease ORDER BY fence",
    )?;
    let mut rows = statement.query([])?;
    let mut leases = Vec::new();
    while let Some(row) = rows.next()? {
        leases.push(read_lease(row)?);
    }
    Ok(leases)
}

fn read_lease(row: &Row<'_>) -> Result<Lease, Trouble> {
    let run_id: String = row.get(0)?;
    let scope: Scope = from_text("scope", &run_id, &row.get::<_, String>(2)?)?;
    let owner = from_text("owner", &run_id, &row.get::<_, String>(3)?)?;
    Ok(Lease {
        run_id,
        scope: Scope::of(scope.entries().to_vec()),
        owner,
        fence: fence::from_column(row.get(1)?)?,
        granted_at: row.get(4)?,
        expires_at: row.get(5)?,
    })
}

fn to_text<T: serde::Serialize>(value: &T) -> Option<String> {
    // A failure becomes a NULL, which the schema refuses.
    serde_json::to_string(value).ok()
}

fn from_text<T: serde::de::DeserializeOwned>(
    column: &'static str,
    key: &str,
    text: &str,
) -> Result<T, StoreError> {
    json::parse_as(text.as_bytes()).map_err(|source| StoreError::Row {
        column,
        key: key.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
