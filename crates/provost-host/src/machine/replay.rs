//! Repeats the checks of a sealed run.

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::run::effect::Accept;
use provost_core::run::fact::TestRun;
use provost_engine::land::{Changed, Target};
use provost_engine::ports::{PortError, Watch};
use provost_engine::replay::ReplayHost;

use super::{Machine, git};
use crate::sandbox;

impl ReplayHost for Machine {
    fn trees(&mut self, base: &Oid, tree: &Oid, pack: Vec<u8>) -> Result<(), PortError> {
        let there = |machine: &Self| -> bool {
            let base = machine.repo.commit_tree(base);
            base.is_ok_and(|base| machine.repo.differences(&base, tree).is_ok())
        };
        if there(self) {
            return Ok(());
        }
        // Refs that kept them may have been swept; the bundle has the objects that only the run
        // had.
        self.repo.write_pack(pack).map_err(git)?;
        if there(self) {
            return Ok(());
        }
        let reason = format!("the base {base} is not in this repository");
        Err(PortError::new(Code::NotFound, reason))
    }

    fn changes(&mut self, base: &Oid, tree: &Oid) -> Result<Changed, PortError> {
        Target::changes(self, base, tree)
    }

    fn accept(&mut self, order: &Accept, watch: &mut dyn Watch) -> Result<TestRun, PortError> {
        self.run_tests(order, watch)
    }

    fn patch(&mut self, before: &Oid, after: &Oid) -> Result<Vec<u8>, PortError> {
        self.repo.patch(before, after).map_err(git)
    }

    fn patch_of(
        &mut self,
        before: &Oid,
        after: &Oid,
        paths: &[RawPath],
    ) -> Result<Vec<u8>, PortError> {
        self.repo.patch_of(before, after, paths).map_err(git)
    }

    fn kernel(&mut self) -> Result<String, PortError> {
        Ok(sandbox::kernel())
    }

    fn tidy(&mut self) -> Result<(), PortError> {
        self.remove(&self.replay_directory())?;
        Target::tidy(self)
    }
}
