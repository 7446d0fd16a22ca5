//! Sends each tool to its use case.

use provost_change::answer::Started;
use provost_change::evidence::{BLAST, RECEIPT, TRAIL};
use provost_change::receipt::compose::{PatchTrail, Receipt, by_run};
use provost_change::request::StartRequest;
use provost_change::service::{self as change, Session};
use provost_change::tools::Request;
use provost_change::tools::answers::{Analysed, ReceiptLookup};
use provost_change::tools::arguments::{
    Action, AnalysisArguments, BlastArguments, BlastArtifactArguments, ClaimsArguments,
    CompareArguments, ContractArguments, FinishArguments, ForgetArguments, GateArguments,
    MakeReceiptArguments, ManageArguments, Mode, ReceiptArguments, ReceiptFormat, StartArguments,
    TrailArguments,
};
use provost_core::code::Code;
use provost_host::clock;
use provost_lens::structure::blast::{Depth, artifact_id};
use serde_json::Value;

use super::answer::StartAnswer;
use super::{ChangeService, ChangeSession, ToolAnswer, Trouble};

pub(super) fn call(caller: &mut ChangeSession, request: &Request) -> Result<ToolAnswer, Trouble> {
    match request {
        Request::Analyse(asked) => analyse(caller, asked),
        Request::AnalyseChanged(asked) => analyse(caller, &asked.0),
        Request::Start(asked) => start(caller, asked),
        Request::Finish(asked) => finish(caller, asked),
        Request::Manage(asked) => manage(caller, asked),
        Request::Contract(asked) => contract(caller, asked),
        Request::Compare(asked) => compare(caller, asked),
        Request::Blast(asked) => blast(caller, asked),
        Request::BlastArtifact(asked) => get_blast(caller, asked),
        Request::Gates(asked) => gates(caller, asked),
        Request::Claims(asked) => claims(caller, asked),
        Request::MakeReceipt(asked) => make_receipt(caller, asked),
        Request::Receipt(asked) => get_receipt(caller, asked),
        Request::Trail(asked) => get_trail(caller, asked),
        Request::Forget(asked) => forget(caller, asked),
    }
}

fn analyse(caller: &mut ChangeSession, asked: &AnalysisArguments) -> Result<ToolAnswer, Trouble> {
    let root = &asked.root;
    let (baseline, changed) = (asked.baseline()?, asked.changed()?);
    let (at, below) = match caller.at(root) {
        Err(Trouble::Failure(failure)) if failure.code == Code::NotARepository => {
            let (root, why) = (root.clone(), failure.reason.clone());
            return Ok(ToolAnswer::UnseenAnalysis(root, why));
        }
        other => other?,
    };
    let session = caller.session.clone();
    let settings = asked.settings();
    let (head, report) = caller.services[at]
        .with(|ports| change::analyse(ports, &session, &below, &settings, baseline))?;
    let changed = match &changed {
        Some(named) => {
            Some(caller.services[at].with(|ports| change::touched(ports, &below, named))?)
        }
        None => None,
    };
    Ok(ToolAnswer::Analysed(Box::new(Analysed {
        head,
        report,
        root: root.clone(),
        ignored: asked.ignored(),
        changed,
    })))
}

fn start(caller: &mut ChangeSession, asked: &StartArguments) -> Result<ToolAnswer, Trouble> {
    let root = &asked.root;
    let (at, below) = match caller.at(root) {
        Err(Trouble::Failure(failure)) if failure.code == Code::NotARepository => {
            let answer = Started::unseen(failure.reason.clone());
            return Ok(started(asked, asked.request("")?, answer));
        }
        other => other?,
    };
    let request = asked.request(&below)?;
    let session = caller.session.clone();
    let answer = caller.services[at].with(|ports| change::start(ports, &session, &request))?;
    Ok(started(asked, request, answer))
}

