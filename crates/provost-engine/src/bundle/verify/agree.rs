//! Compares the documents of a bundle with each other.

use std::collections::BTreeSet;

use super::Finding;
use super::read::{
    ATTESTATION, BASELINE, Bundle, CONTRACT, LEDGER, MANIFEST, REVIEW_REPORT, TASK_RESULT,
    TEST_REPORT, WORK_REPORT,
};
use provost_core::bundle::report::{
    CommandResult, Judged, ReviewVerdict, RunStatus, Sha256, TestStatus,
};
use provost_core::code::Code;
use provost_core::contract::document::{AcceptMode, AcceptanceTest};
use provost_core::gate::command;
use provost_core::json;
use provost_core::object::Oid;
use provost_core::run::fact::ContractSource;

/// All documents are about one run and one task.
pub(super) fn names(bundle: &Bundle<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let reports = &bundle.reports;
    let Some(run_id) = bundle.run_id() else {
        return findings;
    };
    let first = bundle
        .ledger
        .as_ref()
        .and_then(|chain| chain.records.first());
    let runs = [
        (ATTESTATION, bundle.predicate().map(|one| &one.run_id)),
        (MANIFEST, bundle.manifest.as_ref().map(|one| &one.run_id)),
        (LEDGER, first.map(|record| &record.event.run_id)),
        (
            TASK_RESULT,
            reports.task_result.as_ref().map(|one| &one.run_id),
        ),
        (
            WORK_REPORT,
            reports.work.as_ref().and_then(|one| one.run_id.as_ref()),
        ),
        (
            REVIEW_REPORT,
            reports.review.as_ref().map(|one| &one.run_id),
        ),
        (TEST_REPORT, reports.test.as_ref().map(|one| &one.run_id)),
    ];
    for (name, found) in runs {
        findings.extend(differs(name, "run", found, &run_id));
    }
    let Some(contract) = &bundle.contract else {
        return findings;
    };
    let manifest = bundle.manifest.as_ref();
    let tasks = [
        (MANIFEST, manifest.and_then(|one| one.task_id.as_ref())),
        (
            TASK_RESULT,
            reports.task_result.as_ref().map(|one| &one.task_id),
        ),
        (WORK_REPORT, reports.work.as_ref().map(|one| &one.task_id)),
        (
            REVIEW_REPORT,
            reports.review.as_ref().and_then(|one| one.task_id.as_ref()),
        ),
        (TEST_REPORT, reports.test.as_ref().map(|one| &one.task_id)),
    ];
    for (name, found) in tasks {
        findings.extend(differs(name, "task", found, &contract.task_id));
    }
    let listed = manifest.iter().flat_map(|one| &one.tasks);
    let mut known: BTreeSet<&str> = listed.map(|task| task.task_id.as_str()).collect();
    if manifest.is_some() && !known.contains(contract.task_id.as_str()) {
        findings.push(Finding::altered(
            MANIFEST,
            "does not list the task of the contract",
        ));
    }
    known.insert(&contract.task_id);
    let records = bundle.ledger.iter().flat_map(|chain| &chain.records);
    let strange = records.filter(|record| {
        let task = record.event.task_id.as_deref();
        task.is_some_and(|task| !known.contains(task))
    });
    for record in strange {
        let place = format!("{LEDGER} record {}", record.seq);
        findings.push(Finding::altered(place, "belongs to another task"));
    }
    findings
}

fn differs(name: &str, what: &str, found: Option<&String>, want: &str) -> Option<Finding> {
    let found = found.filter(|found| *found != want)?;
    let problem = format!("belongs to the {what} `{found}`, not to `{want}`");
    Some(Finding::altered(name, problem))
}

/// All documents name the same base commit.
pub(super) fn base(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(predicate) = bundle.predicate() else {
        return Vec::new();
    };
    let text = bundle.bytes(BASELINE).map(String::from_utf8_lossy);
    let file = text.as_deref().map(|text| text.trim_end_matches('\n'));
    let manifest = bundle.manifest.as_ref();
    let extra = manifest.and_then(|one| one.x_provost.as_ref());
    let contract = bundle
        .contract
        .as_ref()
        .map(|one| &one.rollback.baseline_ref);
    // A contract may name its base by a branch; the ledger names the commit.
    let contract = contract.filter(|name| Oid::try_from(name.as_str()).is_ok());
    let work = bundle.reports.work.as_ref();
    let result = bundle.reports.task_result.as_ref();
    let bases = [
        (BASELINE, file),
        (MANIFEST, manifest.map(|one| one.repo.baseline_ref.as_str())),
        (MANIFEST, extra.map(|one| one.base_commit.as_str())),
        (CONTRACT, contract.map(String::as_str)),
        (TASK_RESULT, result.map(|one| one.git.baseline_ref.as_str())),
        (
            WORK_REPORT,
            work.and_then(|one| one.baseline_ref.as_deref()),
        ),
    ];
    let want = predicate.base_commit.as_str();
    let differs = |found: &str| format!("begins at `{found}`, the seal says `{want}`");
    bases
        .into_iter()
        .filter_map(|(name, found)| Some((name, found.filter(|found| *found != want)?)))
        .map(|(name, found)| Finding::altered(name, differs(found)))
        .collect()
}

