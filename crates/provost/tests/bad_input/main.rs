//! Gives the program bad input: bad files, bad state on disk, bad surroundings.
//!
//! Whatever the input is, the program ends soon, names one cause, and leaves nothing half-written.

#![cfg(feature = "formats")]

#[cfg(test)]
mod contracts;
#[cfg(test)]
#[path = "../../../provost-engine/tests/bundle/course.rs"]
mod course;
#[cfg(test)]
mod files;
#[cfg(test)]
mod packets;
#[cfg(test)]
mod repositories;
#[cfg(test)]
#[expect(dead_code, reason = "the tests of the core use the rest")]
#[path = "../../../provost-engine/tests/bundle/sample.rs"]
mod sample;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod state;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod verify;
