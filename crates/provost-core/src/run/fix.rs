//! The fix loop: which refusals another attempt may fix, and under which contract.
//!
//! # Invariants
//!
//! - The contract of a fix grants exactly what the first one grants. It adds to the task
//!   description, and names the evidence; [`beyond`] refuses any other difference.
//! - Only a reviewer's refusal and a failed acceptance command are fixed: never a change beyond the
//!   contract, a changed tree, or a failure of the machine.
//! - The next attempt starts from the refused candidate, unless the contract wants a reset; it is
//!   judged against the base in any case.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::fact::{
    AgentRun, Capture, CommandRun, Ending, Fact, Fix, ResultFile, ReviewRun, Side, Stream, TestRun,
};
use super::{Gate, Misplaced, Next, State, Step};
use crate::code::Code;
use crate::contract::document::{Artifact, Document, RollbackStrategy};
use crate::contract::{self, Contract, Problem};
use crate::object::sha256;
use crate::path::is_segment;
use crate::time;
use crate::verdict::Verdict;

/// How much of the end of a log is put into a contract, in lines and bytes.
const TAIL_LINES: usize = 40;
const TAIL_BYTES: usize = 4 << 10;

/// How many logs of a failure are evidence.
const MOST_LOGS: usize = 8;

/// The longest name of a task.
const LONGEST_NAME: usize = 128;

/// An attempt that a gate refused, and that another one fixes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EarlierAttempt {
    pub attempt: u32,
    pub task_id: String,
    pub refusal: Verdict,
    pub gates: BTreeMap<Gate, Verdict>,
    pub agent: Option<AgentRun>,
    pub captured: Option<Capture>,
    pub reviewed: Option<ReviewRun>,
    /// The acceptance commands on its tree.
    pub tests: Option<TestRun>,
}

/// A file of the bundle that shows a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Its name in the contract, and in the sandbox.
    pub name: String,
    /// Its path in the bundle.
    pub file: String,
    pub sha256: String,
}

impl State {
    /// The gate whose refusal another attempt may fix, if that ended this one.
    pub(super) fn fixable(&self) -> Option<Gate> {
        let refusal = self.refusal.as_ref()?;
        let gate = match refusal.code {
            Code::ReviewRefused => Gate::Review,
            Code::AcceptanceFailed if self.commands_failed() => Gate::Acceptance,
            _ => return None,
        };
        (self.gates.get(&gate) == Some(refusal)).then_some(gate)
    }

    /// Whether commands failed on the candidate on their own, and left it unchanged.
    fn commands_failed(&self) -> bool {
        let (Some(run), Ok(contract)) = (self.tests.get(&Side::Candidate), &self.contract) else {
            return false;
        };
        let judged = contract.tests.iter().zip(&run.commands);
        let refused =
            judged.filter(|(test, ran)| test.must_pass && ran.ending != Ending::Exited(0));
        let mut refused = refused.map(|(_, ran)| ran).peekable();
        let whole = run.commands.len() == contract.tests.len();
        whole && run.altered.is_empty() && refused.peek().is_some() && refused.all(failed)
    }

    /// The most fix attempts; none without an agent.
    pub(super) fn most_fixes(&self) -> usize {
        if self.opened.work.is_some() {
            return 0;
        }
        self.opened.contract.timeout_retry.max_retries as usize
    }

    /// The task of the current attempt.
    pub fn task_id(&self) -> &str {
        match &self.contract {
            Ok(contract) => &contract.document.task_id,
            Err(_) => &self.names.task_id,
        }
    }

    /// The files that show why the attempt was refused.
    pub fn failed_evidence(&self) -> Vec<Evidence> {
        match self.fixable() {
            Some(Gate::Review) => self.review_evidence().into_iter().collect(),
            Some(_) => {
                let run = self.tests.get(&Side::Candidate);
                let commands = run.into_iter().flat_map(|run| &run.commands);
                let streams = commands.filter(|ran| failed(ran));
                let streams = streams.flat_map(|ran| [&ran.stdout, &ran.stderr]);
                streams.take(MOST_LOGS).map(Evidence::of).collect()
            }
            None => Vec::new(),
        }
    }

    /// The file of the bundle with the report of this attempt's reviewer.
    pub fn review_file(&self) -> String {
        format!("reviews/{}.report.json", self.attempt)
    }

    fn review_evidence(&self) -> Option<Evidence> {
        let ResultFile::Text(text) = &self.reviewed.as_ref()?.run.result else {
            return None;
        };
        let file = self.review_file();
        Some(Evidence {
            name: flat(&file),
            file,
            sha256: sha256(text.as_bytes()),
        })
    }

