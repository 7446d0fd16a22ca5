//! Refreshes the index of a checkout in which only times, owners or the like changed.

use super::{GitError, Ground, LandError, Repository, SideGit, failed};

impl Ground {
    /// Updates the index with the stat data of files whose content is unchanged.
    ///
    /// Git compares the content of every file that was touched or copied. It does so with our
    /// settings, so no filter runs. It writes the index whole, under its own lock.
    pub(super) fn refresh(&self, view: &SideGit) -> Result<(), LandError> {
        let arguments = ["update-index", "-q", "--ignore-submodules", "--refresh"];
        let output = self.call(view, &arguments, Vec::new())?;
        match output.status.code() {
            // A file that differs is refused by the step that would overwrite it.
            Some(0 | 1) => Ok(()),
            _ => Err(failed("update-index".to_owned(), &output).into()),
        }
    }
}

/// Whether the repository is configured for a file system that keeps no executable bit.
pub(super) fn lacks_modes(repo: &Repository) -> Result<bool, GitError> {
    let mut lacks = false;
    for file in [
        repo.common_dir.join("config"),
        repo.git_dir.join("config.worktree"),
    ] {
        if !file.is_file() {
            continue;
        }
        if let Some(value) = repo.setting(&file, "core.fileMode")? {
            let value = value.to_ascii_lowercase();
            lacks = matches!(value.as_slice(), b"false" | b"no" | b"off" | b"0");
        }
    }
    Ok(lacks)
}
