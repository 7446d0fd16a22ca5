//! Carries out the steps of a case that need its parts.

use provost_core::approval::{Kind, Widening};
use provost_core::code::Code;
use provost_core::contract;
use provost_core::json;
use provost_core::object::{Oid, sha256};
use provost_core::run::fact::Part;
use provost_core::verdict::Verdict;

use super::{
    AskedPart, CONTRACT, CaseQuestion, Drafted, Fact, FixOrder, FixStart, Integration, MergedPart,
    Next, PARTS, PartConflict, PlannerResult, Ports, State, Task, WHOLE, record, record_part,
};
use crate::chain::report::word;
use crate::chain::{self, Came, Chain, CombinedResults, MergedNeeds, NodeStart};
use crate::ports::{Bundle, ObserverChoice, PortError};

/// Carries out a step that needs the parts.
pub(super) fn work(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    chain: Option<&Chain>,
    next: Next,
) -> Result<(), PortError> {
    let chain = chain.ok_or_else(|| PortError::new(Code::Bug, "the case has no parts"))?;
    match next {
        Next::Part(next) => part(ports, task, state, chain, next),
        Next::Integrate => integrate(ports, task, state, chain),
        Next::Judge(commit) => judge(ports, task, state, commit),
        Next::TakeUp(run_id) => {
            ports.runner.report(&format!("taking up {run_id}"));
            state.abandoned = false;
            ports.runner.take_up(WHOLE, &run_id)
        }
        Next::Wait => ended(ports, task, state),
        Next::TestPrefix(commit) => test_prefix(ports, task, state, commit),
        Next::Fix(order) => fix(ports, task, state, chain, order),
        Next::Plan | Next::Split | Next::Ask | Next::Approval | Next::Finish(_) => {
            Err(PortError::new(Code::Bug, "that step needs no parts"))
        }
    }
}

pub(super) fn planned(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
) -> Result<(), PortError> {
    let opened = &state.opened;
    if ports.runner.report("planning") == ObserverChoice::Cancel {
        return cancelled(ports, task, state);
    }
    let planned = ports.runner.plan(&opened.request, &opened.base_commit)?;
    let drafted = drafted(ports, CONTRACT, planned)?;
    record(ports, task, state, Fact::Planned(drafted))
}

pub(super) fn divided(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
) -> Result<(), PortError> {
    let whole = whole(ports, state)?;
    let divided = if state.opened.split {
        if ports.runner.report("dividing the contract into parts") == ObserverChoice::Cancel {
            return cancelled(ports, task, state);
        }
        ports.runner.split(&whole)?
    } else {
        PlannerResult {
            plan_id: String::new(),
            verdict: Verdict::allow("the contract is not divided"),
            document: Some(chain::Document::of_one(whole)),
        }
    };
    let drafted = drafted(ports, PARTS, divided)?;
    record(ports, task, state, Fact::Split(drafted))
}

/// Ends the case, because the user cancels it.
fn cancelled(ports: &mut Ports<'_>, task: &Task<'_>, state: &mut State) -> Result<(), PortError> {
    let verdict = Verdict::deny(Code::Cancelled, "the case was cancelled");
    record(ports, task, state, Fact::Finished { verdict })
}

/// Keeps the document of a planner, and describes it for the ledger.
fn drafted<T: serde::Serialize>(
    ports: &mut Ports<'_>,
    name: &str,
    result: PlannerResult<T>,
) -> Result<Drafted, PortError> {
    let mut document_sha256 = None;
    if let Some(document) = &result.document {
        let value = serde_json::to_value(document);
        let value = value.map_err(|error| PortError::of(Code::Bug, error))?;
        let text = json::canonical(&value);
        ports.bundle.put(name, text.as_bytes())?;
        document_sha256 = Some(sha256(text.as_bytes()));
    }
    Ok(Drafted {
        plan_id: result.plan_id,
        verdict: result.verdict,
        document_sha256,
    })
}

