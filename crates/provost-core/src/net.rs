//! Which network endpoints may be reached, and how requests to them are parsed.
//!
//! A sandbox has one way out: Provost's proxy. Its decisions, and the parsing that they need, are
//! here; the host crate has the sockets.
//!
//! # Invariants
//!
//! - A request is allowed only to exactly a granted host and port; there are no wildcards.
//! - A resolved address is dialled only if it is on the public internet, or was granted itself.
//!   Other addresses lead to the host or its network, whatever name resolves to them.
//! - A message has one reading. A message that two parsers could read differently is refused.

pub mod address;
pub mod credential;
pub mod decide;
pub mod endpoint;
pub mod field;
pub mod framing;
pub mod model;
pub mod reply;
pub mod request;
pub mod traffic_log;
