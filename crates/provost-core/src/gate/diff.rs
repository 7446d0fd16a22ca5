//! Judges a change against the contract.
//!
//! # Invariants
//!
//! - A verdict that allows contains no change outside the scope, at either end of a move.
//! - All violations are reported, each with all its reasons; no rule clears an earlier one.
//! - A path that is not UTF-8 is inside no scope.
//! - No contract can permit a change of a control file, or a link out of the repository.

mod symlink;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::change::{Change, EXACT, Finding, FindingKind, Movement, Node, Origin};
use crate::code::Code;
use crate::file_system_names;
use crate::object::Mode;
use crate::path::{RawPath, RepoPath};
use crate::protect::{self, Extra, Protection};
use crate::scope::Scope;
use crate::verdict::Verdict;

pub use symlink::leaves_repository;

/// What a contract permits beyond ordinary files in its scope.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permit {
    /// Files that decide what "passing" means.
    pub oracle: Scope,
    /// Files that instruct or configure an agent.
    pub governing: Scope,
    /// Content that is not text.
    pub binary: Scope,
    /// Symbolic links.
    pub symlink: Scope,
}

/// The rules that a change is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The paths that may be written.
    pub scope: &'a Scope,
    /// The paths that may not, although the scope covers them.
    pub forbid: &'a Scope,
    /// What is permitted inside the scope.
    pub permit: &'a Permit,
    /// What the repository protects beyond the built-in list.
    pub extra: &'a Extra,
}

/// The facts that are judged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The differences from the base; the same path may occur more than once.
    pub changes: &'a [Change],
    /// What a tree cannot represent.
    pub findings: &'a [Finding],
    /// Further violations, such as a git directory that was tampered with.
    pub signs: &'a [Sign],
}

/// A violation that is not a difference between trees.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sign {
    pub path: RawPath,
    pub reason: Reason,
    pub problem: String,
}

/// Why a change is refused, in the words of `details.reasons`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Content that is not text.
    BinaryChange,
    /// Two names that are equal up to case or Unicode normalisation.
    CaseCollision,
    /// Content copied from outside the scope.
    CopySourceOutOfScope,
    /// A change that the index hides from git (`assume-unchanged` or `skip-worktree`).
    HiddenChange,
    /// A commit in between touches a path that the contract does not cover.
    HistoryOutOfScope,
    /// The work does not descend from the base.
    HistoryRewritten,
    /// A repository inside the repository.
    NestedRepository,
    /// A path the contract does not cover.
    OutOfScope,
    /// A protected file that the contract does not permit.
    ProtectedPath,
    /// A ref other than the branch of the work.
    RefsChanged,
    /// A control file of the git directory.
    RepoTamper,
    /// A secret that is not in the base.
    Secret,
    /// A fifo, socket, device or set-id file.
    SpecialFile,
    SubmoduleChange,
    /// A symbolic link.
    SymlinkChange,
    /// A symbolic link that leads out of the repository or the scope.
    SymlinkEscape,
    /// Something that could not be read, and so not be judged.
    Unverifiable,
}

/// The minimum similarity of a new file to another one to count as its copy, in percent.
///
/// The source of a copy is not touched, so only its content needs protection. Below this threshold,
/// an edited copy looks the same as two files that follow one pattern.
const COPY: u8 = 90;