fn started(asked: &StartArguments, request: StartRequest, answer: Started) -> ToolAnswer {
    ToolAnswer::Started(Box::new(StartAnswer {
        answer,
        request,
        detail: asked.blast_radius_detail.unwrap_or_default(),
        root: asked.root.clone(),
        now: clock::now_millis(),
    }))
}

fn finish(caller: &mut ChangeSession, asked: &FinishArguments) -> Result<ToolAnswer, Trouble> {
    let request = asked.request()?;
    let at = caller.knowing(Some(&request.intent_id), None)?;
    let session = caller.session.clone();
    let done = caller.services[at].with(|ports| change::finish(ports, &session, &request))?;
    Ok(ToolAnswer::Finished(Box::new(done), asked.shown()))
}

fn manage(caller: &mut ChangeSession, asked: &ManageArguments) -> Result<ToolAnswer, Trouble> {
    let (id, run) = (asked.intent_id.as_deref(), asked.run_id.as_deref());
    if asked.action == Action::Declare {
        return start(caller, &asked.start()?);
    }
    asked.touched()?;
    let at = match &asked.root {
        Some(root) => caller.at(root)?.0,
        None => caller.knowing(id, run)?,
    };
    let session = caller.session.clone();
    let service = &mut caller.services[at];
    Ok(match (asked.action, id) {
        (Action::Clear, id) => {
            let ids = service.with(|ports| change::clear(ports, &session, id))?;
            ToolAnswer::Cleared(ids)
        }
        (Action::Recover, None) => ToolAnswer::NotRecovered("missing_intent_id"),
        (Action::Recover, Some(id)) => {
            let Some(run) = run else {
                return Ok(ToolAnswer::NotRecovered("missing_run_id"));
            };
            let answer = service.with(|ports| change::recover(ports, &session, id, run))?;
            ToolAnswer::Recovered(id.to_owned(), answer, clock::now_millis())
        }
        (Action::ListWorkspace, _) => {
            ToolAnswer::Listed(service.with(|ports| change::list(ports, &session))?)
        }
        (Action::GcWorkspace, _) => {
            let swept = service.with(|ports| change::gc(ports, &session))?;
            ToolAnswer::Swept(swept, service.sweep()?)
        }
        (_, Some(id)) => return of_one(service, &session, id, asked),
        (_, None) => {
            let words = "this action needs `intent_id`";
            return Err(Trouble::Request(words.to_owned()));
        }
    })
}

/// Answers an action about one intent.
fn of_one(
    service: &mut ChangeService,
    session: &Session,
    id: &str,
    asked: &ManageArguments,
) -> Result<ToolAnswer, Trouble> {
    let (lease, ttl) = asked.times()?;
    Ok(match asked.action {
        Action::Check => {
            let touched = asked.evidence()?;
            let (intent, found) =
                service.with(|ports| change::check(ports, session, id, &touched))?;
            ToolAnswer::Checked(Box::new(intent), Box::new(found))
        }
        Action::Promote => {
            ToolAnswer::Promoted(service.with(|ports| change::promote(ports, session, id))?)
        }
        Action::Renew => {
            let answer = service.with(|ports| change::renew(ports, session, id, lease, ttl))?;
            ToolAnswer::Renewed(id.to_owned(), answer)
        }
        Action::ResetWorkspace => {
            let answer = service.with(|ports| change::reset(ports, session, id, ttl))?;
            ToolAnswer::Reset(id.to_owned(), answer.map(Box::new))
        }
        _ => {
            let (intent, whose) = service.with(|ports| change::get(ports, session, id))?;
            ToolAnswer::Got(Box::new(intent), whose)
        }
    })
}

