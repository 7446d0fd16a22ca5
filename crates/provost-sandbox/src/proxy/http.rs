//! Parses HTTP/1 messages strictly, and writes them again.
//!
//! A message has one reading. A message that two parsers could read differently is refused.

pub mod field;
pub mod framing;
pub mod reply;
pub mod request;
