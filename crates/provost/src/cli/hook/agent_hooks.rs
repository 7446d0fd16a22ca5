//! Answers the hooks of Claude Code and Codex: may this tool call write what it is about to write?
//!
//! # Invariants
//!
//! - A write passes only where an active change declared it, a bound contract covers it, git ignores
//!   it, or it is a temporary file.
//! - After a call that may write more than it names, the checkout is compared (`after_call`).
//! - What cannot be read, resolved or answered in time is denied: exit status 2, and the reason on
//!   stderr, which both programs give to the model.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::panic;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use provost_change::hook::guard::{self, Denied};
use provost_change::hook::tool_call::{self, Call, Event, What};
use provost_change::intent::{Intent, Viewer};
use provost_core::code::Code;
use provost_core::gate::diff::Rules;
use provost_core::json;
use provost_core::path::{RawPath, RepoPath};
use provost_core::protect;
use provost_engine::binding::{Decision, Unbound};
use provost_engine::query::DeniedWrite;
use provost_host::hooks::bindings;
use provost_host::{clock, denied_writes, process_owner};

use super::Stop;
use super::after_call::{self, LastCall};
use crate::answer::Failure;
use crate::places::Places;
use crate::stores;
use crate::{session, show};

/// The exit status that both programs take as a refusal.
const DENIED: u8 = 2;

/// How long an answer may take; the settings allow more, and a program that times out proceeds.
const PATIENCE: Duration = Duration::from_secs(8);

/// Whether the arguments are those of a hook, which is answered without further parsing.
pub(crate) fn is_asked() -> bool {
    let mut words = std::env::args_os().skip(1);
    let hook = words.next().is_some_and(|word| word == "hook");
    let program = words.next();
    let known = program.is_some_and(|word| word == "claude" || word == "codex");
    hook && known && words.next().is_none()
}

/// Answers the event on stdin.
pub(crate) fn answer() -> ExitCode {
    // Any other exit status lets the program proceed.
    panic::set_hook(Box::new(|panic| {
        show::print_message(&format!("error[HOOK_DENIED]: the hook failed: {panic}"));
        std::process::exit(i32::from(DENIED));
    }));
    let watch = || {
        std::thread::sleep(PATIENCE);
        show::print_message("error[HOOK_DENIED]: the hook could not be answered in time");
        std::process::exit(i32::from(DENIED));
    };
    if std::thread::Builder::new().spawn(watch).is_err() {
        show::print_message("error[HOOK_DENIED]: there is no thread to watch the time");
        return ExitCode::from(DENIED);
    }
    match judge() {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(DENIED),
        },
        Err(failure) => {
            let mut words = format!("error[HOOK_DENIED]: {}", failure.verdict().reason);
            if let Some(hint) = &failure.hint {
                words = format!("{words}\nhint: {hint}");
            }
            show::print_message(&words);
            ExitCode::from(DENIED)
        }
    }
}

pub(super) fn denied(reason: impl Into<String>) -> Failure {
    Failure::new(Code::HookDenied, reason)
}

