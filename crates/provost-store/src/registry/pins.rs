//! Pins the ends of the chains of runs and of controlled changes.
//!
//! A pin shows that records are missing at the end of a chain, so it is on disk when the call
//! returns. The pin of a sealed ledger never changes. That of the chain after the seal only moves
//! forward.

use provost_core::record::Head;
use provost_engine::bundle::verify::Pins;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Durability, SqliteRegistry, Trouble, fence};
use crate::error::StoreError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub seq: u64,
    pub hash: String,
}

impl Pin {
    /// The end of the chain whose last record this is.
    fn head(self) -> Head {
        Head {
            next: self.seq.saturating_add(1),
            hash: self.hash,
        }
    }
}

impl SqliteRegistry {
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

    /// The pinned ends of the chains of a run.
    pub fn pins(&mut self, run_id: &str) -> Result<Pins, StoreError> {
        Ok(Pins {
            ledger: self.pinned(run_id)?.map(Pin::head),
            after: self.pinned_after(run_id)?.map(Pin::head),
        })
    }
}

impl SqliteRegistry {
    /// Moves the pin of the chain of a controlled change to its end; an earlier end changes
    /// nothing.
    ///
    /// A power failure may undo the last moves: then the pin is too early, never too late.
    pub fn pin_change(&mut self, intent_id: &str, head: &Head) -> Result<(), StoreError> {
        let Some(seq) = head.next.checked_sub(1) else {
            return Ok(());
        };
        let name = change(intent_id);
        self.write(Durability::Ordinary, |transaction| {
            let there = read_pin(transaction, &name)?;
            if there.is_some_and(|there| there.seq >= seq) {
                return Ok(());
            }
            transaction.execute(
                "INSERT INTO pin (run_id, seq, hash) VALUES (?1, ?2, ?3)
                 ON CONFLICT (run_id) DO UPDATE SET seq = ?2, hash = ?3",
                params![name, fence::to_column(seq)?, head.hash],
            )?;
            Ok(())
        })
    }

    /// The pinned end of the chain of a controlled change.
    pub fn pinned_change(&mut self, intent_id: &str) -> Result<Option<Head>, StoreError> {
        let pin = self.read(|connection| read_pin(connection, &change(intent_id)))?;
        Ok(pin.map(Pin::head))
    }
}

/// The key of a change's chain among the pins; no run has such a name.
fn change(intent_id: &str) -> String {
    format!("{intent_id}/change")
}

/// The key of the chain after the seal among the pins; no run has such a name.
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
