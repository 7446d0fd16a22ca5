//! Sends each tool to its use case, and writes its answer.

use provost_core::bundle::change::{self as evidence, BLAST, RECEIPT, TRAIL};
use provost_core::code::Code;
use provost_core::intent::receipt::{self, by_run};
use provost_core::intent::request::Evidence;
use provost_core::structure::blast::{Depth, artifact_id};
use provost_engine::change::{self, Session};
use provost_formats::change::arguments::{self, Arguments, Contract};
use provost_formats::change::{self as payload, tools};
use provost_host::clock;
use serde_json::{Map, Value, json};

use super::{ChangeService, ChangeSession, Trouble};

type Given = Map<String, Value>;

pub(super) fn call(
    caller: &mut ChangeSession,
    tool: &str,
    given: &Given,
) -> Result<Value, Trouble> {
    tools::fit(tool, given)?;
    match tool {
        "analyze_repository" | "analyze_changed_paths" => analyse(caller, given),
        "start_controlled_change" => start(caller, given),
        "finish_controlled_change" => finish(caller, given),
        "manage_change_intent" => manage(caller, given),
        "check_patch_contract" => contract(caller, given),
        "compare_runs" => compare(caller, given),
        "get_blast_radius" => blast(caller, given),
        "get_blast_artifact" => get_blast(caller, given),
        "evaluate_gates" => gates(caller, given),
        "validate_review_claims" => claims(caller, given),
        "create_review_receipt" => make_receipt(caller, given),
        "get_review_receipt" => get_receipt(caller, given),
        "get_patch_trail" => get_trail(caller, given),
        "clear_session_runs" => forget(caller, given),
        _ => {
            debug_assert!(!tools::is_known(tool), "{tool} has no answer");
            let name: String = tool.chars().take(80).collect();
            Err(Trouble::Request(format!("there is no tool `{name}`")))
        }
    }
}

fn root(given: &Given) -> Result<&str, Trouble> {
    Ok(Arguments::new(given).needed("root")?)
}

fn analyse(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let root = root(given)?;
    let asked = arguments::analysis(given)?;
    let (at, below) = match caller.at(root) {
        Err(Trouble::Failure(failure)) if failure.code == Code::NotARepository => {
            return Ok(payload::unseen_analysis(root, &failure.reason));
        }
        other => other?,
    };
    let session = caller.session.clone();
    let baseline = asked.baseline.as_deref();
    let (head, report) = caller.services[at]
        .with(|ports| change::analyse(ports, &session, &below, &asked.settings, baseline))?;
    let mut value = payload::analysed(&head, &report, root, &asked.ignored);
    if let Some(changed) = &asked.changed {
        let paths = caller.services[at].with(|ports| change::touched(ports, &below, changed))?;
        value["changed"] = payload::in_changed(&head, &report, &paths);
    }
    Ok(value)
}

fn start(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let root = root(given)?;
    let (at, below) = match caller.at(root) {
        Err(Trouble::Failure(failure)) if failure.code == Code::NotARepository => {
            arguments::start(given, "")?;
            return Ok(payload::unseen_start(root, &failure.reason));
        }
        other => other?,
    };
    let (request, detail) = arguments::start(given, &below)?;
    let session = caller.session.clone();
    let answer = caller.services[at].with(|ports| change::start(ports, &session, &request))?;
    let now = clock::now_millis();
    Ok(payload::started(&answer, &request, detail, root, now))
}

fn finish(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let (request, shown) = arguments::finish(given)?;
    let at = caller.knowing(Some(&request.intent_id), None)?;
    let session = caller.session.clone();
    let done = caller.services[at].with(|ports| change::finish(ports, &session, &request))?;
    Ok(payload::finished(&done, shown))
}

fn manage(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let mut arguments = Arguments::new(given);
    let action = arguments.needed("action")?;
    let root = arguments.text("root")?;
    let intent_id = arguments.text("intent_id")?;
    let run = arguments.text("run_id")?;
    let ttl = arguments.seconds("ttl_seconds")?;
    let lease = arguments.seconds("lease_seconds")?;
    if action == "declare" {
        return declare(caller, given);
    }
    let evidence = arguments.evidence()?;
    arguments.end()?;
    let at = match root {
        Some(root) => caller.at(root)?.0,
        None => caller.knowing(intent_id, run)?,
    };
    let session = caller.session.clone();
    let service = &mut caller.services[at];
    let needed = |name: &str, value: Option<&str>| {
        let value = value.map(str::to_owned);
        value.ok_or_else(|| Trouble::Request(format!("action `{action}` needs `{name}`")))
    };
    let id = || needed("intent_id", intent_id);
    Ok(match action {
        "clear" => {
            let ids = service.with(|ports| change::clear(ports, &session, intent_id))?;
            payload::cleared(&ids)
        }
        "recover" => {
            let Ok(id) = id() else {
                return Ok(rejected("missing_intent_id"));
            };
            let Some(run) = run else {
                return Ok(rejected("missing_run_id"));
            };
            let answer = service.with(|ports| change::recover(ports, &session, &id, run))?;
            payload::recovered(&id, &answer, clock::now_millis())
        }
        "list_workspace" => payload::listed(&service.with(|ports| change::list(ports, &session))?),
        "gc_workspace" => {
            let swept = service.with(|ports| change::gc(ports, &session))?;
            let mut value = payload::swept(&swept);
            value["reports_removed"] = json!(service.sweep()?);
            value
        }
        "get" | "check" | "promote" | "renew" | "reset_workspace" => {
            let id = id()?;
            let times = Times { lease, ttl };
            return of_one(service, &session, action, &id, evidence.as_ref(), &times);
        }
        other => {
            let other: String = other.chars().take(80).collect();
            return Err(Trouble::Request(format!("there is no action `{other}`")));
        }
    })
}

