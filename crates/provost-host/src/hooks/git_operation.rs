//! Describes how to proceed after a hook of git refused.

use std::fs;
use std::path::Path;

use provost_core::verdict::Verdict;
use provost_engine::binding::{Binding, Bound};
use provost_engine::query::short_branch;
use serde_json::{Value, json};

use super::GitHook;

/// The operation of git that called the hook.
#[derive(Debug)]
pub struct GitOperation {
    pub(super) hook: GitHook,
    /// The command that aborts the operation that git leaves half-way after a refusal.
    abort: Option<&'static str>,
    /// Whether git may have changed the files of the checkout before it asked.
    pub(super) changed_files: bool,
}

impl GitOperation {
    /// The operation in the git directory `git_dir` that calls `hook`.
    pub fn of(hook: GitHook, git_dir: &Path) -> Self {
        let action = std::env::var("GIT_REFLOG_ACTION").unwrap_or_default();
        let action = action.split(' ').next().unwrap_or_default();
        let there = |name: &str| git_dir.join(name).exists();
        let abort = match hook {
            GitHook::PrePush => None,
            GitHook::PreMergeCommit => Some("git merge --abort"),
            GitHook::PreApplypatch => Some("git am --abort"),
            _ if there("rebase-apply/applying") => Some("git am --abort"),
            _ if there("rebase-merge") || there("rebase-apply") => Some("git rebase --abort"),
            _ if there("MERGE_HEAD") => Some("git merge --abort"),
            _ if there("CHERRY_PICK_HEAD") => Some("git cherry-pick --abort"),
            _ if there("REVERT_HEAD") => Some("git revert --abort"),
            // A fast-forward has changed the files before it moves the branch.
            GitHook::ReferenceTransaction if matches!(action, "merge" | "pull") => {
                Some("git reset --merge")
            }
            GitHook::PreCommit | GitHook::ReferenceTransaction => None,
        };
        Self {
            hook,
            abort,
            changed_files: false,
        }
    }

    /// Whether a commit is about to be made outside of any larger operation.
    pub(super) fn is_plain(&self) -> bool {
        self.hook == GitHook::PreCommit && self.abort.is_none()
    }

    /// The `verdict` of the diff gate about `what`, with the contract and the next steps.
    pub(super) fn refused(&self, verdict: Verdict, binding: &Binding, what: &str) -> Verdict {
        let before = match (what, self.hook) {
            ("", _) => String::new(),
            (what, GitHook::PrePush) => format!("push of {what}: "),
            (what, _) => format!("{what}: "),
        };
        let reason = format!("{before}{} ({})", verdict.reason, judge(binding));
        let mut steps = Vec::new();
        if !verdict.reason.contains("no contract opens it") {
            let again = bind(binding);
            steps.push(format!("widen the contract and bind it again: {again}"));
        }
        if self.hook != GitHook::PreCommit {
            let anew = rebind(binding);
            steps.push(format!(
                "were commits of others pulled in? bind the contract to their commit: {anew}"
            ));
        }
        self.with(Verdict { reason, ..verdict }, steps)
    }

    /// The `verdict` about a branch that does not descend from its base, with the next steps.
    pub(super) fn strayed(&self, verdict: Verdict, binding: &Binding) -> Verdict {
        let reason = format!("{} ({})", verdict.reason, judge(binding));
        let anew = rebind(binding);
        let step = format!("bind the contract to the commit that the work is built on: {anew}");
        self.with(Verdict { reason, ..verdict }, vec![step])
    }

    /// The `verdict` about a bound branch that would be removed, with the next steps.
    pub(super) fn removed(&self, verdict: Verdict, binding: &Binding) -> Verdict {
        let reason = format!("{} ({})", verdict.reason, judge(binding));
        let (branch, words) = match &binding.to {
            Bound::Checkout(_) => ("BRANCH", String::new()),
            Bound::Branch(name) => (
                short_branch(name),
                format!(" --branch {}", short_branch(name)),
            ),
        };
        let steps = vec![
            format!("move it, which is judged: git branch -f {branch} REV"),
            format!("or remove the binding first: provost hook unbind{words}"),
            "was another branch removed by the rename? git fsck --no-reflogs lists its commit, \
             git branch NAME COMMIT restores it"
                .to_owned(),
        ];
        self.with(Verdict { reason, ..verdict }, steps)
    }

    fn with(&self, verdict: Verdict, mut steps: Vec<String>) -> Verdict {
        if let Some(abort) = self.abort {
            steps.insert(0, format!("end what git left half-way: {abort}"));
        } else if self.changed_files {
            let back = "the branch did not move; `git reset --hard` and `git checkout -B` have \
                        changed the files already, this puts them back: git reset --merge (after a \
                        plain `git reset`: git reset)";
            steps.insert(0, back.to_owned());
        }
        steps.push(format!("provost explain {}", verdict.code));
        let mut details = match verdict.details.clone() {
            Some(Value::Object(fields)) => Value::Object(fields),
            _ => json!({}),
        };
        details["hint"] = steps.join("\n      ").into();
        verdict.with(details)
    }
}

/// The contract, and what it is bound to.
fn judge(binding: &Binding) -> String {
    let file = Path::new(&binding.contract).file_name();
    let file = file.map_or(binding.contract.clone().into(), |name| {
        name.to_string_lossy()
    });
    let base = binding.base.short();
    format!("{file}, bound to {} from {base}", binding.to)
}

/// The command that binds the contract again.
fn bind(binding: &Binding) -> String {
    let branch = match &binding.to {
        Bound::Checkout(_) => String::new(),
        Bound::Branch(name) => format!(" --branch {}", short_branch(name)),
    };
    format!("provost hook bind {}{branch}", binding.contract)
}

/// The command that binds the contract to another base.
fn rebind(binding: &Binding) -> String {
    format!("{} --base REV (such as origin/main)", bind(binding))
}

/// The arguments of the process `id`; none if they cannot be read.
pub fn command_line(id: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0);
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}
