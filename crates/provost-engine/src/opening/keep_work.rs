//! Decides how the captured work of a refused run is judged again, under a wider contract.

use provost_core::agent::provider::FoundLogins;
use provost_core::approval;
use provost_core::code::Code;
use provost_core::contract::document::{
    AcceptMode, AcceptanceTest, Document, Extension, Permissions,
};
use provost_core::contract::limits::Asked;
use provost_core::run::State;
use provost_core::run::fact::{EarlierVerdict, ExistingWork, Opened};
use provost_evidence::statement::LedgerHead;

use super::retry::of_document;
use super::{Origin, OwnLogins, RequestedAgent, RetryRequest, agent};
use crate::ports::PortError;

/// How the contract differs from the one that the work was refused under.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wider {
    /// Further paths that may be written.
    pub allow: Vec<String>,
    /// Further kinds of change.
    pub permit: Permissions,
    pub timeout_sec: Option<u64>,
    /// Limits that replace those of the contract.
    pub limits: Asked,
    /// Commands that replace all of those of the contract; none keeps them.
    pub accept: Vec<String>,
    pub accept_mode: Option<AcceptMode>,
    /// The reviewer, instead of the one that the run had.
    pub review: Option<RequestedAgent>,
}

#[derive(Debug, Clone)]
pub struct KeepWorkRequest {
    pub wider: Wider,
    /// The end of the sealed ledger of the refused run.
    pub sealed_head: LedgerHead,
    /// The logins that the user has for known programs.
    pub logins: FoundLogins,
    pub retry: RetryRequest,
}

/// The first record of a run that judges the work of `before` again: the same base, and no agent.
///
/// What weakens the judges needs approval, even if the user typed it; what widens the contract
/// needs one as in any other run.
pub fn keep_work(
    origin: &dyn Origin,
    before: &State,
    request: KeepWorkRequest,
) -> Result<Opened, PortError> {
    let run = &before.names.run_id;
    let captured = before.kept_work().map_err(|why| {
        let reason = format!("{run} {why}, so its work is not judged again");
        PortError::new(Code::KeepWorkRefused, reason)
            .hint(format!("provost retry {run} starts its agent again"))
    })?;
    let KeepWorkRequest { wider, logins, .. } = request;
    let document = widened(&before.opened.contract, &wider);
    let mut opened = of_document(origin, before, document, request.retry)?;
    if let Some(reviewer) = &wider.review {
        let own = OwnLogins {
            typed: &[],
            found: &logins,
        };
        let policy = origin.policy(&opened.base_tree)?;
        opened.review = Some(agent::reviewer(reviewer, &policy, own, &opened.contract)?);
    }
    // The same program with another model, login or tool is another reviewer.
    let identity = |opened: &Opened| {
        let review = opened.review.as_ref()?;
        let adapted = serde_json::to_string(&review.adapted).unwrap_or_default();
        Some([review.argv.clone(), vec![adapted]].concat())
    };
    let (first, other) = (identity(&before.opened), identity(&opened));
    let laxer = approval::laxer(
        (&before.opened.contract, first.as_deref()),
        (&opened.contract, other.as_deref()),
    );
    for one in laxer {
        if !opened.widenings.contains(&one) {
            opened.widenings.push(one);
        }
    }
    let earlier = before.opened.work.as_ref();
    let mut judged = earlier.map_or_else(Vec::new, |work| work.judged.clone());
    let refusal = before.finished.as_ref();
    judged.extend(refusal.map(|refusal| EarlierVerdict {
        run_id: run.clone(),
        sealed_head: request.sealed_head,
        code: refusal.code,
        reason: refusal.reason.clone(),
    }));
    opened.continues = None;
    opened.work = Some(ExistingWork {
        tree: captured.tree.clone(),
        revision: earlier.and_then(|work| work.revision.clone()),
        judged,
        findings: captured.findings.clone(),
        rounds: Vec::new(),
    });
    Ok(opened)
}

/// The contract `document` with what is `wider`.
fn widened(document: &Document, wider: &Wider) -> Document {
    let mut document = document.clone();
    let add = |list: &mut Vec<String>, entries: &[String]| {
        for entry in entries {
            if !list.contains(entry) {
                list.push(entry.clone());
            }
        }
    };
    add(&mut document.allowed_paths, &wider.allow);
    if let Some(seconds) = wider.timeout_sec {
        document.timeout_retry.timeout_sec = seconds;
    }
    if !wider.accept.is_empty() {
        let test = |(at, cmd): (usize, &String)| AcceptanceTest {
            name: format!("accept-{}", at + 1),
            cmd: cmd.clone(),
            must_pass: true,
        };
        document.acceptance_tests = wider.accept.iter().enumerate().map(test).collect();
    }
    let mut extension = document.x_provost.take().unwrap_or_default();
    if wider.permit != Permissions::default() {
        let permit = extension.permit.get_or_insert_default();
        add(&mut permit.oracle, &wider.permit.oracle);
        add(&mut permit.governing, &wider.permit.governing);
        add(&mut permit.binary, &wider.permit.binary);
        add(&mut permit.symlink, &wider.permit.symlink);
        permit.fewer_tests |= wider.permit.fewer_tests;
    }
    if !wider.limits.is_empty() {
        let limits = extension.limits.get_or_insert_default();
        let asked = wider.limits;
        *limits = Asked {
            no_progress_sec: asked.no_progress_sec.or(limits.no_progress_sec),
            memory_bytes: asked.memory_bytes.or(limits.memory_bytes),
            processes: asked.processes.or(limits.processes),
            disk_bytes: asked.disk_bytes.or(limits.disk_bytes),
            inodes: asked.inodes.or(limits.inodes),
            output_bytes: asked.output_bytes.or(limits.output_bytes),
        };
    }
    extension.accept_mode = wider.accept_mode.or(extension.accept_mode);
    document.x_provost = Some(extension).filter(|it| *it != Extension::default());
    document
}
