//! Decides which contract applies to a commit, a push or a ref update.
//!
//! # Invariants
//!
//! - A bound checkout or branch is always judged; a binding that cannot be used refuses, and never
//!   counts as none.
//! - A push is judged by the commits in it, not by the name of the ref: a commit that descends from
//!   the base of a contract is held to that contract.
//! - Something unbound passes unless the user asked to refuse it.

mod bound_contract;

use std::fmt;

use provost_core::code::Code;
use provost_core::object::{Oid, sha256};
use provost_core::verdict::Verdict;
use serde::{Deserialize, Serialize};

pub use bound_contract::{BoundContract, HookStop};

use crate::query::short_branch;

/// A checkout or a branch that is bound to a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    pub to: Bound,
    /// The path of the contract.
    pub contract: String,
    /// SHA-256 of its bytes when it was bound.
    pub sha256: String,
    /// The commit that changes are measured from.
    pub base: Oid,
    /// The git directory of a bound checkout, which stays when the checkout is moved. A file of
    /// an earlier build has none; after it was read, `None` means that the checkout is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_dir: Option<String>,
    /// The branch that a bound checkout was on when it was bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_branch: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Every commit in this checkout, every update of the branch it is on, and every push from it.
    ///
    /// The path is only shown; [`Binding::git_dir`] identifies the checkout.
    Checkout(String),
    /// Every update of this branch and every push from it; a full ref name.
    Branch(String),
}

impl fmt::Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkout(path) => write!(out, "checkout {path}"),
            Self::Branch(name) => write!(out, "branch {}", short_branch(name)),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bindings {
    /// At most one for each checkout or branch.
    pub bindings: Vec<Binding>,
}

/// What happens to something that has no binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbound {
    Passes,
    Refused,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The diff gate decides, by each of these bindings.
    Judge(Vec<&'a Binding>),
    /// There is no binding.
    Pass,
    /// There is no binding, and nothing unbound may pass.
    Refuse,
}

impl Bindings {
    /// Adds a binding, or replaces the one of the same checkout or branch.
    pub fn bind(&mut self, binding: Binding) {
        self.unbind(&binding.to, binding.git_dir.as_deref());
        self.bindings.push(binding);
    }

    /// Removes a binding, by its name or by its git directory; false if there was none.
    pub fn unbind(&mut self, to: &Bound, git_dir: Option<&str>) -> bool {
        let before = self.bindings.len();
        self.bindings
            .retain(|binding| binding.to != *to && !binding.is_of(git_dir));
        self.bindings.len() < before
    }

    /// Refuses if a bound checkout cannot be found: what it held could be anywhere.
    pub fn all_found(&self) -> Result<(), Verdict> {
        for binding in &self.bindings {
            if let (Bound::Checkout(path), None) = (&binding.to, &binding.git_dir) {
                let reason = format!("the bound checkout `{path}` is gone from this repository");
                let hint = format!(
                    "provost hook status lists the bindings\n      \
                     remove this one: provost hook unbind --checkout '{path}'\n      \
                     or bind the checkout again where it is now: provost hook bind {}",
                    binding.contract
                );
                let details = serde_json::json!({ "hint": hint });
                return Err(Verdict::deny(Code::HookBroken, reason).with(details));
            }
        }
        Ok(())
    }

    /// Decides about a commit in the checkout of `git_dir` on `branch`, or a push of that branch.
    ///
    /// A branch that is checked out in a bound checkout is held to both bindings.
    pub fn decide(
        &self,
        git_dir: Option<&str>,
        branch: Option<&str>,
        unbound: Unbound,
    ) -> Decision<'_> {
        let is_meant = |binding: &&Binding| match &binding.to {
            Bound::Checkout(_) => binding.is_of(git_dir),
            Bound::Branch(name) => Some(name.as_str()) == branch,
        };
        let meant: Vec<&Binding> = self.bindings.iter().filter(is_meant).collect();
        match (meant.is_empty(), unbound) {
            (false, _) => Decision::Judge(meant),
            (true, Unbound::Passes) => Decision::Pass,
            (true, Unbound::Refused) => Decision::Refuse,
        }
    }
}

impl Binding {
    /// Whether this binds the checkout with the git directory `git_dir`.
    pub fn is_of(&self, git_dir: Option<&str>) -> bool {
        let is_checkout = matches!(self.to, Bound::Checkout(_));
        is_checkout && git_dir.is_some() && self.git_dir.as_deref() == git_dir
    }

    /// Whether `bytes` are the contract that was bound; `None` if the file cannot be read.
    pub fn check(&self, bytes: Option<&[u8]>) -> Result<(), Verdict> {
        let problem = match bytes {
            None => "is missing",
            Some(bytes) if sha256(bytes) != self.sha256 => "was changed since it was bound",
            Some(_) => return Ok(()),
        };
        let reason = format!("the bound contract `{}` {problem}", self.contract);
        Err(Verdict::deny(Code::HookBroken, reason))
    }
}