/// Review, acceptance, manifest and seal are about one tree.
pub(super) fn tree(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(predicate) = bundle.predicate() else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let want = predicate.candidate_tree.as_ref();
    let manifest = bundle.manifest.as_ref();
    if let Some(extra) = manifest.and_then(|one| one.x_provost.as_ref()) {
        let same = extra.tree.as_ref() == want
            && extra.base_tree == predicate.base_tree
            && extra.object_format == predicate.object_format;
        if !same {
            let problem = "names other trees than the seal";
            findings.push(Finding::altered(format!("{MANIFEST} x_provost"), problem));
        }
    }
    let mut judged = |name, extra: Option<&Judged>, decided: bool| {
        let tree = extra.and_then(|extra| extra.tree.as_ref());
        let problem = match tree {
            Some(tree) if Some(tree) != want => {
                format!("judges the tree {tree}, not the sealed one")
            }
            None if decided => "does not say which tree it judges".to_owned(),
            _ => return,
        };
        findings.push(Finding::altered(name, problem));
    };
    if let Some(review) = &bundle.reports.review {
        let decided = review.verdict != ReviewVerdict::Blocked;
        judged(REVIEW_REPORT, review.x_provost.as_ref(), decided);
    }
    if let Some(test) = &bundle.reports.test {
        let decided = test.status != TestStatus::Skipped;
        judged(TEST_REPORT, test.x_provost.as_ref(), decided);
    }
    findings
}

/// The contract is valid, and is the one that was sealed.
pub(super) fn contract(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(contract) = &bundle.contract else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    // A refused run may have been refused for its contract.
    let accepted = bundle
        .predicate()
        .is_none_or(|predicate| predicate.verdict.allow);
    if accepted && let Err(refusals) = provost_core::scope::Scope::parse(&contract.allowed_paths) {
        for refusal in refusals {
            let problem = format!("`{}` {}", refusal.entry.escape_debug(), refusal.why);
            findings.push(Finding::altered(
                format!("{CONTRACT} allowed_paths"),
                problem,
            ));
        }
    }
    let empty = contract.allowed_paths.is_empty() || contract.acceptance_tests.is_empty();
    if accepted && empty {
        findings.push(Finding::altered(
            CONTRACT,
            "names no paths or no acceptance commands",
        ));
    }
    if let (Some(predicate), Some(bytes)) = (bundle.predicate(), bundle.bytes(CONTRACT)) {
        let canonical = json::parse(bytes).map(|value| json::canonical(&value));
        let want = &predicate.contract_sha256;
        if !canonical.is_ok_and(|text| Sha256::of(text.as_bytes()) == *want) {
            findings.push(Finding::altered(
                CONTRACT,
                "is not the contract that was sealed",
            ));
        }
    }
    findings
}

/// The user's contract file is the one that the ledger names.
pub(super) fn source(bundle: &Bundle<'_>) -> Vec<Finding> {
    let opened = bundle.course.last.as_ref().map(|state| &state.opened);
    let source = opened.and_then(|opened| opened.contract_source.clone());
    let Some(ContractSource { path, sha256 }) = source else {
        return Vec::new();
    };
    match bundle.file(&path) {
        None => vec![Finding::incomplete(path, "is missing")],
        Some(Err(problem)) => vec![Finding::incomplete(path, problem)],
        Some(Ok(file)) if file.sha256 != sha256 => {
            vec![Finding::altered(
                path,
                "is not what the contract was read from",
            )]
        }
        Some(Ok(_)) => Vec::new(),
    }
}

