//! Installs the hooks of git.

use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_engine::opening::Origin as _;
use provost_host::hooks::{self, Asks, HOOKS};
use provost_host::origin::GitOrigin;
use serde::Serialize;

use super::{Install, broken, directory, read, write};
use crate::answer::{Answered, Failure, Outcome};
use crate::places::Places;

/// Hooks that are installed.
#[derive(Serialize)]
pub(in crate::cli) struct InstalledHooks {
    directory: PathBuf,
    hooks: [&'static str; HOOKS.len()],
    /// Whether they refuse what is bound to no contract.
    require: bool,
    #[serde(skip)]
    is_bound: bool,
}

impl Answered for InstalledHooks {
    fn text(&self) -> String {
        let (names, directory) = (HOOKS.join(", "), self.directory.display());
        let mut text = format!("installed {names} in {directory}\n");
        text += unbound_line(self.require);
        if !self.is_bound {
            text += "next: provost hook bind CONTRACT\n";
        }
        text
    }
}

impl InstalledHooks {
    /// The result in one line.
    pub(in crate::cli) fn words(&self) -> String {
        let unbound = unbound_line(self.require).trim_end();
        format!("{}; {unbound}", HOOKS.join(", "))
    }
}

pub(super) fn run(place: &Places, install: &Install) -> Outcome {
    let asked = asked_by_policy(place);
    if install.no_require && asked {
        let reason = "provost.toml of the current commit asks for it (`[hooks] require`)";
        let failure = Failure::new(Code::HookUnbound, reason);
        return Err(failure.hint("provost hook install"));
    }
    let directory = directory(place)?;
    let kept = !install.no_require && requires(&directory)?;
    Ok(install_in(place, directory, install.require || asked || kept)?.into())
}

/// Installs the hooks for `provost init`; they refuse what is bound to no contract where the
/// repository asks for that, or where they did before.
pub(in crate::cli) fn for_repository(place: &Places) -> Result<InstalledHooks, Failure> {
    let directory = directory(place)?;
    let require = asked_by_policy(place) || requires(&directory)?;
    install_in(place, directory, require)
}

/// Whether our hooks are installed here.
pub(in crate::cli) fn are_there(place: &Places) -> bool {
    let root = |directory: PathBuf, name| {
        let found = hooks::root(&directory, name, place.repo.common_dir());
        found.is_ok_and(|root| root.is_some())
    };
    let is_ours = |name| directory(place).is_ok_and(|directory| root(directory, name));
    HOOKS.into_iter().all(is_ours)
}

/// Whether the policy of the current commit wants that what is bound to no contract is refused.
fn asked_by_policy(place: &Places) -> bool {
    let origin = GitOrigin(&place.repo);
    let tree = origin.resolve("HEAD");
    let tree = tree.and_then(|commit| origin.tree(&commit));
    let policy = tree.and_then(|tree| origin.policy(&tree));
    // Without a commit no policy was committed; one that cannot be read is reported elsewhere.
    policy.is_ok_and(|policy| policy.hooks_require)
}

fn install_in(
    place: &Places,
    directory: PathBuf,
    require: bool,
) -> Result<InstalledHooks, Failure> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    let program = program.map_err(|error| Failure::of(Code::HostFailed, &error))?;
    same_root(place, &directory)?;
    let asks = Asks {
        program: &program,
        repository: place.repo.common_dir(),
        root: &place.root,
        words: if require { &["--require"] } else { &[] },
    };
    for name in HOOKS {
        hooks::install(&directory, name, &asks)
            .map_err(|error| broken(&error, &directory.join(name)))?;
    }
    let all = read(place)?;
    let is_bound = !all.bindings.is_empty();
    if is_bound {
        // Bindings of an earlier build now name their checkouts by their git directories.
        write(place, &all)?;
    }
    Ok(InstalledHooks {
        directory,
        hooks: HOOKS,
        require,
        is_bound,
    })
}

/// Refuses another runtime root than the one that the installed hooks read: a binding there would
/// have no effect.
pub(super) fn same_root(place: &Places, directory: &Path) -> Result<(), Failure> {
    for name in HOOKS {
        let found = hooks::root(directory, name, place.repo.common_dir());
        let found = found.map_err(|error| broken(&error, &directory.join(name)))?;
        if let Some(root) = found.filter(|root| *root != place.root) {
            let reason = format!(
                "the hooks of this repository read bindings from `{}`, not from `{}`",
                root.display(),
                place.root.display()
            );
            return Err(Failure::new(Code::HookBroken, reason).hint(format!(
                "set PROVOST_ROOT='{}', or remove the hooks first: provost hook uninstall",
                root.display()
            )));
        }
    }
    Ok(())
}

/// Whether our installed hook refuses what is bound to no contract.
pub(super) fn requires(directory: &Path) -> Result<bool, Failure> {
    for name in HOOKS {
        let found = hooks::requires(directory, name);
        if found.map_err(|error| broken(&error, &directory.join(name)))? {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn unbound_line(require: bool) -> &'static str {
    if require {
        "what is bound to no contract is refused (--require)\n"
    } else {
        "what is bound to no contract passes (--require refuses it)\n"
    }
}
