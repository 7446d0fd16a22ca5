//! Lists the runs there are, and pins the ends of their chains.
//!
//! A pin is what shows that records are missing at the end of a chain, so it is on disk when the
//! call returns. That of a sealed ledger is never changed; that of the chain after the seal only
//! moves forward.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Durability, Registry, Trouble, fence};
use crate::error::StoreError;

/// What the list of runs says about a run; everything else is in its ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunNote {
    /// The run.
    pub run_id: String,
    /// When it began, in milliseconds since 1970.
    pub started_at: i64,
    /// What it was asked to do.
    pub objective: String,
}

/// The last record of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub hash: String,
}

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// What was noted when it began.
    pub note: RunNote,
    /// The head of its ledger, once that is sealed.
    pub pin: Option<Pin>,
}

impl Registry {
    /// Puts a run on the list; a run that is there already stays as it was noted first.
    pub fn note_run(&mut self, note: &RunNote) -> Result<(), StoreError> {
        self.write(Durability::Synced, |transaction| {
            transaction.execute(
                "INSERT INTO run (run_id, started_at, objective) VALUES (?1, ?2, ?3)
                 ON CONFLICT (run_id) DO NOTHING",
                params![note.run_id, note.started_at, note.objective],
            )?;
            Ok(())
        })
    }

    /// All runs, oldest first.
    pub fn runs(&mut self) -> Result<Vec<RunRow>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT run.run_id, started_at, objective, seq, hash
                 FROM run LEFT JOIN pin ON pin.run_id = run.run_id
                 ORDER BY started_at, run.run_id",
            )?;
            let mut rows = statement.query([])?;
            let mut runs = Vec::new();
            while let Some(row) = rows.next()? {
                let pin = match (row.get(3)?, row.get(4)?) {
                    (Some(seq), Some(hash)) => Some(Pin {
                        seq: fence::from_column(seq)?,
                        hash,
                    }),
                    _ => None,
                };
                let note = RunNote {
                    run_id: row.get(0)?,
                    started_at: row.get(1)?,
                    objective: row.get(2)?,
                };
                runs.push(RunRow { note, pin });
            }
            Ok(runs)
        })
    }

    /// Pins the last record of the sealed ledger of a run; the same pin again changes nothing.
    pub fn pin(&mut self, run_id: &str, pin: &Pin) -> Result<(), StoreError> {
        self.write(Durability::Synced, |transaction| {
            match read_pin(transaction, run_id)? {
                Some(there) if there == *pin => Ok(()),
                Some(_) => Err(Trouble::Store(StoreError::Pinned {
                    run_id: run_id.to_owned(),
                })),
                None => {
                    transaction.execute(
                        "INSERT INTO pin (run_id, seq, hash) VALUES (?1, ?2, ?3)",
                        params![run_id, fence::to_column(pin.seq)?, pin.hash],
                    )?;
                    Ok(())
                }
            }
        })
    }

    /// The pinned head of a run, if its ledger was sealed here.
    pub fn pinned(&mut self, run_id: &str) -> Result<Option<Pin>, StoreError> {
        self.read(|connection| read_pin(connection, run_id))
    }

    /// Moves the pin of the chain after the seal of a run forward to its last record.
    pub fn pin_after(&mut self, run_id: &str, pin: &Pin) -> Result<(), StoreError> {
        let name = after(run_id);
        self.write(Durability::Synced, |transaction| {
            let there = read_pin(transaction, &name)?;
            if there.as_ref().is_some_and(|there| there == pin) {
                return Ok(());
            }
            if there.is_some_and(|there| there.seq >= pin.seq) {
                return Err(Trouble::Store(StoreError::Pinned {
                    run_id: run_id.to_owned(),
                }));
            }
            transaction.execute(
                "INSERT INTO pin (run_id, seq, hash) VALUES (?1, ?2, ?3)
                 ON CONFLICT (run_id) DO UPDATE SET seq = ?2, hash = ?3",
                params![name, fence::to_column(pin.seq)?, pin.hash],
            )?;
            Ok(())
        })
    }

    /// The pinned end of the chain after the seal of a run, if it has any record.
    pub fn pinned_after(&mut self, run_id: &str) -> Result<Option<Pin>, StoreError> {
        self.read(|connection| read_pin(connection, &after(run_id)))
    }
}

/// What the chain after the seal is called among the pins; no run has such a name.
fn after(run_id: &str) -> String {
    format!("{run_id}/after")
}

fn read_pin(connection: &Connection, run_id: &str) -> Result<Option<Pin>, Trouble> {
    let row: Option<(i64, String)> = connection
        .prepare_cached("SELECT seq, hash FROM pin WHERE run_id = ?1")?
        .query_row([run_id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let pin = row.map(|(seq, hash)| {
        Ok::<_, Trouble>(Pin {
            seq: fence::from_column(seq)?,
            hash,
        })
    });
    pin.transpose()
}