/// The commands that ran are those of the contract, in its order.
pub(super) fn commands(bundle: &Bundle<'_>) -> Vec<Finding> {
    let (Some(contract), Some(test)) = (&bundle.contract, &bundle.reports.test) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut wrong = |field: &str, problem: String| {
        findings.push(Finding::altered(format!("{TEST_REPORT} {field}"), problem));
    };
    let asked = contract.acceptance_tests.len();
    let ran = test.commands.len();
    let fits = match test.status {
        TestStatus::Pass => ran == asked,
        TestStatus::Fail => (1..=asked).contains(&ran),
        TestStatus::Error => ran <= asked,
        TestStatus::Skipped => ran == 0,
    };
    if !fits {
        let problem = format!(
            "lists {ran} commands of the contract's {asked} and says {:?}",
            test.status
        );
        wrong("commands", problem);
    }
    for (at, (want, got)) in contract
        .acceptance_tests
        .iter()
        .zip(&test.commands)
        .enumerate()
    {
        if !is_command(want, got) {
            let problem = format!("is not `{}` of the contract", want.name);
            wrong(&format!("commands[{at}]"), problem);
        }
    }
    let failed = |command: &CommandResult| command.must_pass && command.exit_code != 0;
    // The gate is repeated from the ledger; here is only what holds without excuses.
    let mode = contract.x_provost.as_ref().and_then(|it| it.accept_mode);
    let excuses = mode == Some(AcceptMode::NoRegression);
    if test.status == TestStatus::Pass && !excuses && test.commands.iter().any(failed) {
        wrong(
            "status",
            "is PASS although a command that must pass failed".into(),
        );
    }
    if let Some(predicate) = bundle.predicate() {
        let passed = test
            .commands
            .iter()
            .filter(|one| one.exit_code == 0)
            .count();
        let sealed = &predicate.acceptance;
        let same = sealed.status == test.status
            && usize::try_from(sealed.commands) == Ok(asked)
            && usize::try_from(sealed.passed) == Ok(passed);
        if !same {
            wrong(
                "status",
                "differs from what was sealed about the commands".into(),
            );
        }
    }
    findings
}

fn is_command(want: &AcceptanceTest, got: &CommandResult) -> bool {
    want.name == got.name
        && want.must_pass == got.must_pass
        && command::split(&want.cmd).is_ok_and(|argv| argv == got.cmd_argv)
}

/// Whether the contract allows no change.
fn is_audit(bundle: &Bundle<'_>) -> bool {
    let contract = bundle.contract.as_ref();
    contract.is_some_and(|contract| contract.audit_only == Some(true))
}

/// Whether the run was started by the agent of another: the acceptance commands of that run judge
/// its work.
fn is_child(bundle: &Bundle<'_>) -> bool {
    let end = bundle.course.end();
    end.is_some_and(|state| state.opened.child.is_some())
}

/// An accepted run has everything an acceptance needs; a refused one says so in every document.
pub(super) fn verdict(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(predicate) = bundle.predicate() else {
        return Vec::new();
    };
    let allow = predicate.verdict.allow;
    let mut findings = Vec::new();
    let mut wrong = |name: &str, problem: &str| findings.push(Finding::altered(name, problem));
    if allow != (predicate.verdict.code == Code::Ok) {
        wrong(
            ATTESTATION,
            "the statement's verdict and its code contradict each other",
        );
    }
    if let Some(manifest) = &bundle.manifest {
        let want = if allow {
            RunStatus::Success
        } else {
            RunStatus::Failure
        };
        if manifest.status != want {
            wrong(MANIFEST, "its status contradicts the sealed verdict");
        }
    }
    if !allow {
        return findings;
    }
    match &predicate.candidate_tree {
        None => wrong(ATTESTATION, "accepts a run that has no candidate"),
        Some(tree) if *tree == predicate.base_tree && !is_audit(bundle) => {
            wrong(ATTESTATION, "accepts a run that changed nothing");
        }
        Some(_) => {}
    }
    let is_child = is_child(bundle);
    let test = bundle.reports.test.as_ref().filter(|_| !is_child);
    if test.is_some_and(|test| test.status != TestStatus::Pass) {
        wrong(TEST_REPORT, "does not pass, and the run was accepted");
    }
    let review = bundle.reports.review.as_ref();
    if review.is_some_and(|review| review.verdict == ReviewVerdict::Fail) {
        wrong(REVIEW_REPORT, "fails, and the run was accepted");
    }
    if let Some(result) = &bundle.reports.task_result {
        let gates = [
            (&result.gates.diff_gate, true),
            (&result.gates.policy_gate, true),
            (&result.gates.tests_gate, !is_child),
        ];
        if gates
            .iter()
            .any(|(gate, counts)| *counts && !gate.lets_through())
        {
            wrong(TASK_RESULT, "a gate did not pass, and the run was accepted");
        }
    }
    match &predicate.sandbox {
        None => wrong(
            ATTESTATION,
            "accepts a run and does not say in which sandbox",
        ),
        Some(facts) if !facts.selftest_held => {
            wrong(
                ATTESTATION,
                "accepts a run whose sandbox did not hold in its self-test",
            );
        }
        Some(_) => {}
    }
    findings
}
