//! Cancel request: asks the process that drives a run to end it.
//!
//! The request is a file in the runtime root, outside the directory of the run: a late write there
//! would not be part of the seal. The first request counts.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::json;
use provost_core::run::fact::Cancel;
use provost_engine::ports::PortError;

use crate::clock;

/// The file of the cancel request of one run.
#[derive(Debug, Clone)]
pub struct CancelRequest {
    directory: PathBuf,
    file: PathBuf,
}

impl CancelRequest {
    /// The request in the runtime root `root`.
    pub fn of(root: &Path, run_id: &str) -> Self {
        let directory = root.join("cancel");
        let file = directory.join(format!("{run_id}.json"));
        Self { directory, file }
    }

    /// Writes the request, unless there is one already.
    pub fn leave(&self, cancel: &Cancel) -> Result<(), PortError> {
        let wrong = |error: &dyn std::error::Error| {
            let reason = format!("`{}`: {error}", self.file.display());
            PortError::new(Code::HostFailed, reason)
        };
        let text = serde_json::to_vec(cancel).map_err(|error| wrong(&error))?;
        let mut directory = DirBuilder::new();
        directory.recursive(true).mode(0o700);
        let beside = self.file.with_extension(std::process::id().to_string());
        let made = directory.create(&self.directory).and_then(|()| {
            let mut file = File::create(&beside)?;
            file.write_all(&text)?;
            // Atomic, and never in place of an earlier request.
            match fs::hard_link(&beside, &self.file) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            }
        });
        let _ = fs::remove_file(&beside);
        made.map_err(|error| wrong(&error))
    }

    pub fn is_there(&self) -> bool {
        self.file.exists()
    }

    /// The request; one that cannot be read names no person.
    pub fn read(&self) -> Option<Cancel> {
        if !self.is_there() {
            return None;
        }
        let read = fs::read(&self.file).ok();
        let read = read.and_then(|bytes| json::parse_as(&bytes).ok());
        Some(read.unwrap_or_else(|| Cancel {
            by: None,
            at: clock::now(),
            reason: String::new(),
        }))
    }

    /// Removes the request after the run has ended.
    pub fn forget(&self) {
        // A leftover request of an ended run has no effect.
        let _ = fs::remove_file(&self.file);
    }
}
