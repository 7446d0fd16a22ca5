//! The real Codex and Claude Code programs, under contract, with a model that follows a script.

mod honest;
mod hostile;
mod limits;
mod mend;
mod plan;
mod review;
mod stage;
mod tunnel;