/// The relation of a commit to the base of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// It is the base, or the base is one of its ancestors.
    Holds,
    /// It is an ancestor of the base, so it contains no change that the contract is about.
    Older,
    /// Neither is an ancestor of the other.
    Apart,
}

/// How an update relates to a bound checkout or branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// It updates the bound branch, or the branch of the bound checkout.
    Named,
    /// It leaves the bound checkout under another name.
    Leaves,
    /// It is on another branch, without a commit that was made on the bound one.
    Elsewhere,
}

/// How a binding applies to an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// The diff gate decides, from the base of its contract.
    Judge,
    /// It contains nothing that the base does not contain.
    Covered,
    /// It does not descend from the base of its contract, so the change cannot be measured.
    Strayed,
    /// The binding does not apply.
    None,
}

impl Concern {
    /// How a binding applies to a commit with this relation to its base.
    pub fn of(tie: Tie, descent: Descent) -> Self {
        match (descent, tie) {
            (Descent::Older, _) => Self::Covered,
            (Descent::Holds, Tie::Named | Tie::Leaves) => Self::Judge,
            (Descent::Apart, Tie::Named) => Self::Strayed,
            (Descent::Holds, Tie::Elsewhere) | (Descent::Apart, Tie::Leaves | Tie::Elsewhere) => {
                Self::None
            }
        }
    }
}

/// One line of the input of git's `pre-push` hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The local ref or revision, as it was typed.
    pub local: String,
    /// The remote ref.
    pub remote: String,
    /// `None` for a deletion.
    pub commit: Option<Oid>,
}

/// One line of the input of git's `reference-transaction` hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub name: String,
    /// The old target as git reports it; `None` if git does not check it.
    pub from: Option<Oid>,
    pub to: Target,
}

/// The new target of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Object(Oid),
    /// Another ref (a symbolic ref).
    Alias(String),
    /// The ref is deleted.
    Gone,
}

/// Reads the input of git's `reference-transaction` hook; a line that cannot be parsed is an error.
pub fn moved(text: &str) -> Result<Vec<Moved>, String> {
    let mut list = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let [old, new, name] = words.as_slice() else {
            return Err(format!("`{}` is no update of a ref", line.escape_debug()));
        };
        let to = match new.strip_prefix("ref:") {
            Some(other) => Target::Alias(other.to_owned()),
            None => object(new)?.map_or(Target::Gone, Target::Object),
        };
        list.push(Moved {
            name: (*name).to_owned(),
            from: object(old).ok().flatten(),
            to,
        });
    }
    Ok(list)
}

/// The object that `text` names; `None` for the null id.
fn object(text: &str) -> Result<Option<Oid>, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte == b'0') {
        return Ok(None);
    }
    let oid = Oid::try_from(text);
    oid.map(Some)
        .map_err(|_| format!("`{}` is no object", text.escape_debug()))
}