fn contract(caller: &mut ChangeSession, asked: &ContractArguments) -> Result<ToolAnswer, Trouble> {
    let session = caller.session.clone();
    let id = asked.intent_id.as_deref();
    let request = asked.verify()?;
    match asked.mode {
        Mode::Budget => {
            let run = asked.budget_run();
            let strictness = asked.strictness.unwrap_or_default();
            let at = caller.knowing(id, run)?;
            let (run_id, budget, intent) = caller.services[at]
                .with(|ports| change::budget(ports, &session, run, id, strictness))?;
            Ok(ToolAnswer::Budget(
                run_id,
                Box::new(budget),
                intent.map(Box::new),
            ))
        }
        Mode::Verify => {
            let run = request.before_run.as_deref();
            let at = caller.knowing(id, run.or(request.after_run.as_deref()))?;
            let found =
                caller.services[at].with(|ports| change::verify(ports, &session, &request))?;
            Ok(ToolAnswer::Looked(Box::new(found)))
        }
    }
}

fn compare(caller: &mut ChangeSession, asked: &CompareArguments) -> Result<ToolAnswer, Trouble> {
    let (before, after) = (asked.run_id_before.as_str(), asked.run_id_after.as_deref());
    let at = caller.knowing(None, Some(before))?;
    let found = caller.services[at].with(|ports| change::compare(ports, before, after))?;
    Ok(ToolAnswer::Compared(
        Box::new(found),
        asked.focus.unwrap_or_default(),
    ))
}

fn blast(caller: &mut ChangeSession, asked: &BlastArguments) -> Result<ToolAnswer, Trouble> {
    if asked.files.is_empty() {
        return Err(Trouble::Request("`files` names no file".to_owned()));
    }
    let run = asked.run_id.as_deref();
    let depth = asked.depth.unwrap_or(Depth::Direct);
    let at = caller.knowing(None, run)?;
    let (run_id, reach) =
        caller.services[at].with(|ports| change::blast(ports, run, &asked.files, depth))?;
    let include = asked.include.clone();
    Ok(ToolAnswer::Blast(run_id, Box::new(reach), include))
}

/// The whole blast radius of a start, by its name or by its digest.
fn get_blast(
    caller: &mut ChangeSession,
    given: &BlastArtifactArguments,
) -> Result<ToolAnswer, Trouble> {
    let at = caller.at(&given.root)?.0;
    let run = given.run_id.as_deref();
    let name = given.blast_artifact_id.as_deref();
    let digest = given.projection_digest.as_deref();
    let Some(asked) = digest.or(name) else {
        let words = "say which, by `blast_artifact_id` or by `projection_digest`";
        return Err(Trouble::Request(words.to_owned()));
    };
    let found = caller.services[at].document::<Value>(asked, BLAST)?;
    let (found, own) = found.unzip();
    let own = own.unwrap_or_default();
    let fits = |document: &Value| {
        let of_run = |run: &str| {
            document["run_id"]
                .as_str()
                .is_some_and(|id| id.starts_with(run))
        };
        digest.is_none_or(|digest| digest == own)
            && name.is_none_or(|name| name == artifact_id(&own))
            && run.is_none_or(of_run)
    };
    let found = found.filter(fits);
    Ok(ToolAnswer::BlastArtifact(found, own, asked.to_owned()))
}

/// Checks an analysis against limits.
fn gates(caller: &mut ChangeSession, asked: &GateArguments) -> Result<ToolAnswer, Trouble> {
    let (run, switches) = (asked.run_id.as_deref(), asked.switches());
    let at = caller.knowing(None, run)?;
    let found = caller.services[at].with(|ports| change::gates(ports, run, &switches))?;
    Ok(ToolAnswer::Gated(found, switches))
}

fn claims(caller: &mut ChangeSession, asked: &ClaimsArguments) -> Result<ToolAnswer, Trouble> {
    let (run, delta) = (asked.run_id.as_deref(), asked.patch_health_delta);
    let citations = asked.require_citations.unwrap_or(true);
    let at = caller.knowing(None, run)?;
    let judged = caller.services[at]
        .with(|ports| change::claims(ports, &asked.text, run, citations, delta))?;
    Ok(ToolAnswer::Claims(judged))
}