/// Judges `facts` by `rules`. An empty change passes; whether that suffices is decided elsewhere.
pub fn judge(facts: &Facts<'_>, rules: &Rules<'_>) -> Verdict {
    let mut rows = Rows::new();
    for change in facts.changes {
        rules.judge_change(change, &mut rows);
    }
    for finding in facts.findings {
        rules.judge_finding(finding, &mut rows);
    }
    for sign in facts.signs {
        add(&mut rows, &sign.path, sign.reason, sign.problem.clone());
    }
    let row = |((path, reason), problem): ((RawPath, Reason), String)| Sign {
        path,
        reason,
        problem,
    };
    let rows: Vec<Sign> = rows.into_iter().map(row).collect();
    let changed: BTreeSet<String> = facts
        .changes
        .iter()
        .map(|change| change.path.to_string())
        .collect();
    let secret = rows.iter().find(|row| row.reason == Reason::Secret);
    // A secret, which must not be disclosed, takes precedence over a path outside the scope.
    let code = secret.map_or(Code::DiffRefused, |_| Code::SecretInPatch);
    let Some(first) = secret.or(rows.first()) else {
        let words = match changed.len() {
            0 => "nothing changed".to_owned(),
            1 => "1 changed file, in scope".to_owned(),
            count => format!("{count} changed files, all in scope"),
        };
        return Verdict::allow(words).with(json!({
            "changed_files": changed, "reasons": [], "violations": [], "findings": [],
        }));
    };
    let violations: BTreeSet<String> = rows.iter().map(|row| row.path.to_string()).collect();
    let reasons: BTreeSet<Reason> = rows.iter().map(|row| row.reason).collect();
    let words = match violations.len() {
        1 => format!("`{}` {}", first.path, first.problem),
        count => format!(
            "{count} paths go beyond the contract; `{}` {}",
            first.path, first.problem
        ),
    };
    Verdict::deny(code, words).with(json!({
        "changed_files": changed,
        "reasons": reasons,
        "violations": violations,
        "findings": rows,
    }))
}

/// One problem for each path and reason: the first that was found.
type Rows = BTreeMap<(RawPath, Reason), String>;

fn add(rows: &mut Rows, path: &RawPath, reason: Reason, problem: impl Into<String>) {
    rows.entry((path.clone(), reason))
        .or_insert_with(|| problem.into());
}

