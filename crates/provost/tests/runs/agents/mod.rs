//! The real Codex, Claude Code and Gemini CLI, under contract, with a model that follows a script.

mod asks;
mod claims;
mod counted;
mod first_minute;
mod fix;
mod gemini;
mod honest;
mod hook;
mod hostile;
mod keep_work;
mod limits;
mod logins;
mod mcp;
mod offered;
mod plan;
mod readme;
mod replayed;
mod review;
mod servers;
mod spend;
mod stage;
mod trouble;
mod tunnel;
