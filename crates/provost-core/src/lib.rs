//! The rules of Provost as pure functions: values in, values out.
//!
//! # Invariants
//!
//! - Text is parsed once, into types that can only hold valid values.
//! - A gate is a pure function from facts to a [`verdict::Verdict`]; missing, empty or unreadable
//!   input is never an allow.
//! - State is a fold over records; see [`run`].
//! - No files, clock, environment, threads or randomness in this crate.

pub mod agent;
pub mod agent_registry;
pub mod approval;
pub mod bundle;
pub mod checkout;
pub mod children;
mod closed;
pub mod contract;
pub mod duration;
pub mod gate;
pub mod net;
pub mod package;
pub mod policy;
pub mod prepare;
pub mod question;
pub mod resource;
pub mod review;
pub mod run;
pub mod schema;
pub mod size;
pub mod tally;
pub mod tier;

pub use provost_document as document;
pub use provost_evidence::{
    change, file_system_names, foreign_text, json, object, pack, path, person_key, record, secret,
    time, tree, user_secret, wording, words,
};
pub use provost_scope::{code, exit, lease, protect, scope, testfile, verdict};
