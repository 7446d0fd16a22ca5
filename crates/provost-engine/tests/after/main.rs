//! Landings and replays that fail or crash at any call, and are repeated.

#[cfg(test)]
#[path = "../../../provost-engine/tests/bundle/course.rs"]
mod course;
#[cfg(test)]
mod land;
#[cfg(test)]
mod machine;
#[cfg(test)]
mod replay;
#[cfg(test)]
#[expect(dead_code, reason = "the tests of the core use the forged bundles")]
#[path = "../../../provost-engine/tests/bundle/sample.rs"]
mod sample;
#[cfg(test)]
mod sealed_run;
