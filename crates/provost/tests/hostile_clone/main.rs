//! A repository that brings every kind of state Provost keeps, and a user who clones it and calls
//! every command: nothing is started, reached, read, written through or signed that the user did
//! not ask for in that very call.

#![cfg(feature = "formats")]

#[cfg(test)]
mod commands;
#[cfg(test)]
mod own;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod state;
#[cfg(test)]
mod traps;
