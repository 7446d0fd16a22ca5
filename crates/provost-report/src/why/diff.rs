//! The refusals of the diff gate, and the widening that would permit each.

use provost_core::gate::diff::{Reason, Sign, leaves_repository};
use provost_core::json;
use provost_core::path::{RawPath, RepoPath};
use provost_core::protect::{self, Protection};
use provost_core::run::State;
use provost_core::scope;
use provost_core::verdict::Verdict;

use super::{Clause, Row, Widening};

const SCOPE: &str = "/allowed_paths";
const FORBID: &str = "/x_provost/forbid";

/// Every row of the verdict, with the widening that would permit it.
pub(crate) fn rows(state: &State, verdict: &Verdict) -> Vec<Row> {
    let details = verdict.details.as_ref();
    let rows = details.and_then(|details| details.get("findings")?.as_array());
    let read = |row| json::from_value::<Sign>(row).ok();
    let signs = rows.into_iter().flatten().filter_map(read);
    signs.map(|sign| row(state, &sign)).collect()
}

fn row(state: &State, sign: &Sign) -> Row {
    let rule = serde_json::to_value(sign.reason).unwrap_or_default();
    let (pointer, widening, note) = opened(state, sign);
    let note = if widening.is_empty() {
        Some(note.unwrap_or("no contract permits this").to_owned())
    } else {
        note.map(str::to_owned)
    };
    Row {
        about: Some(sign.path.to_string()),
        rule: rule.as_str().map(str::to_owned),
        problem: sign.problem.clone(),
        contract: pointer.map(|pointer| Clause::at(state, pointer)),
        widening,
        note,
    }
}

/// The place of the contract that a row is about, and the widening there.
type Opened = (Option<String>, Vec<Widening>, Option<&'static str>);

fn opened(state: &State, sign: &Sign) -> Opened {
    let path = &sign.path;
    let permit = |kind: &str| {
        let pointer = format!("/x_provost/permit/{kind}");
        let (widening, note) = named(&pointer, path);
        (Some(pointer), widening, note)
    };
    match sign.reason {
        Reason::OutOfScope | Reason::CopySourceOutOfScope => in_scope(state, path),
        Reason::BinaryChange => permit("binary"),
        Reason::SymlinkChange => permit("symlink"),
        // A link that stays in the repository may point anywhere, once links are permitted.
        Reason::SymlinkEscape if stays(state, path) => permit("symlink"),
        Reason::SymlinkEscape => {
            let note = "no contract can permit a link that leaves the repository";
            (None, Vec::new(), Some(note))
        }
        Reason::ProtectedPath => match protection(state, path) {
            Some(Protection::Oracle) => permit("oracle"),
            Some(Protection::Governing) => permit("governing"),
            Some(Protection::Control) | None => (None, Vec::new(), None),
        },
        Reason::Secret => (None, Vec::new(), Some("no contract lets a secret in")),
        Reason::CaseCollision
        | Reason::HiddenChange
        | Reason::HistoryOutOfScope
        | Reason::HistoryRewritten
        | Reason::NestedRepository
        | Reason::RefsChanged
        | Reason::RepoTamper
        | Reason::SpecialFile
        | Reason::SubmoduleChange
        | Reason::Unverifiable => (None, Vec::new(), None),
    }
}

fn protection(state: &State, path: &RawPath) -> Option<Protection> {
    let path = RepoPath::try_from(path).ok()?;
    protect::classify(&path, &state.opened.protect)
}

/// Whether the captured link at `path` points to a place in the repository.
fn stays(state: &State, path: &RawPath) -> bool {
    let changes = state.captured.iter().flat_map(|captured| &captured.changes);
    let link =
        |change: &provost_core::change::Change| (change.path == *path).then(|| change.link.clone());
    let target = changes.filter_map(link).flatten().next();
    target.is_some_and(|target| !leaves_repository(path, &target))
}

/// The widening that brings `path` into the scope: an entry that covers it, and none that forbids
/// it.
fn in_scope(state: &State, path: &RawPath) -> Opened {
    let document = &state.opened.contract;
    let extension = document.x_provost.as_ref();
    let forbids = |entry: &&String| {
        let entry = scope::Scope::parse(&[entry.as_str()]);
        entry.is_ok_and(|entry| entry.covers_alias(path))
    };
    let list = extension.map_or(&[][..], |extension| extension.forbid.as_slice());
    let forbidden: Vec<&String> = list.iter().filter(forbids).collect();
    let covered = state
        .contract
        .as_ref()
        .is_ok_and(|contract| contract.scope.covers_raw(path));
    let (entry, mut note) = if covered {
        (Vec::new(), None)
    } else {
        named(SCOPE, path)
    };
    let Some(first) = forbidden.first() else {
        return (Some(SCOPE.to_owned()), entry, note);
    };
    let at = list
        .iter()
        .position(|one| one == *first)
        .unwrap_or_default();
    if covered || !entry.is_empty() {
        note = Some("removing an entry from `forbid` permits everything that the entry covers");
    }
    let mut widening: Vec<Widening> = forbidden
        .iter()
        .map(|entry| Widening::remove(FORBID, entry.as_str()))
        .collect();
    if !covered && entry.is_empty() {
        widening.clear();
    }
    widening.extend(entry);
    (Some(format!("{FORBID}/{at}")), widening, note)
}

/// The narrowest entry of the list at `pointer` that covers `path`.
fn named(pointer: &str, path: &RawPath) -> (Vec<Widening>, Option<&'static str>) {
    let Ok(path) = RepoPath::try_from(path) else {
        return (Vec::new(), None);
    };
    if protect::control_directory(&path).is_some() {
        return (Vec::new(), None);
    }
    let spelled = |text: &str| {
        let entry = scope::parse_entry(text);
        entry.is_ok_and(|entry| entry.as_str() == text)
    };
    if spelled(path.as_str()) {
        return (vec![Widening::add(pointer, path.as_str())], None);
    }
    // A name with a wildcard cannot be an entry; its directory can.
    let mut above = path.as_str();
    while let Some((directory, _)) = above.rsplit_once('/') {
        if spelled(directory) {
            let note = "no entry can name the path itself, so this is its nearest directory";
            return (vec![Widening::add(pointer, directory)], Some(note));
        }
        above = directory;
    }
    (
        Vec::new(),
        Some("no entry of a contract can name this path"),
    )
}
