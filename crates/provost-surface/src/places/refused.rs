//! Finds the records of requests that were refused before there was a run.

use std::path::PathBuf;

use provost_core::code::Code;

use super::{Places, make, meant, missing, named};
use crate::answer::Failure;

impl Places {
    /// The directory of these records, one directory for each.
    pub fn refused(&self) -> PathBuf {
        self.root.join("refused")
    }

    /// Creates that directory, and excludes it from git; a record needs no cache.
    pub fn prepare_refused(&self) -> Result<(), Failure> {
        make(&self.refused())?;
        self.settle()
    }

    /// The ids of refused requests, oldest first.
    pub fn all_refused(&self) -> Result<Vec<String>, Failure> {
        named(&self.refused(), "run_")
    }

    /// The refused request that `text` names, unless it names a run.
    pub fn find_refused(&self, text: &str) -> Result<Option<String>, Failure> {
        if text == "last" || meant(&self.runs()?, text, "run")?.is_some() {
            return Ok(None);
        }
        meant(&self.all_refused()?, text, "refused request")
    }

    /// The newest refused request, if it is newer than the run `run_id`.
    pub fn refused_after(&self, run_id: &str) -> Option<String> {
        let newest = self.all_refused().ok()?.pop()?;
        (newest.as_str() > run_id).then_some(newest)
    }

    /// The failure where there is no run at all.
    pub(super) fn no_run_yet(&self) -> Failure {
        let failure = missing("there is no run yet");
        match self.refused_after("") {
            Some(run_id) => failure.hint(format!(
                "a contract was refused before there was a run: provost show {run_id}"
            )),
            None => failure.hint("`provost run --help` describes how to start one"),
        }
    }

    /// The failure where no run is called `text`.
    pub(super) fn no_run(&self, text: &str) -> Failure {
        match self.find_refused(text) {
            Err(failure) => failure,
            Ok(Some(run_id)) => {
                let reason = format!("{run_id} was refused before there was a run");
                Failure::new(Code::NotAccepted, reason).hint(format!("provost show {run_id}"))
            }
            Ok(None) => missing(&format!("there is no run `{text}`")),
        }
    }
}
