//! Installs Provost's git hooks in a repository, and uninstalls them.
//!
//! # Invariants
//!
//! - An existing hook is kept beside ours, called after it, and restored when ours is uninstalled.
//! - A file that is not ours is never overwritten or removed.
//! - A hook is written atomically.

pub mod agent_settings;
pub mod bindings;
pub mod git_operation;
pub mod git_request;
pub mod trees;

use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_engine::ports::PortError;
use provost_fs::atomic::{self, Durability};

use crate::git::{Git, GitError};

pub const HOOKS: [&str; 5] = [
    "pre-commit",
    "pre-merge-commit",
    "pre-applypatch",
    "pre-push",
    "reference-transaction",
];

/// A hook that Provost installs, one for each of [`HOOKS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitHook {
    PreCommit,
    PreMergeCommit,
    PreApplypatch,
    PrePush,
    ReferenceTransaction,
}

/// How the reference-transaction hook recognises by itself the moves of refs that do not matter.
const HEAD: &str = include_str!("hooks/reference-transaction.sh");

/// How each hook finds its repository, and calls the program.
const FIND: &str = include_str!("hooks/find.sh");

/// What every hook of ours begins with.
const MARK: &str = "#!/bin/sh\n# This hook was installed by provost.";

/// Suffix of a hook that existed before ours.
const BEFORE: &str = "before-provost";

/// The largest hook that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// What is at the path of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Absent,
    /// Ours, alone.
    Ours,
    /// Ours, and it calls one that existed before.
    OursChained,
    /// A hook of another program or of the user.
    Foreign,
}

/// The failure over the file `path`, which the hooks need.
fn broken(error: impl Error + Send + Sync + 'static, path: &Path) -> PortError {
    let mut failure = PortError::of(Code::HookBroken, error);
    failure.reason = format!("`{}`: {}", path.display(), failure.reason);
    failure
}

fn git(error: GitError) -> PortError {
    PortError::of(Code::GitFailed, error)
}

/// Where git looks for the hooks of the checkout `top`, as its configuration says.
pub fn directory(top: &Path) -> io::Result<PathBuf> {
    // The user's own settings decide, so this is plain git in the user's own checkout.
    let git = Git::find(&[]).map_err(io::Error::other)?;
    let output = git.as_user(top, &["rev-parse", "--git-path", "hooks"]);
    let output = output.map_err(io::Error::other)?;
    let text = String::from_utf8_lossy(&output).into_owned();
    Ok(top.join(text.trim_end_matches('\n')))
}

/// What is at the path of the hook `name`.
pub fn standing(directory: &Path, name: &str) -> io::Result<Standing> {
    match read(&directory.join(name))? {
        None => Ok(Standing::Absent),
        Some(text) if text.starts_with(MARK) => {
            let before = kept(directory, name);
            Ok(if before.symlink_metadata().is_ok() {
                Standing::OursChained
            } else {
                Standing::Ours
            })
        }
        Some(_) => Ok(Standing::Foreign),
    }
}

/// Whether the hook `name` is ours and refuses changes that have no binding.
pub fn requires(directory: &Path, name: &str) -> io::Result<bool> {
    let text = read(&directory.join(name))?.unwrap_or_default();
    Ok(text.starts_with(MARK) && text.lines().any(|line| line == "require='--require'"))
}

/// What the hooks of one repository call, and for which repository.
#[derive(Debug, Clone, Copy)]
pub struct Asks<'a> {
    pub program: &'a Path,
    /// The git directory that all checkouts of the repository share.
    pub repository: &'a Path,
    /// The runtime root that has its bindings, whatever the environment says when git calls.
    pub root: &'a Path,
    /// Further arguments of the program.
    pub words: &'a [&'a str],
}

/// The runtime root that the hook `name` reads bindings from; `None` if it is not ours, or was not
/// installed for `repository`.
pub fn root(directory: &Path, name: &str, repository: &Path) -> io::Result<Option<PathBuf>> {
    let text = read(&directory.join(name))?.unwrap_or_default();
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        let word = line.strip_prefix('\'')?.strip_suffix('\'')?;
        Some(PathBuf::from(word.replace(r"'\''", "'")))
    };
    let ours = text.starts_with(MARK) && value("repository=").is_some_and(|it| it == repository);
    Ok(value("root=").filter(|_| ours))
}