/// The document `name` of the case, which has to be the one that `drafted` describes.
fn document<T: serde::de::DeserializeOwned>(
    bundle: &dyn Bundle,
    name: &str,
    drafted: Option<&Drafted>,
) -> Result<T, PortError> {
    let altered = |what: &str| {
        PortError::new(
            Code::EvidenceAltered,
            format!("`{name}` of the case {what}"),
        )
    };
    let bytes = bundle.get(name)?.ok_or_else(|| altered("is missing"))?;
    let digest = sha256(&bytes);
    let known = drafted.and_then(|it| it.document_sha256.as_ref());
    if known != Some(&digest) {
        return Err(altered("is not what its ledger names"));
    }
    let value = json::parse(&bytes).map_err(|error| PortError::of(Code::EvidenceAltered, error))?;
    json::from_value(&value).map_err(|error| PortError::of(Code::EvidenceAltered, error))
}

/// The contract of the whole, with the commit that the case starts from.
fn whole(ports: &Ports<'_>, state: &State) -> Result<contract::document::Document, PortError> {
    let mut whole: contract::document::Document =
        document(ports.bundle, CONTRACT, state.planned.as_ref())?;
    whole.rollback.baseline_ref = state.opened.base_commit.to_string();
    Ok(whole)
}

/// The parts of the case, judged again; `None` if it has none yet.
pub(super) fn loaded_parts(
    ports: &mut Ports<'_>,
    state: &State,
) -> Result<Option<Chain>, PortError> {
    if state.parts.is_none() {
        return Ok(None);
    }
    let divided: chain::Document = document(ports.bundle, PARTS, state.split.as_ref())?;
    let base = &state.opened.base_commit;
    match ports.runner.check(&divided, base)? {
        Ok(chain) => Ok(Some(chain)),
        Err(verdict) => Err(PortError::new(verdict.code, verdict.reason)),
    }
}

/// Finds out what a person has to approve, about the whole and about each part.
pub(super) fn asked(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
) -> Result<(), PortError> {
    let whole = whole(ports, state)?;
    let divided: chain::Document = document(ports.bundle, PARTS, state.split.as_ref())?;
    let mut of_whole = ports.runner.widenings(&whole)?;
    of_whole.extend(state.opened.unreviewed.then(unreviewed));
    let mut rows = vec![AskedPart::of(None, &whole, of_whole)];
    for node in divided.nodes {
        let Some(mut contract) = node.contract else {
            continue;
        };
        contract.rollback.baseline_ref = state.opened.base_commit.to_string();
        let widenings = ports.runner.widenings(&contract)?;
        rows.push(AskedPart::of(Some(node.id), &contract, widenings));
    }
    let digest = |drafted: &Option<Drafted>| {
        let digest = drafted.as_ref().and_then(|it| it.document_sha256.clone());
        digest.unwrap_or_default()
    };
    let (contract, parts_sha256) = (digest(&state.planned), digest(&state.split));
    let question = CaseQuestion::new(task.id, &contract, &parts_sha256, rows);
    record(ports, task, state, Fact::Asked(question))
}

/// The whole is accepted although no reviewer read it.
fn unreviewed() -> Widening {
    Widening {
        kind: Kind::Reviewer,
        path: String::new(),
        problem: "no reviewer reads the parts or the whole".to_owned(),
    }
}

/// What a person approved for `part`; the whole is the part without a name.
fn approved(state: &State, part: Option<&str>) -> Vec<Widening> {
    let question = state.asked.as_ref().filter(|_| {
        let answer = state.answered.as_ref();
        answer.is_some_and(|answer| answer.approved)
    });
    let rows = question.into_iter().flat_map(|question| &question.parts);
    let rows = rows.filter(|row| row.part.as_deref() == part);
    rows.flat_map(|row| row.widenings.clone()).collect()
}

/// Starts, takes over or waits for a part.
fn part(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    chain: &Chain,
    next: chain::Next,
) -> Result<(), PortError> {
    let node = |at: usize| chain.nodes[at].id.clone();
    match next {
        chain::Next::Start(at) => start(ports, task, state, chain, at),
        chain::Next::TakeUp(at, run_id) => {
            let node = node(at);
            ports.runner.report(&format!("{node}: taking up {run_id}"));
            if let Some(parts) = &mut state.parts {
                let run_id = run_id.clone();
                let running = chain::Standing::Running { run_id };
                parts.nodes.insert(node.clone(), running);
            }
            ports.runner.take_up(&node, &run_id)
        }
        chain::Next::PassOver(at, verdict) => {
            let node = node(at);
            let line = format!("{node}: not run, {}", verdict.reason);
            ports.runner.report(&line);
            record_part(ports, task, state, chain::Fact::NotRun { node, verdict })
        }
        chain::Next::Wait => ended(ports, task, state),
        chain::Next::Test | chain::Next::Finish(_) => {
            Err(PortError::new(Code::Bug, "the parts have ended"))
        }
    }
}

