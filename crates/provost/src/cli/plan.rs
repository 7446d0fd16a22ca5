//! `provost plan` and `provost split`: an agent writes or splits a contract; nothing is run.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::bundle::layout::DRIVER_LOCK;
use provost_core::code::Code;
use provost_core::contract::document::Document;

use provost_core::net::credential::Credential;
use provost_core::path::RepoPath;
use provost_core::schema::validate::Misfit;
use provost_core::scope::Scope;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;
use provost_engine::bundle::statement::SealedVerdict;
use provost_engine::chain::{self, grant};
use provost_engine::drive;
use provost_engine::opening::RequestedAgent;
use provost_engine::plan::{self, Made, Planned, Request, Task};
use provost_engine::ports::{Control, Observer as _, ObserverChoice, Progress, Watch};
use provost_engine::query::RoleContractSummary;
use provost_fs::atomic;
use provost_host::machine::{self, Machine};
use provost_host::origin::GitOrigin;
use provost_host::{agent, cache, clock, ids, login, process_owner, workspace as host};
use serde::Serialize;
use serde_json::Value;

use super::contract::{Written, look, write};
use super::duration::seconds;
use super::net::Net;
use super::run::workspace;
use crate::answer::{Answer, Answered, Failure, Outcome};
use crate::input;
use crate::output;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session::{KeySigner, SystemClock, lock};
use crate::show::{Reader, neutralise, print_message};
use crate::stores;
use crate::user_consent;

/// Have an agent write a contract for a request; nothing is run.
#[derive(Args)]
#[command(after_help = "\
The planner reads the commit in a sandbox where it can write nothing, and its answer is judged
like any contract. The request and the answer are kept in .provost/plans, sealed.
See `provost explain plan`.

Examples:
  provost plan 'Greet people by name' --agent claude --out greet.yaml
  provost plan 'Greet people by name' --agent-cmd my-planner > greet.json")]
pub(super) struct Plan {
    /// The request, in your own words.
    #[arg(value_parser = words)]
    request: String,

    /// The revision that the planner reads and the work starts from.
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    base: String,

    #[command(flatten)]
    asking: Asking,
}

/// Have an agent split a contract into smaller ones; nothing is run.
#[derive(Args)]
#[command(after_help = "\
No part may exceed the contract in any respect, and no two parts may share a path. The result is a
chain for `provost chain -f`. See `provost explain plan`.

Example:
  provost split -f contract.json --agent claude --out chain.json")]
pub(super) struct Split {
    /// The contract as JSON, or as YAML or TOML by its file name; `-` reads JSON from stdin.
    #[arg(short, long, value_name = "CONTRACT")]
    file: PathBuf,

    #[command(flatten)]
    asking: Asking,
}

/// The planner, and how it runs.
#[derive(Args)]
struct Asking {
    /// An agent of `provost.toml`, or codex, claude or gemini [default: the agent `default`].
    #[arg(long, value_name = "NAME", conflicts_with = "agent_cmd")]
    agent: Option<String>,

    /// The planner as a command; it writes its plan to `$PROVOST_RESULT`.
    #[arg(long, value_name = "CMD")]
    agent_cmd: Option<String>,

    /// The file to write [default: stdout]; it must not exist.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Time limit of the planner: 90s, 20m, 2h or 1d.
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = seconds)]
    timeout: u64,

    #[command(flatten)]
    net: Net,
}

impl Asking {
    /// The agent for the work, as an argument: the command of a planner cannot do the work.
    fn worker(&self) -> String {
        match (&self.agent, &self.agent_cmd) {
            (Some(name), _) => format!(" --agent {name}"),
            (None, Some(_)) => " --agent NAME".to_owned(),
            (None, None) => String::new(),
        }
    }
}

/// Refuses an empty request.
pub(super) fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("say what you want".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn plan(plan: &Plan, reader: Reader) -> Outcome {
    let request = plan.request.clone();
    ask(&plan.asking, Task::Plan { request }, &plan.base, reader)
}

pub(super) fn split(split: &Split, reader: Reader) -> Outcome {
    let contract = Box::new(input::contract(&split.file)?.document);
    let value = serde_json::to_value(&contract).unwrap_or_default();
    // A contract that no run would accept is not split.
    let looked = look(&value)?;
    if !looked.verdict.allow {
        return Ok(refused(looked.verdict, reader));
    }
    let base = contract.rollback.baseline_ref.clone();
    ask(&split.asking, Task::Split { contract }, &base, reader)
}

/// Asks the planner, and answers with its plan.
fn ask(asking: &Asking, task: Task, revision: &str, reader: Reader) -> Outcome {
    let place = Places::find()?;
    if let Some(file) = asking.out.as_deref().filter(|file| file.exists()) {
        let failure = Failure::new(Code::UsageError, "exists already").about(file);
        return Err(failure.hint("name another file"));
    }
    let order = PlannerOrder {
        agent: asking.agent(),
        net: &asking.net,
        timeout_sec: asking.timeout,
    };
    let drafted = draft(place, &order, task, revision, reader)?;
    let Drafted {
        plan_id,
        record,
        files,
        planned,
    } = drafted;
    let answer = match planned.made {
        None => refused(planned.verdict, reader),
        Some(Made::Contract(document)) => contract(asking, &document, reader)?,
        Some(Made::Chain(document)) => chain(asking, &document, &files, reader)?,
    };
    if reader == Reader::Person {
        print_message(&format!("record: {}", record.display()));
    }
    Ok(answer.with(PlanRecord { plan_id, record }))
}

/// The planner that the user chose.
pub(super) struct PlannerOrder<'a> {
    pub(super) agent: RequestedAgent,
    pub(super) net: &'a Net,
    pub(super) timeout_sec: u64,
}

