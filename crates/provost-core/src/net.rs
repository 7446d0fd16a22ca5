//! Says which places of the network may be reached, and reads what is said on the way there.
//!
//! A sandbox has one way out: a proxy of ours. What it decides, and every byte it has to understand
//! before it decides, is here; sockets are the host's.
//!
//! # Invariants
//!
//! - A request is allowed only to exactly a host and port that was granted; there are no wildcards.
//! - An address of a name is dialled only if it belongs to the public internet, or was granted
//!   itself. Other addresses lead to the host or its neighbours, whoever chose the name.
//! - A message has one reading. What two readers could take for different things is refused.

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