/// The sealed receipt of a finished change, or the facts of an unfinished one.
fn make_receipt(
    caller: &mut ChangeSession,
    asked: &MakeReceiptArguments,
) -> Result<ToolAnswer, Trouble> {
    let (id, run) = (asked.intent_id.as_deref(), asked.run_id.as_deref());
    let format = asked.format.unwrap_or(ReceiptFormat::Markdown);
    let at = caller.knowing(id, run)?;
    let session = caller.session.clone();
    let service = &mut caller.services[at];
    let id = service.with(|ports| change::meant(ports, &session, id, run))?;
    let (mut receipt, digest) = match service.evidence::<Receipt>(&id, RECEIPT)? {
        Some(found) => found,
        None => service.with(|ports| change::make_receipt(ports, &session, &id))?,
    };
    let mut omitted = Vec::new();
    if asked.include_blast_radius == Some(false) {
        receipt.blast_radius = None;
        omitted.push("blast_radius");
    }
    if asked.include_patch_contract == Some(false) {
        receipt.patch_contract = None;
        omitted.push("patch_contract");
    }
    Ok(ToolAnswer::Receipt(Box::new(ReceiptLookup {
        receipt: Some(receipt),
        digest,
        format,
        omitted,
    })))
}

/// The key of a document of evidence: its digest, or the analysis it is about.
fn key(digest: Option<&str>, run: Option<&str>, name: &str) -> Result<String, Trouble> {
    match (digest, run) {
        (Some(digest), _) => Ok(digest.to_owned()),
        (None, Some(run)) => Ok(by_run(run)),
        (None, None) => {
            let words = format!("say which, by `{name}` or by `run_id`");
            Err(Trouble::Request(words))
        }
    }
}

fn get_receipt(
    caller: &mut ChangeSession,
    given: &ReceiptArguments,
) -> Result<ToolAnswer, Trouble> {
    let at = caller.at(&given.root)?.0;
    let asked = given.receipt_digest.as_deref();
    let key = key(asked, given.run_id.as_deref(), "receipt_digest")?;
    let format = given.format.unwrap_or(ReceiptFormat::Structured);
    let found = caller.services[at].document::<Receipt>(&key, RECEIPT)?;
    let (receipt, own) = found.unzip();
    let digest = asked.map(str::to_owned).or_else(|| own.clone());
    Ok(ToolAnswer::Receipt(Box::new(ReceiptLookup {
        receipt: receipt.filter(|_| asked.is_none() || asked == own.as_deref()),
        digest: digest.unwrap_or_default(),
        format,
        omitted: Vec::new(),
    })))
}

fn get_trail(caller: &mut ChangeSession, given: &TrailArguments) -> Result<ToolAnswer, Trouble> {
    let at = caller.at(&given.root)?.0;
    let asked = given.patch_trail_digest.as_deref();
    let key = key(asked, given.run_id.as_deref(), "patch_trail_digest")?;
    let found = caller.services[at].document::<PatchTrail>(&key, TRAIL)?;
    let found = found.map(|(trail, _)| trail);
    let own = |trail: &PatchTrail| asked.is_none() || asked == trail.patch_trail_digest.as_deref();
    let digest = asked.unwrap_or_default().to_owned();
    Ok(ToolAnswer::Trail(found.filter(own).map(Box::new), digest))
}

fn forget(caller: &mut ChangeSession, asked: &ForgetArguments) -> Result<ToolAnswer, Trouble> {
    let at = match &asked.root {
        Some(root) => caller.at(root)?.0,
        None => caller.knowing(None, None)?,
    };
    let session = caller.session.clone();
    let ids = caller.services[at].with(|ports| change::clear(ports, &session, None))?;
    let runs = caller.services[at].forget_runs()?;
    Ok(ToolAnswer::Forgotten(runs, ids.len()))
}
