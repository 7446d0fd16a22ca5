//! Carries the wish that a run ends from one process to the one that drives it.
//!
//! The wish is a file of the runtime root, outside the directory of the run: what is written there
//! late would be no part of what is sealed. The first wish counts.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use provost_core::code::Code;
use provost_core::json;
use provost_core::run::fact::Cancel;

use crate::answer::Failure;
use crate::places::Places;

/// Where the wish that one run ends is left.
#[derive(Debug, Clone)]
pub(crate) struct CancelRequest {
    directory: PathBuf,
    file: PathBuf,
}

impl CancelRequest {
    /// The place of the run `run_id`.
    pub(crate) fn of(place: &Places, run_id: &str) -> Self {
        let directory = place.root.join("cancel");
        let file = directory.join(format!("{run_id}.json"));
        Self { directory, file }
    }

    /// Leaves a wish, unless there is one already.
    pub(crate) fn leave(&self, cancel: &Cancel) -> Result<(), Failure> {
        let wrong = |error: &dyn std::error::Error| {
            let reason = format!("`{}`: {error}", self.file.display());
            Failure::new(Code::HostFailed, reason)
        };
        let text = serde_json::to_vec(cancel).map_err(|error| wrong(&error))?;
        let mut directory = DirBuilder::new();
        directory.recursive(true).mode(0o700);
        let beside = self.file.with_extension(std::process::id().to_string());
        let made = directory.create(&self.directory).and_then(|()| {
            let mut file = File::create(&beside)?;
            file.write_all(&text)?;
            // Whole or not at all, and never in the place of an earlier one.
            match fs::hard_link(&beside, &self.file) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            }
        });
        let _ = fs::remove_file(&beside);
        made.map_err(|error| wrong(&error))
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.file.exists()
    }

    /// The wish; one that cannot be read is a wish of nobody.
    pub(crate) fn read(&self) -> Option<Cancel> {
        if !self.is_there() {
            return None;
        }
        let read = fs::read(&self.file).ok();
        let read = read.and_then(|bytes| json::parse_as(&bytes).ok());
        Some(read.unwrap_or_else(|| Cancel {
            by: None,
            at: provost_host::clock::now(),
            reason: String::new(),
        }))
    }

    /// Takes it away, after the run has ended.
    pub(crate) fn forget(&self) {
        // What stays is of a run that is over, and nobody looks at it again.
        let _ = fs::remove_file(&self.file);
    }
}
