//! The operations of which a case consists.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::Value;

use super::ground::{Ground, command, write};
use crate::Result;

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Op {
    Write {
        path: Option<String>,
        path_hex: Option<String>,
        text: Option<String>,
        hex: Option<String>,
        /// Write through this path instead; `path` is what changes.
        via: Option<String>,
    },
    Bulk {
        dir: String,
        count: usize,
    },
    Delete {
        path: String,
    },
    Rmdir {
        path: String,
    },
    Mkdir {
        path: String,
    },
    Mkfifo {
        path: String,
    },
    Rename {
        from: String,
        to: String,
    },
    Copy {
        from: String,
        to: String,
    },
    Symlink {
        path: String,
        target: String,
    },
    Hardlink {
        path: String,
        target: String,
    },
    Chmod {
        path: String,
        mode: String,
    },
    /// Sets the modification time: the given one, or else that from before the change.
    Utime {
        path: String,
        #[serde(alias = "time", alias = "sec")]
        mtime: Option<Value>,
    },
    Git {
        args: Vec<String>,
    },
    Stage,
    Commit,
    RestoreWorktree {
        path: String,
    },
    Unmerged {
        path: String,
    },
    GitdirWrite {
        #[serde(rename = "where")]
        place: String,
        path: String,
        #[serde(default)]
        text: String,
        mode: Option<String>,
    },
    CanaryScript {
        #[serde(alias = "name")]
        path: Option<String>,
    },
    DecoyGitdir {
        path: String,
    },
}

impl Op {
    /// Applies the operation in `root`, a checkout.
    pub(super) fn apply(&self, ground: &Ground, root: &Path) -> Result {
        let at = |path: &str| root.join(ground.fill(path));
        match self {
            Self::Write { text, hex, via, .. } => {
                let bytes = match (text, hex) {
                    (Some(text), None) => ground.fill(text).into_bytes(),
                    (None, Some(hex)) => unhex(hex)?,
                    _ => return Err("`write` needs either `text` or `hex`".into()),
                };
                let path = match via {
                    Some(via) => at(via),
                    None => root.join(OsStr::from_bytes(&self.target(ground)?)),
                };
                write(&path, &bytes)
            }
            Self::Bulk { dir, count } => (0..*count).try_for_each(|number| {
                write(
                    &at(dir).join(format!("f{number}.txt")),
                    format!("{number}\n").as_bytes(),
                )
            }),
            Self::Delete { path } => at_path(&at(path), fs::remove_file(at(path))),
            Self::Rmdir { path } => at_path(&at(path), fs::remove_dir_all(at(path))),
            Self::Mkdir { path } => at_path(&at(path), fs::create_dir_all(at(path))),
            Self::Mkfifo { path } => program("mkfifo", &[at(path)]),
            Self::Rename { from, to } => {
                parent(&at(to)).and_then(|()| at_path(&at(from), fs::rename(at(from), at(to))))
            }
            Self::Copy { from, to } => parent(&at(to))
                .and_then(|()| at_path(&at(from), fs::copy(at(from), at(to)).map(drop))),
            Self::Symlink { path, target } => parent(&at(path))
                .and_then(|()| at_path(&at(path), symlink(ground.fill(target), at(path)))),
            Self::Hardlink { path, target } => parent(&at(path))
                .and_then(|()| at_path(&at(path), fs::hard_link(at(target), at(path)))),
            Self::Chmod { path, mode } => chmod(&at(path), mode),
            Self::Utime { path, mtime } => {
                set_time(&at(path), mtime.as_ref(), ground.times.get(&at(path)))
            }
            _ => self.apply_to_git(ground, root),
        }
    }

    /// The operations that use or damage git's own files.
    fn apply_to_git(&self, ground: &Ground, root: &Path) -> Result {
        let git = |words: &[&str]| ground.git(root, words);
        match self {
            Self::Git { args } => {
                let words: Vec<String> = args.iter().map(|word| ground.fill(word)).collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                git(&words).map(drop)
            }
            Self::Stage => git(&["add", "-A"]).map(drop),
            Self::Commit => {
                git(&["add", "-A"])?;
                git(&["commit", "-q", "--no-verify", "-m", "work"]).map(drop)
            }
            Self::RestoreWorktree { path } => {
                let source = format!("{}:{path}", ground.base);
                let output = command(root).args(["cat-file", "blob", &source]).output();
                let output = output?;
                write(&root.join(path), &output.stdout)
            }
            Self::Unmerged { path } => unmerged(ground, root, path),
            Self::GitdirWrite {
                place,
                path,
                text,
                mode,
            } => {
                let flag = match place.as_str() {
                    "common" => "--git-common-dir",
                    "worktree" => "--git-dir",
                    other => return Err(format!("unknown git directory `{other}`").into()),
                };
                let words = ["rev-parse", "--path-format=absolute", flag];
                let path = Path::new(&git(&words)?).join(ground.fill(path));
                write(&path, ground.fill(text).as_bytes())?;
                mode.as_ref().map_or(Ok(()), |mode| chmod(&path, mode))
            }
            Self::CanaryScript { path } => {
                let path = path.as_deref().unwrap_or("canary.sh");
                let path = ground.case.join(ground.fill(path));
                let canary = ground.case.join("canary");
                let script = format!("#!/bin/sh\n: > '{}'\ncat\n", canary.display());
                write(&path, script.as_bytes())?;
                chmod(&path, "755")
            }
            Self::DecoyGitdir { path } => decoy(ground, root, path),
            _ => Err("unknown operation".into()),
        }
    }