    /// The contract under which the next attempt fixes this one; `texts` are the files that
    /// [`State::failed_evidence`] names.
    pub fn fix(&self, texts: &BTreeMap<String, Vec<u8>>) -> Option<Fix> {
        let gate = self.fixable()?;
        let first = &self.opened.contract;
        let number = u32::try_from(self.past.len() + 1).ok()?;
        let evidence = self.failed_evidence();
        let mut contract = first.clone();
        contract.task_id = task_id(&first.task_id, number);
        contract.parent_task_id = Some(first.task_id.clone());
        contract.inputs.spec = self.spec(gate, &evidence, texts);
        contract
            .inputs
            .artifacts
            .extend(evidence.iter().map(artifact));
        let retries = &mut contract.timeout_retry.max_retries;
        *retries = retries.saturating_sub(number);
        Some(Fix {
            number,
            contract_sha256: contract::digest(&contract).ok()?,
            path: format!("tasks/{}/contract.json", contract.task_id),
            contract,
        })
    }

    /// The task description of the next attempt: the original task, and the results so far.
    fn spec(&self, gate: Gate, evidence: &[Evidence], texts: &BTreeMap<String, Vec<u8>>) -> String {
        let mut text = self.opened.contract.inputs.spec.trim_end().to_owned();
        let files = match self.opened.contract.rollback.strategy {
            RollbackStrategy::GitResetHard => {
                "The files are as they were before: what an earlier attempt did was taken back."
            }
            RollbackStrategy::WorktreeDrop | RollbackStrategy::GitRevertCommit => {
                "The files are as an earlier attempt left them."
            }
        };
        let _ = write!(
            text,
            "\n\n# What came of it so far\n\n{files} It kept to the contract, and was refused. Fix \
             it; everything that the contract asks for still holds for the whole of the \
             change.\n\n",
        );
        for past in &self.past {
            let _ = writeln!(text, "- attempt {}: {}", past.attempt, past.refusal.reason);
        }
        if let Some(refusal) = &self.refusal {
            let _ = writeln!(text, "- attempt {}: {}", self.attempt, refusal.reason);
        }
        if gate == Gate::Review
            && let Some(report) = self.review_report()
        {
            text.push_str("\nWhat the reviewer says, which is advice and grants nothing:\n\n");
            let _ = writeln!(text, "- {}", one_line(&report.summary));
            for words in &report.violations {
                let _ = writeln!(text, "- beyond the contract: {}", one_line(words));
            }
            for remark in &report.findings {
                let (path, problem) = (one_line(&remark.path), one_line(&remark.problem));
                let _ = writeln!(text, "- {path}: {problem}");
            }
        }
        for shown in evidence.iter().filter(|_| gate != Gate::Review) {
            let bytes = texts.get(&shown.file).map_or(&[][..], Vec::as_slice);
            if bytes.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\nThe end of `$PROVOST_EVIDENCE/{}`:\n", shown.name);
            for line in tail(bytes) {
                let _ = writeln!(text, "    {line}");
            }
        }
        text
    }

    /// Applies a fact of the loop, if it is possible in this state.
    pub(super) fn apply_fix(&mut self, fact: Fact) -> Result<(), Misplaced> {
        let next = self.next();
        match fact {
            Fact::Triggered(trigger) => {
                let refusal = self.refusal.as_ref().map(|refusal| refusal.code);
                let due = next == Next::Trigger(trigger.gate) && refusal == Some(trigger.code);
                if !due || time::parse(&trigger.not_before).is_err() {
                    return Err(Misplaced);
                }
                self.trigger = Some(trigger);
                Ok(())
            }
            Fact::Fixing(fix) => {
                self.end(Step::Fix)?;
                self.begin_fix(*fix).ok_or(Misplaced)
            }
            Fact::Exhausted { fixes } if next == (Next::Exhaust { fixes }) => {
                self.exhausted = true;
                Ok(())
            }
            _ => Err(Misplaced),
        }
    }

    /// Ends the refused attempt, and starts the one with the contract `fix`.
    fn begin_fix(&mut self, fix: Fix) -> Option<()> {
        let number = usize::try_from(fix.number).ok()?;
        let in_turn = number == self.past.len() + 1 && number <= self.most_fixes();
        let digest = contract::digest(&fix.contract);
        let whole = digest.is_ok_and(|digest| digest == fix.contract_sha256);
        let named = fix.path == format!("tasks/{}/contract.json", fix.contract.task_id);
        let within = beyond(&self.opened.contract, &fix).is_none();
        self.trigger.take()?;
        if !(in_turn && whole && named && within) {
            return None;
        }
        let past = EarlierAttempt {
            attempt: self.attempt,
            task_id: self.task_id().to_owned(),
            refusal: self.refusal.take()?,
            gates: std::mem::take(&mut self.gates),
            agent: self.agent.take(),
            captured: self.captured.take(),
            reviewed: self.reviewed.take(),
            tests: self.tests.remove(&Side::Candidate),
        };
        self.past.push(past);
        self.attempt += 1;
        self.crossed.clear();
        // The next agent has another sandbox.
        self.tested = None;
        // Its layers were removed with the earlier workspace.
        self.layers = None;
        self.contract = self.resolve_fix(fix.contract);
        Some(())
    }

