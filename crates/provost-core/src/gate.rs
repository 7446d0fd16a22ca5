//! The gates: pure functions from facts to a [`Verdict`](crate::verdict::Verdict).
//!
//! [`State::judge`](crate::run::State::judge) asks them for a run. Where each of them decides:
//!
//! - integrated, sampling: `run/judge/tools.rs`
//! - policy: `contract/check.rs`, with `run/judge.rs` for this repository and agent; whether a
//!   person must approve first is in `run/judge/consent.rs`
//! - sandbox, agent, tree: `run/judge.rs`
//! - output: `run/judge/output.rs`
//! - diff: [`diff`], which `provost check diff` calls too
//! - review: `run/judge/review.rs`
//! - acceptance: `run/judge/acceptance.rs`; [`command`] decides which commands may run, [`proof`]
//!   whether a command can fail at all

pub mod command;
pub mod diff;
pub mod proof;
