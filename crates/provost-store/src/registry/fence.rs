//! Gives out fencing numbers that never repeat and never decrease.
//!
//! Leases are written without waiting for the disk, so a power failure may undo the last of them. A
//! counter kept the same way would give their numbers out again. Numbers are therefore reserved in
//! blocks, each on disk before its first number is given out. Within one boot of the machine
//! nothing is undone, and the counter continues. After a reboot the rest of the block is skipped.

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::Trouble;
use crate::error::StoreError;

/// How many numbers are reserved at once; a power failure skips at most this many.
const BLOCK: i64 = 1024;

/// Whether a number can be given out in this boot of the machine.
pub(super) fn has_some(connection: &Connection, boot: &str) -> Result<bool, Trouble> {
    let found = connection
        .prepare_cached("SELECT 1 FROM fence WHERE boot = ?1 AND next < reserved")?
        .query_row([boot], |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}

/// Reserves a block; the transaction must reach the disk before a number of it is taken.
pub(super) fn reserve(transaction: &Transaction<'_>, boot: &str) -> Result<(), Trouble> {
    // Another process may have been faster.
    if has_some(transaction, boot)? {
        return Ok(());
    }
    transaction.execute(
        "UPDATE fence SET next = max(next, reserved), reserved = max(next, reserved) + ?1,
                          boot = ?2",
        params![BLOCK, boot],
    )?;
    Ok(())
}

pub(super) fn take(transaction: &Transaction<'_>) -> Result<u64, Trouble> {
    let fence: Option<i64> = transaction
        .prepare_cached(
            "UPDATE fence SET next = next + 1 WHERE next < reserved RETURNING next - 1",
        )?
        .query_row([], |row| row.get(0))
        .optional()?;
    // Other processes took the whole block meanwhile: lock file removed, or very many processes.
    let fence = fence.ok_or(StoreError::Fences)?;
    from_column(fence)
}

pub(super) fn to_column(fence: u64) -> Result<i64, Trouble> {
    i64::try_from(fence).map_err(|_| {
        Trouble::Store(StoreError::Number {
            number: fence.into(),
        })
    })
}

pub(super) fn from_column(fence: i64) -> Result<u64, Trouble> {
    u64::try_from(fence).map_err(|_| {
        Trouble::Store(StoreError::Number {
            number: fence.into(),
        })
    })
}