/// Lifetimes of an intent and its lease, in seconds.
struct Times {
    lease: Option<i64>,
    ttl: Option<i64>,
}

/// Answers an action about one intent.
fn of_one(
    service: &mut ChangeService,
    session: &Session,
    action: &str,
    id: &str,
    evidence: Option<&Evidence>,
    times: &Times,
) -> Result<Value, Trouble> {
    Ok(match action {
        "check" => {
            let Some(evidence) = evidence else {
                let words = "say what was touched, by `changed_files` or by `diff_ref`";
                return Err(Trouble::Request(words.to_owned()));
            };
            let (intent, found) =
                service.with(|ports| change::check(ports, session, id, evidence))?;
            payload::scope_check(&found, &intent)
        }
        "promote" => payload::promoted(&service.with(|ports| change::promote(ports, session, id))?),
        "renew" => {
            let Times { lease, ttl } = *times;
            let answer = service.with(|ports| change::renew(ports, session, id, lease, ttl))?;
            payload::renewed(id, &answer)
        }
        "reset_workspace" => {
            let answer = service.with(|ports| change::reset(ports, session, id, times.ttl))?;
            payload::reset(id, answer.as_ref())
        }
        _ => {
            let (intent, whose) = service.with(|ports| change::get(ports, session, id))?;
            payload::got(&intent, whose)
        }
    })
}

fn rejected(reason: &str) -> Value {
    json!({ "action_taken": "recovery_rejected", "reason": reason, "details": {} })
}

/// `start` under another name, with the arguments that both have.
fn declare(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let names = [
        "root",
        "scope",
        "intent",
        "expected_effects",
        "on_conflict",
        "ttl_seconds",
    ];
    let mut same: Given = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), given.get(*name)?.clone())))
        .collect();
    same.entry("root").or_insert_with(|| json!("."));
    start(caller, &same)
}

fn contract(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let asked = arguments::contract(given)?;
    let session = caller.session.clone();
    match asked {
        Contract::Budget {
            run,
            intent_id,
            strictness,
        } => {
            let at = caller.knowing(intent_id.as_deref(), run.as_deref())?;
            let (run_id, budget, intent) = caller.services[at].with(|ports| {
                change::budget(
                    ports,
                    &session,
                    run.as_deref(),
                    intent_id.as_deref(),
                    strictness,
                )
            })?;
            Ok(payload::budget(&run_id, &budget, intent.as_ref()))
        }
        Contract::Verify(request) => {
            let run = request
                .before_run
                .as_deref()
                .or(request.after_run.as_deref());
            let at = caller.knowing(request.intent_id.as_deref(), run)?;
            let found =
                caller.services[at].with(|ports| change::verify(ports, &session, &request))?;
            Ok(payload::looked(&found))
        }
    }
}

fn compare(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let mut arguments = Arguments::new(given);
    let before = arguments.needed("run_id_before")?;
    let after = arguments.text("run_id_after")?;
    let focus = payload::Focus::parse(arguments.text("focus")?.unwrap_or("all"));
    arguments.end()?;
    let Some(focus) = focus else {
        let words = "`focus` is all, clones, structural or metrics";
        return Err(Trouble::Request(words.to_owned()));
    };
    let at = caller.knowing(None, Some(before))?;
    let found = caller.services[at].with(|ports| change::compare(ports, before, after))?;
    Ok(payload::compared(&found, focus))
}

fn blast(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let mut arguments = Arguments::new(given);
    let files = arguments.list("files")?.unwrap_or_default();
    let run = arguments.text("run_id")?;
    let depth = arguments::depth(arguments.text("depth")?, Depth::Direct)?;
    let include = arguments.list("include")?;
    arguments.end()?;
    if files.is_empty() {
        return Err(Trouble::Request("`files` names no file".to_owned()));
    }
    let at = caller.knowing(None, run)?;
    let (run_id, reach) =
        caller.services[at].with(|ports| change::blast(ports, run, &files, depth))?;
    Ok(payload::blast(&run_id, &reach, include.as_deref())?)
}

