//! The runs in the runtime root, as the archive that queries read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use provost_core::bundle::layout::{AFTER, ATTESTATION, CONTRACT, DRIVER_LOCK, LEDGER};
use provost_core::code::Code;
use provost_core::net::model_traffic::ModelTraffic;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::record::{Head, Record};
use provost_engine::dependencies::ProjectFiles;
use provost_engine::ports::PortError;
use provost_engine::query::{KeptBodies, LineCount, RunArchive};
use provost_host::git::{GitError, Lines, Merged};
use provost_host::project::dependencies;
use provost_host::{machine, model_record, process_owner};

use crate::places::Places;
use crate::stores;

impl RunArchive for Places {
    fn runs(&self) -> Result<Vec<String>, PortError> {
        Self::runs(self).map_err(|failure| PortError::new(failure.code, failure.reason))
    }

    fn records(&self, run_id: &str) -> Result<Vec<Record>, PortError> {
        let directory = self.run(run_id);
        if directory.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
            let shown = directory.display();
            let reason = format!("`{shown}`: is a symbolic link, and no run of yours");
            return Err(PortError::new(Code::RootUnsafe, reason));
        }
        stores::read_ledger(&directory.join(LEDGER), Head::genesis())
    }

    fn after(&self, run_id: &str) -> Option<Vec<Record>> {
        let path = self.run(run_id).join(AFTER);
        if !path.exists() {
            return None;
        }
        let sealed = self.records(run_id).ok()?;
        stores::read_ledger(&path, Head::after(&sealed.last()?.hash)).ok()
    }

    fn is_sealed(&self, run_id: &str) -> bool {
        self.run(run_id).join(ATTESTATION).is_file()
    }

    fn is_driven(&self, run_id: &str) -> bool {
        has_driver(&self.run(run_id))
    }

    fn is_bare(&self, run_id: &str) -> bool {
        let absent = |name: &str| {
            let there = self.run(run_id).join(name).try_exists();
            there.is_ok_and(|there| !there)
        };
        absent(LEDGER) && absent(CONTRACT)
    }

    fn is_by_user(&self, record: &Record) -> bool {
        let secret = self.known_secret().filter(|_| !self.is_foreign());
        secret.is_some_and(|secret| record.is_by(secret))
    }

    fn bodies(&self, run_id: &str) -> Option<KeptBodies> {
        let kept = model_record::store::kept(&self.bodies(run_id))?;
        Some(KeptBodies {
            files: kept.files,
            bytes: kept.bytes,
            is_full: kept.is_full,
        })
    }

    fn live(&self, run_id: &str, attempt: u32) -> Option<ModelTraffic> {
        machine::live(self.cache().ok()?, run_id, attempt)
    }

    fn held(&self, branch: &str, commits: &BTreeSet<Oid>) -> Option<BTreeSet<Oid>> {
        // A missing branch holds none.
        let held = || -> Result<BTreeSet<Oid>, GitError> {
            match self.repo.ref_value(branch)? {
                Some(tip) => self.repo.held_by(&tip, commits),
                None => Ok(BTreeSet::new()),
            }
        };
        held().ok()
    }

    fn line_counts(&self, before: &Oid, after: &Oid) -> BTreeMap<RawPath, Option<LineCount>> {
        let counts = self.repo.line_counts(before, after).unwrap_or_default();
        let count = |Lines { added, removed }| LineCount { added, removed };
        let counts = counts.into_iter();
        counts
            .map(|(path, lines)| (path, lines.map(count)))
            .collect()
    }

    fn project_files(&self, tree: &Oid) -> ProjectFiles {
        dependencies::of_tree(&self.repo, tree).unwrap_or_default()
    }

    fn merge_conflicts(&self, base: &Oid, ours: &Oid, theirs: &Oid) -> Option<Vec<RawPath>> {
        match self.repo.merge_tree(base, ours, theirs).ok()? {
            Merged::Clean(_) => Some(Vec::new()),
            Merged::Conflict(paths) => Some(paths),
        }
    }
}

/// How long ago the last file was created in the directory of a run.
pub fn idle(place: &Places, run_id: &str) -> Option<Duration> {
    let changed = place.run(run_id).metadata().and_then(|it| it.modified());
    changed.ok()?.elapsed().ok()
}

/// Whether a living process drives what `directory` holds.
pub fn has_driver(directory: &Path) -> bool {
    let driver = stores::last_owner(&directory.join(DRIVER_LOCK));
    driver.is_some_and(|driver| process_owner::alive(&driver))
}