/// What a planner made, with its sealed record.
pub(super) struct Drafted {
    pub(super) plan_id: String,
    record: PathBuf,
    /// The files of the commit that it read.
    files: Vec<RepoPath>,
    pub(super) planned: Planned,
}

/// Has the planner do `task` on the commit `revision`.
pub(super) fn draft(
    place: Places,
    order: &PlannerOrder<'_>,
    task: Task,
    revision: &str,
    reader: Reader,
) -> Result<Drafted, Failure> {
    // A missing secret is reported before anything starts.
    order.net.outlet()?;
    let now = clock::now_millis();
    let plan_id = ids::run_id(now)?.replace("run_", "plan_");
    let request = Request {
        plan_id: plan_id.clone(),
        task,
        revision: revision.to_owned(),
        agent: order.agent.clone(),
        net: order.net.places(),
        credentials: order.net.credentials().to_vec(),
        logins: login::found(),
        workspace: workspace()?,
        timeout_sec: order.timeout_sec,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let opened = plan::open(&GitOrigin(&place.repo), &SystemClock, request)?;
    let places = order.net.places();
    let typed = user_consent::Typed {
        agent: match &order.agent {
            RequestedAgent::Named(name) => Some(name),
            RequestedAgent::Typed(_) => None,
        },
        review: None,
        places: &places,
        credentials: order.net.credentials(),
    };
    user_consent::to_plan(&place, &opened.asked.planner, &typed)?;
    machine::outlet(&opened.asked.planner.credentials)?;
    if let Some(adapted) = &opened.asked.planner.adapted {
        agent::find(adapted)?;
    }
    let credentials: Vec<&Credential> = opened.asked.planner.credentials.iter().collect();
    let words = serde_json::to_vec(&opened.asked);
    let words = words.map_err(|error| Failure::of(Code::Bug, &error))?;
    if machine::known(&credentials).is_in(&words) {
        return Err(drive::secret_words().into());
    }
    let files = files(&place, &opened.asked.base_tree)?;
    let record = place.plans().join(&plan_id);
    let planned = sealed(place, &record, &opened, reader)?;
    Ok(Drafted {
        plan_id,
        record,
        files,
        planned,
    })
}

/// Where the record of a plan is.
#[derive(Serialize)]
struct PlanRecord {
    plan_id: String,
    record: PathBuf,
}

/// The answer of a command whose stdout is a document: a refusal goes to stderr.
fn refused(verdict: Verdict, reader: Reader) -> Answer {
    let mut answer = Answer::from(verdict);
    if reader == Reader::Person {
        print_message(answer.text.trim_end());
        answer.text.clear();
    }
    answer
}

impl Asking {
    /// The planner.
    fn agent(&self) -> RequestedAgent {
        match (&self.agent_cmd, &self.agent) {
            (Some(command), _) => RequestedAgent::Typed(command.clone()),
            (None, Some(name)) => RequestedAgent::Named(name.clone()),
            (None, None) => RequestedAgent::Named("default".to_owned()),
        }
    }
}

/// Has the plan made, with its record in the directory `record`.
fn sealed(
    place: Places,
    record: &Path,
    opened: &plan::Opened,
    reader: Reader,
) -> Result<Planned, Failure> {
    place.prepare_with(&place.plans())?;
    let made = DirBuilder::new().mode(0o700).create(record);
    made.map_err(|error| Failure::of(Code::HostFailed, &error).about(record))?;
    let _lock = lock(record, &opened.asked.plan_id)?;
    sweep(&place)?;
    let signer = KeySigner::of(&place)?;
    let cache = place.cache()?.to_owned();
    let plan_id = &opened.asked.plan_id;
    let mut machine = Machine::new(place.repo, &cache, record, plan_id);
    let sent: Vec<&Credential> = opened.asked.planner.credentials.iter().collect();
    machine.know(&sent);
    machine.send(&sent);
    let mut progress = PlannerProgress(ProgressObserver::new(reader == Reader::Program));
    progress.0.follow_other("planner at work");
    let planned = plan::plan(
        &mut plan::Ports {
            host: &mut machine,
            bundle: stores::bundle(record).as_mut(),
            signer: &signer,
            clock: &SystemClock,
            watch: &mut progress,
        },
        opened,
    );
    progress.0.clear();
    Ok(planned?)
}

/// Removes cache directories of planners whose drivers died.
fn sweep(place: &Places) -> Result<(), Failure> {
    let cache = place.cache()?;
    let Ok(entries) = fs::read_dir(cache.join(cache::WORKSPACES)) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let driver = stores::last_owner(&place.plans().join(&name).join(DRIVER_LOCK));
        if name.starts_with("plan_") && !driver.is_some_and(|driver| process_owner::alive(&driver))
        {
            // A directory that cannot be removed now is removed by the next plan.
            let _ = host::remove(cache, &entry.path());
        }
    }
    Ok(())
}