/// Installs the hook `name`; an existing hook is called after it.
pub fn install(directory: &Path, name: &str, asks: &Asks<'_>) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let place = directory.join(name);
    let before = kept(directory, name);
    if standing(directory, name)? == Standing::Foreign {
        if before.symlink_metadata().is_ok() {
            let reason = format!("`{}` is in the way", before.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
        }
        fs::rename(&place, &before)?;
    }
    let text = script(name, asks, &before);
    let written = atomic::replace(&place, text.as_bytes(), 0o755, Durability::Synced);
    if written.is_err() && before.symlink_metadata().is_ok() && place.symlink_metadata().is_err() {
        // Without ours, the earlier hook stays active.
        fs::rename(&before, &place)?;
    }
    written
}

/// Uninstalls the hook `name` and restores the earlier one; false if it is not ours.
pub fn uninstall(directory: &Path, name: &str) -> io::Result<bool> {
    let place = directory.join(name);
    match standing(directory, name)? {
        Standing::Absent | Standing::Foreign => Ok(false),
        Standing::Ours => fs::remove_file(place).map(|()| true),
        Standing::OursChained => fs::rename(kept(directory, name), place).map(|()| true),
    }
}

fn kept(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.{BEFORE}"))
}

/// The text of a hook; `None` if there is none. What is not a regular file is not ours.
fn read(path: &Path) -> io::Result<Option<String>> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(data) if !data.is_file() || data.len() > LARGEST => Ok(Some(String::new())),
        Ok(_) => Ok(Some(String::from_utf8_lossy(&fs::read(path)?).into_owned())),
    }
}

fn script(name: &str, asks: &Asks<'_>, before: &Path) -> String {
    let [program, repository, root, before] =
        [asks.program, asks.repository, asks.root, before].map(|it| quoted(it.as_os_str()));
    let words = asks.words.join(" ");
    // git gives the pre-commit hook no input; the others read from stdin what is about to happen.
    let (head, ask, chain) = match name {
        "pre-push" => (
            "find_root\ninput=$(cat)\n",
            "printf '%s\\n' \"$input\" | ",
            "if [ -z \"$input\" ]; then \"$before\" \"$@\" </dev/null; exit; fi\n\
             printf '%s\\n' \"$input\" | \"$before\" \"$@\"\n",
        ),
        "reference-transaction" => (HEAD, "printf '%s\\n' \"$input\" | ", "chained \"$@\"\n"),
        _ => ("find_root\n", "", "exec \"$before\" \"$@\"\n"),
    };
    format!(
        "{MARK}\n\
         # `provost hook uninstall` takes it out and puts back what was here before.\n\
         provost={program}\n\
         before={before}\n\
         require='{words}'\n\
         repository={repository}\n\
         root={root}\n\
         {FIND}\
         {head}\
         if [ ! -x \"$provost\" ]; then\n\
         \x20 echo \"error[HOOK_BROKEN]: $provost is gone, so nothing can be judged\" >&2\n\
         \x20 echo \"hint: install it again, or remove this hook by hand: $0\" >&2\n\
         \x20 exit 1\n\
         fi\n\
         {ask}(ask {name} $require) || exit 1\n\
         [ -x \"$before\" ] || exit 0\n\
         {chain}"
    )
}

/// A word, quoted for a shell.
fn quoted(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks() -> Asks<'static> {
        Asks {
            program: Path::new("/bin/true"),
            repository: Path::new("/repo/.git"),
            root: Path::new("/it's a root"),
            words: &[],
        }
    }

    #[test]
    fn a_hook_that_was_there_is_chained_and_put_back() {
        let scratch = tempfile::tempdir().unwrap();
        let hooks = scratch.path().join("hooks");
        let asks = &asks();
        let own = "#!/bin/sh\necho mine\n";
        fs::create_dir(&hooks).unwrap();
        fs::write(hooks.join("pre-commit"), own).unwrap();
        for _ in 0..2 {
            install(&hooks, "pre-commit", asks).unwrap();
            assert_eq!(
                standing(&hooks, "pre-commit").unwrap(),
                Standing::OursChained
            );
        }
        let root_of = |repository: &str| root(&hooks, "pre-commit", Path::new(repository)).unwrap();
        assert_eq!(root_of("/repo/.git").as_deref(), Some(asks.root));
        assert_eq!(root_of("/other/.git"), None);
        assert!(uninstall(&hooks, "pre-commit").unwrap());
        assert_eq!(fs::read_to_string(hooks.join("pre-commit")).unwrap(), own);
        assert_eq!(standing(&hooks, "pre-commit").unwrap(), Standing::Foreign);
        assert!(!uninstall(&hooks, "pre-commit").unwrap());

        install(&hooks, "pre-push", asks).unwrap();
        assert_eq!(standing(&hooks, "pre-push").unwrap(), Standing::Ours);
        assert!(uninstall(&hooks, "pre-push").unwrap());
        assert_eq!(standing(&hooks, "pre-push").unwrap(), Standing::Absent);
    }

    #[test]
    fn a_second_hook_from_before_is_not_lost() {
        let scratch = tempfile::tempdir().unwrap();
        let hooks = scratch.path();
        fs::write(hooks.join("pre-push"), "new").unwrap();
        fs::write(hooks.join("pre-push.before-provost"), "old").unwrap();
        assert!(install(hooks, "pre-push", &asks()).is_err());
        assert_eq!(fs::read_to_string(hooks.join("pre-push")).unwrap(), "new");
    }
}
