//! The stage of these tests.

pub(crate) use provost_testkit::stage::{
    Ask, Outcome, Running, Stage as Scene, Surroundings, is_root, run_arguments, until,
};

/// Whether this machine lacks `program`; the test is then left out.
pub(crate) fn lacks(program: &str) -> bool {
    provost_testkit::lacks(&[program])
}