/// Starts the part at `at` from the results of the parts that it needs.
fn start(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    chain: &Chain,
    at: usize,
) -> Result<(), PortError> {
    let checked = &chain.nodes[at];
    let node = checked.id.clone();
    let merge = state.parts.as_ref().and_then(|parts| parts.base(chain, at));
    let merge = merge.ok_or_else(|| PortError::new(Code::Bug, "a need has no result"))?;
    let run_id = ports.runner.name()?;
    if ports.runner.report(&format!("{node}: {run_id} begins")) == ObserverChoice::Cancel {
        let verdict = Verdict::deny(Code::Cancelled, "the case was cancelled");
        return record_part(ports, task, state, chain::Fact::NotRun { node, verdict });
    }
    let base_commit = match ports.runner.join(&run_id, &merge)? {
        MergedNeeds::Clean(commit) => commit,
        MergedNeeds::Conflict(paths) => {
            let verdict = chain::conflicting_needs(paths);
            return record_part(ports, task, state, chain::Fact::NotRun { node, verdict });
        }
    };
    let mut contract = checked.contract.document.clone();
    contract.rollback.baseline_ref = base_commit.to_string();
    let mut hands = state.opened.hands();
    if let Some(agent) = &checked.agent {
        hands.agent.clone_from(agent);
    }
    let fact = chain::Fact::Started {
        hands: Some(hands),
        node: node.clone(),
        run_id: run_id.clone(),
        base_commit,
        contract_sha256: digest(&contract)?,
    };
    record_part(ports, task, state, fact)?;
    let order = node_start(task, state, checked, run_id, contract);
    ports.runner.begin(order)
}

fn node_start(
    task: &Task<'_>,
    state: &State,
    checked: &chain::Checked,
    run_id: String,
    contract: contract::document::Document,
) -> NodeStart {
    let node = checked.id.clone();
    NodeStart {
        part: Some(Part {
            chain: task.id.to_owned(),
            node: node.clone(),
        }),
        approved: approved(state, Some(&node)),
        trace_id: Some(state.opened.trace_id.clone()),
        agent: checked.agent.clone(),
        judges: None,
        node,
        run_id,
        contract,
    }
}

fn digest(contract: &contract::document::Document) -> Result<String, PortError> {
    contract::digest(contract).map_err(|error| PortError::of(Code::Bug, error))
}

/// Waits for a run, and records how it ended.
fn ended(ports: &mut Ports<'_>, task: &Task<'_>, state: &mut State) -> Result<(), PortError> {
    let came = ports.runner.ended()?;
    if let Came::Ended { node, end } = &came {
        let (mark, reason) = (word(&end.verdict), &end.verdict.reason);
        let line = format!("{node}: {mark}, {}: {reason}", end.run_id);
        ports.runner.report(&line);
    }
    let fixing = state.open_fix().is_some();
    match came {
        Came::Ended { node, end } if node == WHOLE || fixing => {
            let fact = if fixing {
                Fact::FixEnded { end }
            } else {
                Fact::Judged { end }
            };
            record(ports, task, state, fact)
        }
        Came::Nothing { node } if node == WHOLE || fixing => {
            let fact = if fixing {
                Fact::FixLost {}
            } else {
                Fact::JudgeLost {}
            };
            record(ports, task, state, fact)
        }
        Came::Ended { node, end } => {
            record_part(ports, task, state, chain::Fact::Ended { node, end })
        }
        Came::Nothing { node } => record_part(ports, task, state, chain::Fact::Lost { node }),
    }
}

