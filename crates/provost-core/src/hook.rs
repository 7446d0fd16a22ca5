//! Decides which contract a commit or a push is held to.
//!
//! # Invariants
//!
//! - What is bound is judged; a binding that cannot be used refuses, and never counts as none.
//! - What is not bound passes only where nobody asked for more.

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::object::{Oid, sha256};
use crate::verdict::Verdict;

/// A checkout or a branch that is held to a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// What is bound.
    pub to: Bound,
    /// The file of the contract.
    pub contract: String,
    /// SHA-256 of its bytes when it was bound.
    pub sha256: String,
    /// The commit that changes are measured from.
    pub base: Oid,
}

/// What is bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Everything that is committed in this checkout.
    Checkout(String),
    /// Everything that is committed on or pushed from this branch, as a full ref name.
    Branch(String),
}

/// All bindings of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bindings {
    /// Each of another thing.
    pub bindings: Vec<Binding>,
}

/// What becomes of something that has no binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbound {
    /// It passes.
    Passes,
    /// It is refused.
    Refused,
}

/// What is to be done about a commit or a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The diff gate decides, by each of these.
    Judge(Vec<&'a Binding>),
    /// Nobody bound it.
    Pass,
    /// Nobody bound it, and nothing unbound may pass.
    Refuse,
}

impl Bindings {
    /// Binds something, or binds it anew.
    pub fn bind(&mut self, binding: Binding) {
        self.unbind(&binding.to);
        self.bindings.push(binding);
    }

    /// Takes a binding away; false if there was none.
    pub fn unbind(&mut self, to: &Bound) -> bool {
        let before = self.bindings.len();
        self.bindings.retain(|binding| binding.to != *to);
        self.bindings.len() < before
    }

    /// What is to be done about a commit in `checkout` on `branch`, or a push of that branch.
    ///
    /// A branch that is checked out in a bound checkout is held to both.
    pub fn decide(
        &self,
        checkout: Option<&str>,
        branch: Option<&str>,
        unbound: Unbound,
    ) -> Decision<'_> {
        let is_meant = |binding: &&Binding| match &binding.to {
            Bound::Checkout(path) => Some(path.as_str()) == checkout,
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
    /// Whether `bytes` are the contract that was bound; nothing if there are none.
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

/// One line that git hands to a hook before a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The ref on this side; empty for a bare commit.
    pub local: String,
    /// The commit, or nothing for a deletion.
    pub commit: Option<Oid>,
}

/// Reads what git hands to a hook before a push; a line that cannot be read is an error.
pub fn pushed(text: &str) -> Result<Vec<Pushed>, String> {
    let mut list = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let [local, commit, _, _] = words.as_slice() else {
            return Err(format!("`{}` is no line of a push", line.escape_debug()));
        };
        let gone = commit.bytes().all(|byte| byte == b'0');
        let commit = match Oid::try_from(*commit) {
            _ if gone => None,
            Ok(oid) => Some(oid),
            Err(_) => return Err(format!("`{}` is no commit", commit.escape_debug())),
        };
        list.push(Pushed {
            local: (*local).to_owned(),
            commit,
        });
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(to: Bound) -> Binding {
        Binding {
            to,
            contract: "/c.json".to_owned(),
            sha256: sha256(b"contract"),
            base: "a".repeat(40).as_str().try_into().unwrap(),
        }
    }

    #[test]
    fn what_is_bound_is_judged_and_what_is_not_passes_only_where_nobody_asked_for_more() {
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
            (Some("/repo"), main, Unbound::Passes, Some(1)),
            (Some("/repo"), work, Unbound::Passes, Some(2)),
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
        assert!(all.unbind(&branch()) && !all.unbind(&branch()));
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
    }
}