    /// The bytes of the path that `write` names.
    fn target(&self, ground: &Ground) -> Result<Vec<u8>> {
        match self {
            Self::Write {
                path: Some(path), ..
            } => Ok(ground.fill(path).into_bytes()),
            Self::Write {
                path_hex: Some(hex),
                ..
            } => unhex(hex),
            _ => Err("`write` needs a path".into()),
        }
    }

    /// The paths it touches, for the index.
    pub(super) fn paths(&self, ground: &Ground) -> Vec<String> {
        match self {
            Self::Write { path, .. } => path.iter().map(|path| ground.fill(path)).collect(),
            Self::Bulk { dir, .. } => vec![ground.fill(dir)],
            Self::Rename { from, to } => vec![ground.fill(from), ground.fill(to)],
            Self::Copy { to, .. } => vec![ground.fill(to)],
            Self::Delete { path }
            | Self::Rmdir { path }
            | Self::Mkdir { path }
            | Self::Symlink { path, .. }
            | Self::Hardlink { path, .. }
            | Self::Chmod { path, .. } => vec![ground.fill(path)],
            _ => Vec::new(),
        }
    }
}

fn at_path(path: &Path, result: std::io::Result<()>) -> Result {
    Ok(result.map_err(|error| format!("{}: {error}", path.display()))?)
}

fn parent(path: &Path) -> Result {
    path.parent()
        .map_or(Ok(()), |parent| at_path(parent, fs::create_dir_all(parent)))
}

fn chmod(path: &Path, mode: &str) -> Result {
    let mode = u32::from_str_radix(mode, 8).map_err(|error| format!("mode {mode}: {error}"))?;
    at_path(
        path,
        fs::set_permissions(path, Permissions::from_mode(mode)),
    )
}

fn program(name: &str, words: &[PathBuf]) -> Result {
    match Command::new(name).args(words).status() {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("{name}: {other:?}").into()),
    }
}

fn set_time(path: &Path, given: Option<&Value>, before: Option<&SystemTime>) -> Result {
    let given = given
        .and_then(Value::as_f64)
        .map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds));
    let time = given
        .or(before.copied())
        .ok_or("`utime` without a time for a new file")?;
    at_path(
        path,
        fs::File::options()
            .write(true)
            .open(path)
            .and_then(|file| file.set_modified(time)),
    )
}

fn unhex(hex: &str) -> Result<Vec<u8>> {
    let digits: Vec<char> = hex.chars().collect();
    let pair = |pair: &[char]| {
        let text: String = pair.iter().collect();
        Ok(u8::from_str_radix(&text, 16).map_err(|error| format!("{text}: {error}"))?)
    };
    digits.chunks(2).map(pair).collect()
}

/// Runs git with `input` on stdin and returns its output.
fn feed(root: &Path, words: &[&str], input: &str) -> Result<String> {
    let mut child = command(root)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("git {words:?} failed").into())
    }
}

/// Puts three sides of a conflict into the index.
fn unmerged(ground: &Ground, root: &Path, path: &str) -> Result {
    let mut lines = format!("0 {}\t{path}\n", "0".repeat(ground.base.len()));
    for stage in 1..=3 {
        let blob = feed(
            root,
            &["hash-object", "-w", "--stdin"],
            &format!("side {stage}\n"),
        )?;
        lines += &format!("100644 {blob} {stage}\t{path}\n");
    }
    feed(root, &["update-index", "--index-info"], &lines).map(drop)
}

/// Points the worktree's `.git` file at a repository in which a change of `path` is committed.
fn decoy(ground: &Ground, root: &Path, path: &str) -> Result {
    let decoy = ground.case.join("decoy");
    let (from, to) = (ground.repository.to_string_lossy(), decoy.to_string_lossy());
    ground.git(&ground.case, &["clone", "-q", "--no-hardlinks", &from, &to])?;
    write(&decoy.join(path), b"changed\n")?;
    ground.git(
        &decoy,
        &["commit", "-q", "-a", "--no-verify", "-m", "decoy"],
    )?;
    write(
        &root.join(".git"),
        format!("gitdir: {}/.git\n", decoy.display()).as_bytes(),
    )
}