/// Merges the results of the parts, one after the other.
fn integrate(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    chain: &Chain,
) -> Result<(), PortError> {
    ports.runner.report("merging the parts");
    let mut merged: Vec<MergedPart> = Vec::new();
    let mut conflict = None;
    let mut onto = state.opened.base_commit.clone();
    'parts: for id in state.order(chain) {
        let before = onto.clone();
        for change in state.changes(id) {
            match ports.runner.merge(&onto, &change)? {
                MergedNeeds::Clean(commit) => onto = commit,
                MergedNeeds::Conflict(paths) => {
                    let changed = |it: &&MergedPart| it.paths.iter().any(|p| paths.contains(p));
                    let with = merged.iter().filter(changed);
                    conflict = Some(PartConflict {
                        part: id.to_owned(),
                        with: with.map(|it| it.part.clone()).collect(),
                        paths,
                    });
                    break 'parts;
                }
            }
        }
        merged.push(MergedPart {
            part: id.to_owned(),
            paths: ports.runner.changed(&before, &onto)?,
            commit: onto.clone(),
        });
    }
    let integration = Integration { merged, conflict };
    record(ports, task, state, Fact::Integrated(integration))
}

/// Starts the run that judges the whole.
fn judge(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    commit: Oid,
) -> Result<(), PortError> {
    let contract = whole(ports, state)?;
    let run_id = ports.runner.name()?;
    if ports.runner.report(&format!("{WHOLE}: {run_id} begins")) == ObserverChoice::Cancel {
        return cancelled(ports, task, state);
    }
    let fact = Fact::JudgeStarted {
        run_id: run_id.clone(),
    };
    record(ports, task, state, fact)?;
    ports.runner.begin(NodeStart {
        node: WHOLE.to_owned(),
        run_id,
        contract,
        agent: None,
        judges: Some(commit),
        part: Some(Part {
            chain: task.id.to_owned(),
            node: WHOLE.to_owned(),
        }),
        trace_id: Some(state.opened.trace_id.clone()),
        approved: approved(state, None),
    })
}

/// Runs the commands of the whole on a commit with the first parts.
fn test_prefix(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    commit: Oid,
) -> Result<(), PortError> {
    let contract = whole(ports, state)?;
    let run_id = ports.runner.name()?;
    let line = "looking for the part that broke the whole";
    let verdict = if ports.runner.report(line) == ObserverChoice::Cancel {
        Verdict::deny(Code::Cancelled, "the case was cancelled")
    } else {
        ports.runner.test(&CombinedResults {
            run_id,
            contract,
            commit: commit.clone(),
        })?
    };
    record(ports, task, state, Fact::PrefixTested { commit, verdict })
}

/// Starts the run that fixes a part.
fn fix(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    chain: &Chain,
    order: FixOrder,
) -> Result<(), PortError> {
    let checked = chain.nodes.iter().find(|node| node.id == order.part);
    let checked = checked.ok_or_else(|| PortError::new(Code::Bug, "no such part"))?;
    let run_id = ports.runner.name()?;
    let line = format!(
        "{}: {run_id} fixes it, {}",
        order.part, order.refusal.reason
    );
    if ports.runner.report(&line) == ObserverChoice::Cancel {
        return cancelled(ports, task, state);
    }
    let mut contract = checked.contract.document.clone();
    contract.rollback.baseline_ref = order.base_commit.to_string();
    let number = state.fixes.len() + 1;
    contract.parent_task_id = Some(contract.task_id.clone());
    contract.task_id = format!("{}-fix{number}", contract.task_id);
    contract.inputs.spec = fix_words(&contract.inputs.spec, &order);
    let start = FixStart {
        part: order.part,
        run_id: run_id.clone(),
        base_commit: order.base_commit,
        contract_sha256: digest(&contract)?,
        keeps: order.keeps,
    };
    record(ports, task, state, Fact::FixStarted(start))?;
    let order = node_start(task, state, checked, run_id, contract);
    ports.runner.begin(order)
}

/// The task of a fix: that of the part, and why the whole was refused.
fn fix_words(spec: &str, order: &FixOrder) -> String {
    let files = if order.keeps {
        "The files hold your earlier result and the parts that were merged before it."
    } else {
        "The files hold the parts that were merged before yours; your earlier result could not be \
         merged with them and is not there, so do the task again on these files."
    };
    let Verdict { code, reason, .. } = &order.refusal;
    format!(
        "{}\n\n# What came of it so far\n\nYour result was accepted alone, but refused together \
         with the other parts of the same request. {files} Change only what your contract allows, \
         so that the whole passes.\n\n- {code}: {reason}\n",
        spec.trim_end()
    )
}