    /// The contract of a fix. Its evidence is a file for the agent, and decides nothing.
    fn resolve_fix(&self, document: Document) -> Result<Contract, Vec<Problem>> {
        let mut bare = document.clone();
        let given = &self.opened.contract.inputs.artifacts;
        bare.inputs.artifacts.clone_from(given);
        let contract = self.opened.resolve_document(self.widened(bare))?;
        Ok(Contract {
            document: self.widened(document),
            ..contract
        })
    }

    /// The evidence for the agent of this attempt.
    pub(in crate::run) fn given(&self) -> Vec<Evidence> {
        let Ok(contract) = &self.contract else {
            return Vec::new();
        };
        let artifacts = contract.document.inputs.artifacts.iter();
        let further = artifacts.skip(self.opened.contract.inputs.artifacts.len());
        let evidence = |artifact: &Artifact| Evidence {
            name: artifact.name.clone(),
            file: artifact.uri.clone(),
            sha256: artifact.sha256.clone(),
        };
        further.map(evidence).collect()
    }
}

/// The first field in which `fix` exceeds the contract `first`.
///
/// Every field that grants or limits must be equal; only names, text and evidence may differ.
pub fn beyond(first: &Document, fix: &Fix) -> Option<&'static str> {
    let child = &fix.contract;
    if child.task_id != task_id(&first.task_id, fix.number) {
        return Some("task_id");
    }
    if child.parent_task_id.as_ref() != Some(&first.task_id) {
        return Some("parent_task_id");
    }
    let spec = &child.inputs.spec;
    if !spec.starts_with(first.inputs.spec.trim_end()) {
        return Some("inputs.spec");
    }
    let given = &child.inputs.artifacts;
    let is_evidence = |it: &Artifact| is_segment(&it.name) && !it.name.starts_with("output_schema");
    let parts = given.split_at_checked(first.inputs.artifacts.len());
    let is_kept = |(same, further): (&[Artifact], &[Artifact])| {
        same == first.inputs.artifacts && further.iter().all(is_evidence)
    };
    if !parts.is_some_and(is_kept) {
        return Some("inputs.artifacts");
    }
    let retries = first.timeout_retry.max_retries.checked_sub(fix.number);
    if Some(child.timeout_retry.max_retries) != retries {
        return Some("timeout_retry.max_retries");
    }
    let mut same = first.clone();
    same.task_id.clone_from(&child.task_id);
    same.parent_task_id.clone_from(&child.parent_task_id);
    same.inputs = child.inputs.clone();
    same.timeout_retry.max_retries = child.timeout_retry.max_retries;
    (same != *child).then_some("contract")
}

/// The name of fix `number` of the task `first`.
fn task_id(first: &str, number: u32) -> String {
    let suffix = format!("-fix-{number}");
    let kept: String = first.chars().take(LONGEST_NAME - suffix.len()).collect();
    kept + &suffix
}

fn failed(ran: &CommandRun) -> bool {
    match ran.ending {
        Ending::Exited(status) => status != 0,
        Ending::Signalled(_) => true,
        _ => false,
    }
}

impl Evidence {
    fn of(stream: &Stream) -> Self {
        Self {
            name: flat(&stream.file),
            file: stream.file.clone(),
            sha256: stream.sha256.clone(),
        }
    }
}

fn artifact(evidence: &Evidence) -> Artifact {
    Artifact {
        name: evidence.name.clone(),
        uri: evidence.file.clone(),
        sha256: evidence.sha256.clone(),
    }
}

fn flat(file: &str) -> String {
    file.replace('/', "_")
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The last lines of a log, without terminal control characters.
fn tail(bytes: &[u8]) -> Vec<String> {
    let from = bytes.len().saturating_sub(TAIL_BYTES);
    let text = String::from_utf8_lossy(&bytes[from..]);
    let plain = |line: &str| {
        let keep = |letter: &char| !letter.is_control() || *letter == '\t';
        line.chars().filter(keep).collect()
    };
    let lines: Vec<String> = text.trim_end().lines().map(plain).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].to_vec()
}
