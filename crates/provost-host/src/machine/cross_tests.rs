//! Makes the trees of the cross-tests: base tests on candidate code, candidate tests on base code.

use provost_core::change::{Change, FindingKind, Node};
use provost_core::object::{Kind, Oid};
use provost_core::pack;
use provost_core::path::RawPath;
use provost_core::run::effect;
use provost_core::run::fact::CrossTrees;
use provost_core::testfile::is_test_file;
use provost_engine::ports::PortError;

use super::{Machine, git};
use crate::capture::{self, Captured};
use crate::git::GitError;

impl Machine {
    /// The trees for the change in `captured`; `None` unless it touches both tests and code.
    pub(super) fn cross(
        &self,
        captured: &Captured,
        order: &effect::Capture,
    ) -> Result<Option<CrossTrees>, PortError> {
        let (tests, rest): (Vec<&Change>, Vec<&Change>) = captured
            .changes
            .iter()
            .partition(|change| is_test_file(&change.path));
        let secret = |kind: FindingKind| kind == FindingKind::Secret;
        let refused = captured.findings.iter().any(|it| secret(it.kind));
        if tests.is_empty() || rest.is_empty() || refused {
            return Ok(None);
        }
        let old = tests.iter().map(|it| (&it.path, it.before.as_ref()));
        let new = tests.iter().map(|it| (&it.path, it.after.as_ref()));
        let old = self.with_files(&captured.tree, old).map_err(git)?;
        let new = self.with_files(&order.base, new).map_err(git)?;
        // Where a file and a directory have the same path there is no such tree.
        let (Some(old_tests), Some(new_tests)) = (old, new) else {
            return Ok(None);
        };
        for (tree, keep) in [&old_tests, &new_tests].into_iter().zip(&order.crossed) {
            self.keep(tree, keep)?;
        }
        Ok(Some(CrossTrees {
            test_files: tests.iter().map(|change| change.path.clone()).collect(),
            old_tests,
            new_tests,
        }))
    }

    /// `root` with these files, or without them; `None` if there can be no such tree.
    fn with_files<'a>(
        &self,
        root: &Oid,
        files: impl Iterator<Item = (&'a RawPath, Option<&'a Node>)>,
    ) -> Result<Option<Oid>, GitError> {
        let Some((made, trees)) = capture::edited(&self.repo, root, files)? else {
            return Ok(None);
        };
        let mut writer = pack::Writer::new(self.repo.format());
        for (oid, bytes) in &trees {
            writer.push(pack::Entry::named(oid.clone(), Kind::Tree, bytes));
        }
        self.repo.write_pack(writer.finish())?;
        Ok(Some(made))
    }
}