impl Rules<'_> {
    pub fn covers(&self, path: &RawPath) -> bool {
        self.scope.covers_raw(path) && !self.forbid.covers_alias(path)
    }

    fn judge_change(&self, change: &Change, rows: &mut Rows) {
        let path = &change.path;
        self.judge_scope(path, rows);
        self.judge_protection(path, rows);
        // A name from the base is not the agent's.
        let name = change.before.is_none().then(|| path.to_string());
        if let Some(letter) = name.as_deref().and_then(file_system_names::invisible) {
            let code = u32::from(letter);
            let problem = format!("has an invisible letter in its name (U+{code:04X})");
            add(rows, path, Reason::Unverifiable, problem);
        }
        if let Some(origin) = &change.origin {
            self.judge_origin(path, origin, rows);
        }
        if change.binary && !self.permit.binary.covers_raw(path) {
            let problem = "holds content that is not text, and the contract permits none there";
            add(rows, path, Reason::BinaryChange, problem);
        }
        if is(change, Mode::Gitlink) {
            add(
                rows,
                path,
                Reason::SubmoduleChange,
                "is a submodule that changed",
            );
        }
        if is(change, Mode::Symlink) {
            self.judge_symlink(change, rows);
        }
    }

    fn judge_origin(&self, path: &RawPath, origin: &Origin, rows: &mut Rows) {
        if self.covers(&origin.path) {
            return;
        }
        let (reason, how) = match origin.how {
            Movement::Rename => (Reason::OutOfScope, "moved"),
            Movement::Copy if origin.likeness < COPY => return,
            Movement::Copy => (Reason::CopySourceOutOfScope, "copied"),
        };
        let likeness = match origin.likeness {
            EXACT => String::new(),
            percent => format!(" ({percent} % the same)"),
        };
        let problem = format!("is outside the scope, and was {how} to `{path}`{likeness}");
        add(rows, &origin.path, reason, problem);
    }

    fn judge_scope(&self, path: &RawPath, rows: &mut Rows) {
        if self.forbid.covers_alias(path) {
            let problem = "is forbidden by the contract";
            add(rows, path, Reason::OutOfScope, problem);
        } else if !self.scope.covers_raw(path) {
            add(rows, path, Reason::OutOfScope, "is outside the scope");
        }
    }

    fn judge_protection(&self, path: &RawPath, rows: &mut Rows) {
        let Ok(text) = RepoPath::try_from(path) else {
            let problem = "has a name that is not plain text";
            return add(rows, path, Reason::Unverifiable, problem);
        };
        if protect::names_submodules(&text) {
            let problem = "says where submodules come from";
            add(rows, path, Reason::SubmoduleChange, problem);
        }
        let problem = match protect::classify(&text, self.extra) {
            Some(Protection::Control) => "steers git, Provost or secrets, and no contract opens it",
            Some(Protection::Oracle) if !self.permit.oracle.covers(&text) => {
                "decides what passing means, and the contract does not permit it (`permit.oracle`)"
            }
            Some(Protection::Governing) if !self.permit.governing.covers(&text) => {
                "instructs agents, and the contract does not permit it (`permit.governing`)"
            }
            Some(Protection::Oracle | Protection::Governing) | None => return,
        };
        add(rows, path, Reason::ProtectedPath, problem);
    }

    fn judge_symlink(&self, change: &Change, rows: &mut Rows) {
        let path = &change.path;
        let permitted = self.permit.symlink.covers_raw(path);
        if !permitted {
            let problem = "is or was a symbolic link, and the contract permits none there";
            add(rows, path, Reason::SymlinkChange, problem);
        }
        let now = change
            .after
            .as_ref()
            .is_some_and(|side| side.mode == Mode::Symlink);
        if !now {
            return;
        }
        let Some(target) = &change.link else {
            let problem = "is a symbolic link whose target is not known";
            return add(rows, path, Reason::Unverifiable, problem);
        };
        match symlink::resolve(path, target) {
            None => {
                let problem = format!("leads out of the repository, to `{target}`");
                add(rows, path, Reason::SymlinkEscape, problem);
            }
            Some(place) if !permitted && !self.covers(&place) => {
                let problem = format!("leads out of the scope, to `{target}`");
                add(rows, path, Reason::SymlinkEscape, problem);
            }
            Some(_) => {}
        }
    }

    fn judge_finding(&self, finding: &Finding, rows: &mut Rows) {
        use FindingKind as Kind;
        let path = &finding.path;
        self.judge_scope(path, rows);
        let (reason, problem) = match finding.kind {
            Kind::NestedRepository => (Reason::NestedRepository, "holds a repository of its own"),
            Kind::SpecialFile => (Reason::SpecialFile, "is a fifo, a socket or a device"),
            Kind::SetId => (Reason::SpecialFile, "has a set-uid or set-gid bit"),
            Kind::CaseTwin => (
                Reason::CaseCollision,
                "is another name where case and the form of letters do not count",
            ),
            Kind::HardLink => (Reason::HiddenChange, "is one file with another path"),
            Kind::Unreadable => (Reason::Unverifiable, "cannot be read"),
            Kind::BadName => (Reason::Unverifiable, "has a name that is not plain text"),
            Kind::TooLarge => (Reason::Unverifiable, "is larger than we read"),
            Kind::TooDeep => (Reason::Unverifiable, "lies deeper than we read"),
            Kind::TooMany => (Reason::Unverifiable, "has more entries than we read"),
            Kind::Collision => (Reason::Unverifiable, "carries a SHA-1 collision attack"),
            Kind::Secret => (Reason::Secret, "brings in a secret"),
        };
        if finding.note.is_empty() {
            add(rows, path, reason, problem);
        } else {
            add(rows, path, reason, format!("{problem}: {}", finding.note));
        }
    }
}

/// Whether `change` has an entry of this kind before or after.
fn is(change: &Change, mode: Mode) -> bool {
    let has = |side: &Option<Node>| side.as_ref().is_some_and(|side| side.mode == mode);
    has(&change.before) || has(&change.after)
}

#[cfg(test)]
mod tests;
