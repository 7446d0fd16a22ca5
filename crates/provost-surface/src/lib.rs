//! What all commands share: where files lie, which stores are used, sessions of runs, answers and
//! how they are shown.
//!
//! # Invariants
//!
//! - Nothing here is a command, and nothing here decides: the engine and the gates do.
//! - Data goes to stdout, everything else to stderr.

pub mod answer;
pub mod approval_text;
mod bodies_text;
pub mod broker_client;
pub mod change;
pub mod child_text;
pub mod child_threads;
pub mod child_tools;
pub mod frame;
pub mod history;
pub mod input;
pub mod lens;
pub mod look;
pub mod mcp;
pub mod missing_text;
pub mod notify;
pub mod output;
pub mod parts;
pub mod permit;
pub mod person_signing;
pub mod places;
pub mod progress;
pub mod refusal_text;
pub mod report;
pub mod session;
pub mod show;
pub mod stores;
pub mod text_width;
pub mod times;
pub mod trace;
pub mod traffic;
pub mod user_consent;
