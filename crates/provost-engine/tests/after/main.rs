//! Landings and replays that fail or die at any call, and are asked for again.

#[cfg(test)]
#[path = "../../../provost-core/tests/bundle/course.rs"]
mod course;
#[cfg(test)]
mod land;
#[cfg(test)]
mod machine;
#[cfg(test)]
mod replay;
#[cfg(test)]
#[expect(dead_code, reason = "the lies are told in the tests of the core")]
#[path = "../../../provost-core/tests/bundle/sample.rs"]
mod sample;
