//! The port to what all agents of a user spent, in this process and in others.

use std::fmt;
use std::io;

use super::budget::{Amount, Grant};

/// A reservation that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendRow {
    /// The file that it stands in.
    pub file: String,
    pub id: String,
    pub model: String,
}

/// Records what requests reserve and cost. A reservation that is never settled counts in full.
pub trait SpendBook: fmt::Debug + Send + Sync {
    /// Calls `choose` with what is left, while no other process reserves, and records the amount
    /// that it returns. An error means that a limit could not be held.
    fn reserve(
        &self,
        model: &str,
        choose: &mut dyn FnMut(Grant) -> Option<Amount>,
    ) -> io::Result<Option<SpendRow>>;

    /// Records what a request cost in the end.
    fn settle(&self, row: &SpendRow, spent: Amount, estimated: bool);
}
