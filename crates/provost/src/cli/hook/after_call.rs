//! Compares the checkout before and after a tool call that may write more than it names.
//!
//! # Invariants
//!
//! - What such a call changed and no change declares denies the next calls of its session, until it
//!   is declared or undone. Nothing is ever reverted here.
//! - Git decides what is seen: what it ignores is not.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use provost_core::checkout::CheckoutState;
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::{RawPath, RepoPath};
use provost_engine::ports::Checkout as _;
use provost_fs::atomic::{self, Durability};
use provost_host::shared_checkout::SharedCheckout;
use serde_json::json;

use super::agent_hooks::{HookRules, denied};
use crate::answer::Failure;

/// How many paths a refusal names.
const NAMED: usize = 5;

/// The state of the checkout before the last open call of one session.
pub(super) struct LastCall {
    file: PathBuf,
    before: Option<CheckoutState>,
}

impl LastCall {
    pub(super) fn of(rules: &HookRules, session: &str) -> Result<Self, Failure> {
        let name = &sha256(session.as_bytes())[..16];
        let file = rules.place.root.join("hook-calls").join(name);
        let before = match fs::read(&file) {
            Ok(bytes) => Some(json::parse_as(&bytes).map_err(|error| broken(&error))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(broken(&error)),
        };
        Ok(Self { file, before })
    }

    /// What the call changed, and no change of any agent and no bound contract covers.
    pub(super) fn undeclared(&self, rules: &HookRules) -> Result<BTreeSet<RawPath>, Failure> {
        let Some(before) = &self.before else {
            return Ok(BTreeSet::new());
        };
        let checkout = SharedCheckout::find(&rules.top).map_err(|error| broken(&error))?;
        let now = checkout.workspace()?;
        let moved = checkout.moved(before.tree.as_deref(), now.tree.as_deref())?;
        let mut paths = before.differences(&now, &moved);
        paths.retain(|path| {
            let path = std::str::from_utf8(path.as_bytes()).ok();
            let path = path.and_then(|path| RepoPath::try_from(path).ok());
            path.is_none_or(|path| rules.permits(&[path]).is_err())
        });
        Ok(paths)
    }

    /// Keeps the state of the checkout for after the call.
    pub(super) fn begin(&self, rules: &HookRules) -> Result<(), Failure> {
        let checkout = SharedCheckout::find(&rules.top).map_err(|error| broken(&error))?;
        let text = json!(checkout.workspace()?).to_string();
        rules.place.prepare_changes()?;
        let parent = self.file.parent().unwrap_or(&rules.place.root);
        fs::create_dir_all(parent)
            // Without it the next call is not compared, and no evidence is lost.
            .and_then(|()| atomic::replace(&self.file, text.as_bytes(), 0o600, Durability::Cache))
            .map_err(|error| broken(&error))
    }

    /// Forgets the call: nothing of it is undeclared.
    pub(super) fn settle(&self) -> Result<(), Failure> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(broken(&error)),
            _ => Ok(()),
        }
    }
}

fn broken(error: &dyn std::error::Error) -> Failure {
    denied(format!("the last call cannot be judged: {error}"))
}

/// The refusal of every call until `paths` are declared or undone.
pub(super) fn refusal(paths: &BTreeSet<RawPath>) -> Failure {
    let names: Vec<String> = paths
        .iter()
        .take(NAMED)
        .map(|path| format!("`{path}`"))
        .collect();
    let more = if paths.len() > names.len() {
        ", …"
    } else {
        ""
    };
    let reason = format!(
        "a call changed {}{more}, which no declared change covers; nothing was reverted",
        names.join(", ")
    );
    let mut files = String::new();
    for path in paths.iter().take(NAMED) {
        files += &format!(" --file '{path}'");
    }
    Failure::new(Code::HookDenied, reason).hint(format!(
        "declare it (provost change --agent NAME analyze, then provost change --agent NAME start \
         'WHY'{files} --continue-own-wip), or undo it (git restore -- PATH, or rm PATH); until then other calls that \
         write or run programs are denied"
    ))
}