/// The text to print, if the event is permitted.
fn judge() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(json::LARGEST as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::of(Code::HookDenied, &error))?;
    let value = json::parse(&bytes).map_err(|error| Failure::of(Code::HookDenied, &error))?;
    let event = tool_call::parse(&value).map_err(|error| {
        let failure = Failure::of(Code::HookDenied, &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let cwd = Path::new(&event.cwd);
    match &event.what {
        What::End => Ok(String::new()),
        What::After => after(&event).map(|()| String::new()),
        What::Before(call) => {
            let judged = before(&event, call);
            judged.inspect_err(|failure| record(&event, call, failure))?;
            Ok(String::new())
        }
        What::Begin => {
            let active = HookRules::of(cwd, Whose::Named)?.intents;
            Ok(match active.last() {
                None => format!("Edits need a declared change here. {}\n", begin()),
                Some(_) => "Edits are held to the declared changes that are active here.\n".into(),
            })
        }
    }
}

/// Judges a call before it happens; one that only reads always passes.
fn before(event: &Event, call: &Call) -> Result<(), Failure> {
    let cwd = Path::new(&event.cwd);
    if *call == Call::default() {
        if event.runs {
            watch(event);
        }
        return Ok(());
    }
    let everyone = match HookRules::of(cwd, Whose::All) {
        // Outside of a repository there is nothing to compare.
        Err(failure) if call.paths.is_empty() && failure.code == Code::NotARepository => {
            return Ok(());
        }
        rules => rules?,
    };
    let last = LastCall::of(&everyone, &event.session)?;
    let undeclared = last.undeclared(&everyone)?;
    if call.is_open && !undeclared.is_empty() {
        return Err(after_call::refusal(&undeclared));
    }
    if !call.paths.is_empty() {
        allowed(cwd, &call.paths, &undeclared)?;
    }
    if call.is_open || event.runs && undeclared.is_empty() {
        last.begin(&everyone)
    } else if undeclared.is_empty() {
        last.settle()
    } else {
        Ok(())
    }
}

/// Keeps the state of the checkout before a line that seems only to read, so that what it writes all
/// the same is found after the call. Reading is never denied, so nothing here is an error; where
/// Provost keeps no state yet, it makes none.
fn watch(event: &Event) {
    let begun = || -> Result<(), Failure> {
        let rules = HookRules::of(Path::new(&event.cwd), Whose::All)?;
        let last = LastCall::of(&rules, &event.session)?;
        if rules.place.root.is_dir() && last.undeclared(&rules)?.is_empty() {
            last.begin(&rules)?;
        }
        Ok(())
    };
    let _ = begun();
}

/// Reports what a call changed although no change declares it.
fn after(event: &Event) -> Result<(), Failure> {
    let rules = match HookRules::of(Path::new(&event.cwd), Whose::All) {
        Err(failure) if failure.code == Code::NotARepository => return Ok(()),
        rules => rules?,
    };
    let last = LastCall::of(&rules, &event.session)?;
    let undeclared = last.undeclared(&rules)?;
    if undeclared.is_empty() {
        return last.settle();
    }
    Err(after_call::refusal(&undeclared))
}

/// Records a denial, so that a person can see it. It holds all the same if that fails.
fn record(event: &Event, call: &Call, failure: &Failure) {
    let Ok(place) = Places::of(Path::new(&event.cwd)) else {
        return;
    };
    let denied = DeniedWrite {
        at: clock::now(),
        agent: std::env::var("PROVOST_AGENT").ok(),
        session: event.session.clone(),
        paths: call.paths.clone(),
        reason: failure.verdict().reason,
    };
    let _ = denied_writes::record(&place.root, &denied);
}

/// The commands that start a change.
fn begin() -> String {
    "provost change --agent NAME analyze, then provost change --agent NAME start 'WHAT' --file \
     PATH; or start_controlled_change of provost mcp"
        .to_owned()
}

/// Whose changes count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Those of the agent that `PROVOST_AGENT` names, or all.
    Named,
    All,
}

/// The rules of a checkout at this moment.
pub(super) struct HookRules {
    pub(super) place: Places,
    pub(super) top: PathBuf,
    /// The changes whose scope may be edited.
    intents: Vec<Intent>,
    /// The change that would be one of them if it had not expired.
    expired: Option<String>,
}

impl HookRules {
    fn of(cwd: &Path, whose: Whose) -> Result<Self, Failure> {
        let place = Places::of(cwd)?;
        let top = super::checkout(&place)?.to_owned();
        let top = top
            .canonicalize()
            .map_err(|error| Failure::of(Code::HookDenied, &error))?;
        let path = place.registry_path();
        let known = if path.symlink_metadata().is_ok() {
            stores::look_at_intents(&path, |intents| Ok(intents.look(None)?.intents))?
        } else {
            Vec::new()
        };
        let me = session::owner()?;
        let viewer = Viewer {
            me: &me,
            now: clock::now_millis(),
            alive: &process_owner::alive,
        };
        let name = std::env::var("PROVOST_AGENT").ok();
        let name = name
            .as_deref()
            .filter(|name| whose == Whose::Named && !name.is_empty());
        let active = guard::active(&known, &viewer, name);
        let intents: Vec<Intent> = active.into_iter().cloned().collect();
        let mut expired = None;
        if intents.is_empty() && path.symlink_metadata().is_ok() {
            let past = stores::look_at_intents(&path, |intents| intents.past())?;
            let over = guard::expired(&past, viewer.now, name);
            expired = over.map(|intent| intent.intent_id.clone());
        }
        Ok(Self {
            place,
            top,
            intents,
            expired,
        })
    }

    /// Whether contracts are bound here; all of them must then cover `paths`.
    fn bound(&self, paths: &[RepoPath]) -> Result<bool, Failure> {
        let all = bindings::read_found(&self.place.repo, &self.place.root);
        let all = all.map_err(|stop| refusal_of(stop.into()))?;
        if all.bindings.is_empty() {
            return Ok(false);
        }
        let here = bindings::here(&self.place.repo);
        let branch = self.place.repo.head_branch();
        let branch = branch?;
        let Decision::Judge(list) = all.decide(Some(&here), branch.as_deref(), Unbound::Passes)
        else {
            return Ok(false);
        };
        for binding in list {
            let held = super::usable(&self.place, binding).map_err(refusal_of)?;
            let rules = Rules {
                scope: &held.contract.scope,
                forbid: &held.contract.forbid,
                permit: &held.contract.permit,
                extra: &held.policy.protect,
            };
            let covers = |path: &&RepoPath| !rules.covers(&RawPath::new(path.as_str()));
            if let Some(path) = paths.iter().find(covers) {
                let reason = format!(
                    "`{path}` lies outside of the contract `{}`",
                    binding.contract
                );
                let hint = format!("a contract that allows it needs `{path}` in `allowed_paths`");
                return Err(denied(reason).hint(hint));
            }
        }
        Ok(true)
    }
}

impl HookRules {
    /// Permits writes to `paths` that an active change declares, or a bound contract covers.
    pub(super) fn permits(&self, paths: &[RepoPath]) -> Result<(), Failure> {
        let is_bound = self.bound(paths)?;
        if is_bound && self.intents.is_empty() {
            return Ok(());
        }
        let active: Vec<&Intent> = self.intents.iter().collect();
        for path in paths {
            guard::judge(path, &active).map_err(|why| match (&why, &self.expired) {
                (Denied::NoIntent, Some(id)) => refusal(&Denied::Expired(id.clone()), &active),
                _ => refusal(&why, &active),
            })?;
        }
        Ok(())
    }

    /// Whether `real`, outside of the checkout, is a temporary file that nothing else relies on.
    fn is_temporary(&self, real: &Path) -> bool {
        let Ok(temporary) = std::env::temp_dir().canonicalize() else {
            return false;
        };
        let own = [Some(self.place.root.as_path()), self.place.cache().ok()];
        let is_own = own.into_iter().flatten().any(|own| real.starts_with(own));
        let below = real.strip_prefix(&temporary).ok().and_then(Path::to_str);
        let below = below.and_then(|below| RepoPath::try_from(below).ok());
        !is_own && below.is_some_and(|below| is_free(&below))
    }

    /// Whether git ignores `path`, and no tool relies on it.
    fn is_ignored(&self, path: &RepoPath) -> Result<bool, Failure> {
        let answer = self.place.repo.ignores(&RawPath::new(path.as_str()));
        let ignored = answer?;
        let is_environment = |at: &Path| self.top.join(at).join("pyvenv.cfg").exists();
        let mut above = Path::new(path.as_str()).ancestors();
        Ok(ignored && is_free(path) && !above.any(is_environment))
    }
}

/// Whether `path` is no protected name, and nothing that a later command runs.
fn is_free(path: &RepoPath) -> bool {
    let environment = path.parts().any(|part| matches!(part, "venv" | ".venv"));
    let is_protected = protect::classify(path, &protect::Extra::default()).is_some();
    !environment && !is_protected && guard::never(path).is_none()
}

fn refusal_of(stop: Stop) -> Failure {
    match stop {
        Stop::Refused(verdict) => denied(verdict.reason),
        Stop::Failed(failure) => failure,
    }
}

/// Permits the call if all of `paths`, relative to `cwd`, may be written; `undeclared` ones may be
/// undone, and then nothing else may be written.
fn allowed(cwd: &Path, paths: &[String], undeclared: &BTreeSet<RawPath>) -> Result<(), Failure> {
    let rules = HookRules::of(cwd, Whose::Named)?;
    let mut inside = Vec::new();
    for path in paths {
        let real = resolve(cwd, path)?;
        let below = real.strip_prefix(&rules.top).ok().and_then(Path::to_str);
        let Some(below) = below else {
            if rules.is_temporary(&real) {
                continue;
            }
            let reason = format!("`{path}` lies outside of this checkout");
            return Err(denied(reason).hint("write inside the checkout, within a declared change"));
        };
        if below.is_empty() {
            let reason = format!("`{path}` is the whole checkout");
            return Err(denied(reason).hint("name the files or directories that are written"));
        }
        let below = RepoPath::try_from(below)
            .map_err(|error| denied(format!("`{path}` {error}, so it cannot be judged")))?;
        if let Some(why) = guard::never(&below) {
            let path = below;
            return Err(refusal(&Denied::Never { path, why }, &[]));
        }
        if undeclared.contains(&RawPath::new(below.as_str())) {
            continue;
        }
        inside.push(below);
    }
    if !undeclared.is_empty() && !inside.is_empty() {
        return Err(after_call::refusal(undeclared));
    }
    if rules.permits(&inside).is_ok() {
        return Ok(());
    }
    let mut others = Vec::new();
    for path in inside {
        if !rules.is_ignored(&path)? {
            others.push(path);
        }
    }
    if others.is_empty() {
        return Ok(());
    }
    rules.permits(&others)
}

/// A refusal, with the smallest step that would permit the call.
fn refusal(why: &Denied, active: &[&Intent]) -> Failure {
    let failure = Failure::of(Code::HookDenied, why);
    match why {
        Denied::NoIntent => failure.hint(begin()),
        Denied::Expired(id) => failure.hint(format!(
            "provost change --agent NAME renew {id}; or manage_change_intent of provost mcp with \
             action=\"renew\""
        )),
        Denied::Never { .. } => failure.hint("leave it alone"),
        Denied::Forbidden { intent_id, .. } => failure.hint(format!(
            "finish {intent_id}, and start a change that permits it"
        )),
        Denied::Outside {
            path, intent_id, ..
        } => {
            let own = active.iter().find(|one| one.intent_id == *intent_id);
            let entries = own.map(|one| one.scope.allowed_files.as_slice());
            let mut words = String::new();
            for entry in entries.unwrap_or_default().iter().take(5).chain([path]) {
                words += &format!(" --file '{entry}'");
            }
            failure.hint(format!(
                "finish or clear {intent_id}, then provost change --agent NAME analyze, then provost \
                 change --agent NAME start 'WHY'{words}"
            ))
        }
    }
}

/// The target of a write to `path`, with links followed; an error where it cannot be determined.
fn resolve(cwd: &Path, path: &str) -> Result<PathBuf, Failure> {
    let unclear = |what: &str| denied(format!("`{path}` {what}, so it cannot be judged"));
    if !cwd.is_absolute() {
        return Err(unclear("is seen from a directory that is no absolute path"));
    }
    let mut real = PathBuf::new();
    let mut is_new = false;
    for part in cwd.join(path).components() {
        match part {
            Component::Prefix(_) | Component::CurDir => {}
            Component::RootDir => real.push("/"),
            Component::ParentDir if is_new => return Err(unclear("leads out of nothing")),
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) => {
                real.push(name);
                if is_new {
                    continue;
                }
                match real.canonicalize() {
                    Ok(there) => real = there,
                    Err(error)
                        if error.kind() == io::ErrorKind::NotFound
                            && real.symlink_metadata().is_err() =>
                    {
                        is_new = true;
                    }
                    Err(_) => return Err(unclear("cannot be followed")),
                }
            }
        }
    }
    Ok(real)
}
