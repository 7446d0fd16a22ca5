//! What an agent asked its models and what they answered: kept while a run works, and played back
//! when the agent of that run is run again.
//!
//! - [`exchange`] is one request with its answer, a line of an index.
//! - [`store`] keeps bodies by their digests, compressed, in a directory of one run.
//! - [`mask`] lists what may differ between two runs of one agent, and hides it.
//! - [`difference`] finds the first place at which two requests differ.
//! - [`playback`] finds the recorded answer for a request of the agent that runs again.
//!
//! # Invariants
//!
//! - Bodies are without the secrets that were known. They are no evidence: the sealed rows about
//!   requests name their digests, so a body that was changed is not used.
//! - A request gets a recorded answer only if it equals the recorded request under the mask; what
//!   is not in the mask is never ignored.
//! - A directory of bodies never grows over its limit; what is left out is marked.

pub mod difference;
pub mod exchange;
pub mod mask;
pub mod playback;
pub mod store;