/// Reads the input of git's `pre-push` hook; a line that cannot be parsed is an error.
pub fn pushed(text: &str) -> Result<Vec<Pushed>, String> {
    let mut list = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        // The local name may contain blanks, as in `HEAD@{1 day ago}`; the other fields never do.
        let words: Vec<&str> = line.rsplitn(4, ' ').collect();
        let [_, remote, commit, local] = words.as_slice() else {
            return Err(format!("`{}` is no line of a push", line.escape_debug()));
        };
        let commit = object(commit)?;
        list.push(Pushed {
            local: (*local).to_owned(),
            remote: (*remote).to_owned(),
            commit,
        });
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(to: Bound) -> Binding {
        let git_dir = match &to {
            Bound::Checkout(path) => Some(format!("{path}/.git")),
            Bound::Branch(_) => None,
        };
        Binding {
            to,
            git_dir,
            on_branch: None,
            contract: "/c.json".to_owned(),
            sha256: sha256(b"contract"),
            base: "a".repeat(40).as_str().try_into().unwrap(),
        }
    }

    #[test]
    fn what_is_bound_is_judged_and_what_is_not_passes_unless_the_user_refuses_it() {
        let mut all = Bindings::default();
        let branch = || Bound::Branch("refs/heads/work".to_owned());
        all.bind(binding(Bound::Checkout("/repo".to_owned())));
        all.bind(binding(branch()));
        all.bind(binding(branch()));
        assert_eq!(all.bindings.len(), 2, "binding anew replaces");
        let (main, work) = (Some("refs/heads/main"), Some("refs/heads/work"));
        let count = |checkout, branch, unbound| match all.decide(checkout, branch, unbound) {
            Decision::Judge(list) => Some(list.len()),
            Decision::Pass => Some(0),
            Decision::Refuse => None,
        };
        let cases = [
            (Some("/repo/.git"), main, Unbound::Passes, Some(1)),
            (Some("/repo/.git"), work, Unbound::Passes, Some(2)),
            (Some("/repo"), main, Unbound::Passes, Some(0)),
            (Some("/other"), work, Unbound::Refused, Some(1)),
            (Some("/other"), main, Unbound::Passes, Some(0)),
            (Some("/other"), main, Unbound::Refused, None),
            (None, None, Unbound::Refused, None),
        ];
        for (checkout, branch, unbound, want) in cases {
            assert_eq!(
                count(checkout, branch, unbound),
                want,
                "{checkout:?} {branch:?}"
            );
        }
        assert!(all.unbind(&branch(), None) && !all.unbind(&branch(), None));
    }

    #[test]
    fn a_checkout_is_known_by_its_git_directory_and_refuses_once_that_is_gone() {
        let mut all = Bindings::default();
        all.bind(binding(Bound::Checkout("/repo".to_owned())));
        assert_eq!(all.all_found(), Ok(()));
        let mut moved = binding(Bound::Checkout("/moved".to_owned()));
        moved.git_dir = Some("/repo/.git".to_owned());
        all.bind(moved);
        assert_eq!(all.bindings.len(), 1, "it is the same checkout");
        all.bindings[0].git_dir = None;
        let gone = all.all_found().unwrap_err();
        assert_eq!(gone.code, Code::HookBroken);
        assert!(all.unbind(&Bound::Checkout("/moved".to_owned()), None));
        assert_eq!(all.all_found(), Ok(()));
    }

    #[test]
    fn a_binding_of_an_earlier_build_is_read() {
        let text = format!(
            r#"{{"bindings":[{{"to":{{"checkout":"/r"}},"contract":"/c","sha256":"","base":"{}"}}]}}"#,
            "a".repeat(40)
        );
        let all: Bindings = provost_core::json::parse_as(text.as_bytes()).unwrap();
        assert_eq!(all.bindings[0].git_dir, None);
    }

    #[test]
    fn a_contract_that_is_gone_or_changed_is_refused() {
        let bound = binding(Bound::Checkout("/repo".to_owned()));
        assert_eq!(bound.check(Some(b"contract")), Ok(()));
        for bytes in [None, Some(&b"another"[..])] {
            assert_eq!(bound.check(bytes).unwrap_err().code, Code::HookBroken);
        }
    }

    #[test]
    fn a_push_is_read_to_the_letter() {
        let oid = "b".repeat(40);
        let zero = "0".repeat(40);
        let text = format!("refs/heads/a {oid} refs/heads/a {zero}\n(delete) {zero} r {oid}\n");
        let read = pushed(&text).unwrap();
        assert_eq!(read[0].commit.as_ref().unwrap().as_str(), oid);
        assert_eq!(read[1].commit, None);
        assert_eq!(pushed(""), Ok(Vec::new()));
        for bad in ["x", "a b c d", "a b c d e"] {
            assert!(pushed(bad).is_err(), "{bad}");
        }
        let typed = format!("HEAD@{{1 day ago}} {oid} refs/heads/a {zero}");
        assert_eq!(pushed(&typed).unwrap()[0].local, "HEAD@{1 day ago}");
    }

    #[test]
    fn a_move_of_refs_is_read_to_the_letter() {
        let oid = "b".repeat(40);
        let zero = "0".repeat(40);
        let text = format!(
            "{zero} {oid} refs/heads/a\n{oid} {zero} refs/heads/b\n{zero} ref:refs/heads/a HEAD\n"
        );
        let read: Vec<Target> = moved(&text)
            .unwrap()
            .into_iter()
            .map(|one| one.to)
            .collect();
        let want = [
            Target::Object(oid.as_str().try_into().unwrap()),
            Target::Gone,
            Target::Alias("refs/heads/a".to_owned()),
        ];
        assert_eq!(read, want);
        for bad in ["x", "a b c", "a b", &format!("{zero} {oid} a b")] {
            assert!(moved(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_holds_the_base_is_judged_unless_it_is_the_work_of_another_branch() {
        use Concern::{Covered, Judge, None, Strayed};
        use Descent::{Apart, Holds, Older};
        use Tie::{Elsewhere, Leaves, Named};
        let cases = [
            (Named, [Judge, Covered, Strayed]),
            (Leaves, [Judge, Covered, None]),
            (Elsewhere, [None, Covered, None]),
        ];
        for (tie, want) in cases {
            let found = [Holds, Older, Apart].map(|descent| Concern::of(tie, descent));
            assert_eq!(found, want, "{tie:?}");
        }
    }
}
