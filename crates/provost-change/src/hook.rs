//! Hooks of agents: which files a tool call would write, and whether a declared change covers them.

pub mod guard;
pub mod tool_call;