/// The whole blast radius of a start, by its name or by its digest.
fn get_blast(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let at = caller.at(root(given)?)?.0;
    let mut arguments = Arguments::new(given);
    arguments.text("root")?;
    let run = arguments.text("run_id")?;
    let name = arguments.text("blast_artifact_id")?;
    let digest = arguments.text("projection_digest")?;
    arguments.end()?;
    let Some(asked) = digest.or(name) else {
        let words = "say which, by `blast_artifact_id` or by `projection_digest`";
        return Err(Trouble::Request(words.to_owned()));
    };
    let found = caller.services[at].document(asked, BLAST)?;
    let own = found.as_ref().map(evidence::digest).unwrap_or_default();
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
    Ok(payload::found_blast(found.as_ref(), &own, asked))
}

/// Checks an analysis against limits.
fn gates(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let (run, switches) = arguments::gates(given)?;
    let at = caller.knowing(None, run)?;
    let found = caller.services[at].with(|ports| change::gates(ports, run, &switches))?;
    Ok(payload::gated(&found, &switches))
}

fn claims(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let asked = arguments::claims(given)?;
    let (run, citations) = (asked.run, asked.wants_citations);
    let delta = asked.health_delta;
    let at = caller.knowing(None, run)?;
    let judged = caller.services[at]
        .with(|ports| change::claims(ports, asked.text, run, citations, delta))?;
    Ok(payload::claims(&judged))
}

/// The sealed receipt of a finished change, or the facts of an unfinished one.
fn make_receipt(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let mut arguments = Arguments::new(given);
    let id = arguments.text("intent_id")?;
    let run = arguments.text("run_id")?;
    let format = arguments.format("markdown")?;
    let parts = [
        (
            "blast_radius",
            arguments.flag("include_blast_radius", true)?,
        ),
        (
            "patch_contract",
            arguments.flag("include_patch_contract", true)?,
        ),
    ];
    arguments.end()?;
    let at = caller.knowing(id, run)?;
    let session = caller.session.clone();
    let service = &mut caller.services[at];
    let id = service.with(|ports| change::meant(ports, &session, id, run))?;
    let (mut document, digest) = match service.evidence(&id, RECEIPT)? {
        Some(document) => {
            let digest = receipt::digest(&document);
            (document, digest)
        }
        None => service.with(|ports| change::make_receipt(ports, &session, &id))?,
    };
    let omitted: Vec<&str> = parts
        .iter()
        .filter(|(_, kept)| !kept)
        .map(|(name, _)| *name)
        .collect();
    if let Value::Object(fields) = &mut document {
        fields.retain(|name, _| !omitted.contains(&name.as_str()));
    }
    let mut value = payload::found_receipt(Some(&document), &digest, format);
    if !omitted.is_empty() {
        // The digest is that of the whole receipt.
        value["omitted_sections"] = json!(omitted);
    }
    Ok(value)
}

/// The key of a document of evidence: its digest, or the analysis it is about.
fn key<'a>(given: &'a Given, name: &'static str) -> Result<(String, Option<&'a str>), Trouble> {
    let mut arguments = Arguments::new(given);
    let digest = arguments.text(name)?;
    match (digest, arguments.text("run_id")?) {
        (Some(digest), _) => Ok((digest.to_owned(), Some(digest))),
        (None, Some(run)) => Ok((by_run(run), None)),
        (None, None) => {
            let words = format!("say which, by `{name}` or by `run_id`");
            Err(Trouble::Request(words))
        }
    }
}

fn get_receipt(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let at = caller.at(root(given)?)?.0;
    let (key, asked) = key(given, "receipt_digest")?;
    let format = Arguments::new(given).format("structured")?;
    let found = caller.services[at].document(&key, RECEIPT)?;
    let own = found.as_ref().map(receipt::digest).unwrap_or_default();
    let found = found.filter(|_| asked.is_none_or(|asked| asked == own));
    let shown = asked.unwrap_or(&own);
    Ok(payload::found_receipt(found.as_ref(), shown, format))
}

fn get_trail(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let at = caller.at(root(given)?)?.0;
    let (key, asked) = key(given, "patch_trail_digest")?;
    let found = caller.services[at].document(&key, TRAIL)?;
    let own = |trail: &Value| asked.is_none_or(|asked| trail["patch_trail_digest"] == json!(asked));
    let found = found.filter(own);
    Ok(payload::found_trail(
        found.as_ref(),
        asked.unwrap_or_default(),
    ))
}

fn forget(caller: &mut ChangeSession, given: &Given) -> Result<Value, Trouble> {
    let mut arguments = Arguments::new(given);
    let root = arguments.text("root")?;
    arguments.end()?;
    let at = match root {
        Some(root) => caller.at(root)?.0,
        None => caller.knowing(None, None)?,
    };
    let session = caller.session.clone();
    let ids = caller.services[at].with(|ports| change::clear(ports, &session, None))?;
    let runs = caller.services[at].forget_runs()?;
    Ok(json!({ "cleared_runs": runs, "cleared_intents": ids.len() }))
}
