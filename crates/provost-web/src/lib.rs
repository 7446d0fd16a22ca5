//! The control room: pages and an API over the runs of a user's repositories.
//!
//! `door` decides who comes in, `guard` asks it about every request, `pages` show views of the
//! engine, `api` has the same views as JSON. What is shown and done comes through the port
//! [`ControlRoom`]; this crate opens no file but its socket and starts no process.
//!
//! # Invariants
//!
//! - No route is reached without the guard, and no request passes it without a session or a token.
//! - A request that changes something is a POST of a form of this server: same origin, form token.
//! - Text of agents, repositories and documents is neutralised, and escaped by `maud`.
//! - A page needs no script. The one script only refreshes what a page shows.
//! - An answer never permits another origin to read it, and names no origin but this one.

mod api;
mod commands;
mod door;
mod drafts;
mod guard;
mod live;
mod openapi;
mod pages;
mod room;
mod server;
#[cfg(test)]
mod tests;
mod token;

pub use door::{OfferedCode, offered_code};
pub use openapi::openapi;
pub use room::{
    AskedBy, AskedCommand, CasePage, ChangeRow, CommandOutcome, ControlRoom, EvidenceFile,
    EvidenceView, LedgerLine, RepositoryRow, RoomChange, RoomChangeKind, RoomChanges, RoomCommand,
    RoomListing, RoomRow, RunPage, SpendView, SpentRow, TranscriptPage,
};
pub use server::{Announced, Listen, serve};
pub use token::{NewToken, TokenRow, TokenScope, new_token};
