//! Runs acceptance commands on a copy of exactly the files that an inventory lists.
//!
//! # Invariants
//!
//! - The copy equals the inventory before the first command starts, or none starts.
//! - A command runs in a sandbox without network and reaches only the copy and the toolchain.
//! - A command that changes a listed file invalidates the trial: the next one would judge other
//!   files. New files beside them are build output.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use provost_core::code::{Code, Coded as _};
use provost_core::path::RepoPath;
use rayon::prelude::*;

use crate::clock;
use crate::inventory::{self, Files, InventoryError};
use crate::machine::user_toolchain;
use crate::sandbox::{Command, Control, How, LauncherProgram, Mount, Profile, SandboxError, Stdin};
use crate::workspace::{self, WorkspaceError};

/// Path of the copy in the sandbox.
const TREE: &str = "/workspace";

/// How many bytes of the end of a stream are reported.
const TAIL: u64 = 2000;

#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("`{path}` cannot be copied")]
    Copy { path: RepoPath, source: io::Error },
    /// The files differ from the inventory.
    #[error("the workspace changed while it was copied")]
    Changed,
    /// A command wrote into a file that it should judge.
    #[error("a command changed `{0}`, which it should judge")]
    Altered(RepoPath),
    #[error("the copy cannot be listed")]
    Inventory(#[from] InventoryError),
    #[error("the sandbox failed")]
    Box(#[from] SandboxError),
    #[error("`{}` cannot be made", path.display())]
    Scratch { path: PathBuf, source: io::Error },
    #[error("the copy cannot be removed")]
    Remove(#[from] WorkspaceError),
}

impl TrialError {
    /// The code of the verdict.
    pub fn code(&self) -> Code {
        match self {
            Self::Changed | Self::Altered(_) => Code::TreeChanged,
            Self::Box(error) => error.code(),
            Self::Copy { .. } | Self::Inventory(_) | Self::Scratch { .. } | Self::Remove(_) => {
                Code::HostFailed
            }
        }
    }
}

/// Result of one command.
#[derive(Debug)]
pub struct Tried {
    /// The exit code; the negative number of the signal that ended it; 127 if it does not exist.
    pub exit_code: i32,
    pub started_at: String,
    pub ended_at: String,
    /// The end of its standard output.
    pub stdout_tail: String,
    /// The end of its standard error.
    pub stderr_tail: String,
}

/// Runs `commands` in order on a copy of `files` of `workspace`. The copy is made in `scratch`,
/// which must not exist and is removed afterwards.
pub fn run(
    workspace: &Path,
    files: &Files,
    scratch: &Path,
    commands: &[Vec<String>],
    seconds: u64,
) -> Result<Vec<Tried>, TrialError> {
    let tree = scratch.join("tree");
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private
        .create(&tree)
        .map_err(|source| TrialError::Scratch {
            path: tree.clone(),
            source,
        })?;
    let result = tried(workspace, files, &tree, commands, seconds);
    let removed = match scratch.parent() {
        Some(parent) => workspace::remove(parent, scratch),
        None => Ok(()),
    };
    // The first error is the cause; one of the removal comes second.
    let tried = result?;
    removed?;
    Ok(tried)
}

fn tried(
    workspace: &Path,
    files: &Files,
    tree: &Path,
    commands: &[Vec<String>],
    seconds: u64,
) -> Result<Vec<Tried>, TrialError> {
    copy(workspace, files, tree)?;
    if inventory::take(tree, None)?.into_files() != *files {
        return Err(TrialError::Changed);
    }
    let mut profile = Profile::minimal();
    user_toolchain().add_to(&mut profile);
    profile.add(Mount::Writable {
        source: tree.to_owned(),
        target: TREE.into(),
    });
    profile.workdir = TREE.into();
    profile.limits.wall_seconds = seconds;
    let mut results = Vec::new();
    for argv in commands {
        results.push(one(&profile, argv, tree)?);
        let after = inventory::take(tree, None)?.into_files();
        let altered = files
            .iter()
            .find(|(path, sha)| after.get(*path) != Some(*sha));
        if let Some((path, _)) = altered {
            return Err(TrialError::Altered(path.clone()));
        }
    }
    Ok(results)
}

/// Copies every file; links stay links.
fn copy(workspace: &Path, files: &Files, tree: &Path) -> Result<(), TrialError> {
    let failed = |path: &RepoPath, source: io::Error| TrialError::Copy {
        path: path.clone(),
        source,
    };
    let mut made = PathBuf::new();
    for path in files.keys() {
        let parent = Path::new(path.as_str()).parent().unwrap_or(Path::new(""));
        if parent != made {
            fs::create_dir_all(tree.join(parent)).map_err(|error| failed(path, error))?;
            parent.clone_into(&mut made);
        }
    }
    let paths: Vec<&RepoPath> = files.keys().collect();
    paths.par_iter().try_for_each(|path| {
        let (from, to) = (workspace.join(path.as_str()), tree.join(path.as_str()));
        let copied = fs::symlink_metadata(&from).and_then(|facts| {
            if facts.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&from)?, &to)
            } else if facts.is_file() {
                fs::copy(&from, &to).map(|_| ())
            } else {
                Err(io::Error::other("it is neither a file nor a link"))
            }
        });
        copied.map_err(|error| failed(path, error))
    })
}

fn one(profile: &Profile, argv: &[String], tree: &Path) -> Result<Tried, TrialError> {
    let streams = tree.parent().unwrap_or(tree);
    let command = Command {
        argv: argv.to_vec(),
        stdin: Stdin::Null,
        stdout: streams.join("stdout"),
        stderr: streams.join("stderr"),
    };
    let started_at = clock::now();
    let ended = LauncherProgram::own()
        .start(profile, &command, |_| Ok(()))
        .and_then(|running| running.wait(&mut |_| Control::Continue));
    let (exit_code, complaint) = match ended {
        Ok(ended) => (exit_code(ended.how), None),
        Err(error) if error.is_exec() => (127, Some(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    Ok(Tried {
        exit_code,
        started_at,
        ended_at: clock::now(),
        stdout_tail: tail(&command.stdout),
        stderr_tail: complaint.unwrap_or_else(|| tail(&command.stderr)),
    })
}

fn exit_code(how: How) -> i32 {
    match how {
        How::Exited(code) => code,
        How::Signalled(signal) => -signal,
        // The sandbox was killed, and the command with it.
        How::TimedOut
        | How::OutputLimit
        | How::MemoryLimit
        | How::ProcessLimit
        | How::DiskLimit
        | How::InodeLimit
        | How::NoProgress
        | How::Cancelled => -9,
    }
}

/// The end of a stream, for display; empty if it cannot be read.
fn tail(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