/// The answer with a contract.
fn contract(asking: &Asking, document: &Document, reader: Reader) -> Outcome {
    let value = serde_json::to_value(document).unwrap_or_default();
    let looked = look(&value)?;
    let Some(file) = &asking.out else {
        if reader == Reader::Person {
            print_message(looked.advice_text().trim_end());
        }
        let planned = PlannedContract {
            verdict: &looked.verdict,
            contract: &value,
            advice: &looked.advice,
            role_contract_summary: looked.role_contract_summary.as_ref(),
        };
        return Ok(planned.into());
    };
    write(file, document)?;
    let (place, worker) = (file.display(), asking.worker());
    let written = Written {
        out: file,
        run_id: None,
        contract: Some(value),
        looked,
        words: format!("wrote {place}; nothing was run\nnext: provost run -f {place}{worker}\n"),
    };
    Ok(written.into())
}

#[derive(Serialize)]
struct PlannedContract<'a> {
    verdict: &'a Verdict,
    contract: &'a Value,
    advice: &'a [Misfit],
    role_contract_summary: Option<&'a RoleContractSummary>,
}

impl Answered for PlannedContract<'_> {
    fn text(&self) -> String {
        format!("{:#}\n", self.contract)
    }
}

#[derive(Serialize)]
struct PlannedChain<'a> {
    verdict: SealedVerdict,
    chain: &'a Value,
    out: Option<&'a Path>,
    gaps: &'a [RepoPath],
}

/// The answer with a chain.
fn chain(
    asking: &Asking,
    document: &chain::Document,
    files: &[RepoPath],
    reader: Reader,
) -> Outcome {
    let scopes = |contract: Option<&Document>| {
        let entries = contract.map_or(&[][..], |contract| &contract.allowed_paths);
        Scope::parse(entries).unwrap_or_default()
    };
    let whole = scopes(document.parent.as_ref());
    let children = document.nodes.iter();
    let children: Vec<Scope> = children
        .map(|node| scopes(node.contract.as_ref()))
        .collect();
    let children: Vec<&Scope> = children.iter().collect();
    let gaps = grant::gaps(&whole, &children, files.iter());
    let value = serde_json::to_value(document).unwrap_or_default();
    let planned = PlannedChain {
        verdict: SealedVerdict {
            allow: true,
            code: Code::Ok,
        },
        chain: &value,
        out: asking.out.as_deref(),
        gaps: &gaps,
    };
    let notes = notes(&gaps);
    let text = format!("{value:#}\n");
    let Some(file) = &asking.out else {
        if reader == Reader::Person {
            print_message(notes.trim_end());
        }
        return Ok(Answer::data(planned, text));
    };
    output::unlinked(file)?;
    atomic::create(file, text.as_bytes(), 0o666)
        .map_err(|error| Failure::of(Code::HostFailed, &error).about(file))?;
    let words = format!(
        "wrote {}: {}; nothing was run\n{notes}next: provost chain -f {0}{}\n",
        file.display(),
        counted(document.nodes.len(), "part"),
        asking.worker()
    );
    Ok(Answer::data(planned, words))
}

/// The most paths of a gap that the text output lists.
const MOST_GAPS: usize = 10;

/// Notes about paths of the contract that no part covers.
fn notes(gaps: &[RepoPath]) -> String {
    let line = |path: &RepoPath| format!("note: no part has `{path}`\n");
    let mut text: String = gaps.iter().take(MOST_GAPS).map(line).collect();
    let more = gaps.len().saturating_sub(MOST_GAPS);
    if more > 0 {
        text += &format!("note: and {more} more paths\n");
    }
    neutralise(&text)
}

/// The files of `tree` that a contract can name.
fn files(place: &Places, tree: &provost_core::object::Oid) -> Result<Vec<RepoPath>, Failure> {
    let files = place.repo.read_tree(tree);
    let files = files?;
    let paths = files
        .files
        .keys()
        .filter_map(|path| RepoPath::try_from(path).ok());
    Ok(paths.collect())
}

/// Shows progress while a planner works.
struct PlannerProgress(ProgressObserver);

impl Watch for PlannerProgress {
    fn tick(&mut self, progress: &Progress) -> Control {
        match self.0.progressed(progress) {
            ObserverChoice::Continue => Control::Continue,
            ObserverChoice::Cancel => Control::Cancel,
        }
    }
}
