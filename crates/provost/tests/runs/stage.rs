//! The repository, home and programs that each of these tests starts with.

pub(crate) use provost_testkit::stage::{
    Ask, Outcome, PATH, Running, Stage, Surroundings, is_root, run_arguments, until,
};

/// Whether this machine lacks `program`; the test is then left out.
pub(crate) fn lacks(program: &str) -> bool {
    provost_testkit::lacks(&[program])
}
