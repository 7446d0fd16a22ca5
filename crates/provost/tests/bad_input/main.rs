//! Gives the program what nobody should: bad files, bad state on disk, bad surroundings.
//!
//! Whatever it is given, it ends soon, says one clear thing, and leaves nothing half-written.

#[cfg(test)]
mod contracts;
#[cfg(test)]
#[path = "../../../provost-core/tests/bundle/course.rs"]
mod course;
#[cfg(test)]
mod files;
#[cfg(test)]
mod packets;
#[cfg(test)]
mod repositories;
#[cfg(test)]
#[expect(dead_code, reason = "the lies are told in the tests of the core")]
#[path = "../../../provost-core/tests/bundle/sample.rs"]
mod sample;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod state;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod verify;
