//! `provost case`: one request becomes a plan, parts, runs, and one judged result.

mod command_name;
mod landing;
mod runner;
mod text;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::thread;

use clap::{Args, Subcommand};
use provost_core::agent::launch::Answer as LaunchAnswer;
use provost_core::bundle::layout::LEDGER;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::question::AnswerMeans;
use provost_core::record::Head;
use provost_core::run::fact::Cancel;
use provost_core::time;
use provost_engine::case::{self, CaseAnswer, CaseOpened, CaseReport, Ports, State, Task};
use provost_engine::opening::{self, Origin as _, OwnLogins, RequestedAgent};
use provost_engine::ports::{Bundle, Ledger, PortError};
use provost_engine::query::{self, RunArchive as _, WorkflowCaseModel};
use provost_host::cancel_request::CancelRequest;
use provost_host::origin::GitOrigin;
use provost_host::{clock, ids, login};
use serde::Serialize;

use super::chain::part_runner;
use super::resume::{Go, take_over};
use crate::answer::{Answer, Failure, Outcome};
use crate::parts;
use crate::person_signing::{self, SigningFlags};
use crate::places::Places;
use crate::session::{self, KeySigner, SystemClock, lock};
use crate::show::Reader;
use crate::stores::{self, DriverGuard, Expected};
use crate::user_consent::Sent;
pub(super) use landing::land;
use runner::CaseThreads;

/// Have a request planned, divided, done, judged as a whole and ready to land.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
A planner writes the contract and divides it into parts; you approve the whole once. The parts run
in parallel, each in its own sandbox. Their results are merged, and the merged whole is judged by
the contract; a part that breaks it is found and fixed. Only the whole lands: `provost land CASE`.

Exit 0: the whole was accepted. Exit 3: your approval is needed, with the command that gives it.

Examples:
  provost case 'Greet people by name' --agent claude --review codex
  provost case 'Add a search page' --planner claude --agent codex --no-review --jobs 2
  provost case list")]
pub(super) struct Case {
    #[command(subcommand)]
    command: Option<CaseCommand>,

    /// The request, in your own words.
    #[arg(required = true, value_parser = super::plan::words)]
    request: Option<String>,

    /// The agent that plans and divides [default: the agent of the parts].
    #[arg(long, value_name = "NAME", conflicts_with = "planner_cmd")]
    planner: Option<String>,

    /// The planner as a command; it writes its plan to `$PROVOST_RESULT`.
    #[arg(long, value_name = "CMD")]
    planner_cmd: Option<String>,

    /// The agent of the parts: one of `provost.toml`, or codex, claude or gemini [default: the
    /// agent `default`].
    #[arg(long, value_name = "NAME", conflicts_with = "agent_cmd")]
    agent: Option<String>,

    /// The agent of the parts as a command; it runs in the sandbox.
    #[arg(long, value_name = "CMD")]
    agent_cmd: Option<String>,

    /// The reviewer of the parts and of the whole: an agent of `provost.toml`, or codex, claude or
    /// gemini.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["review_cmd", "no_review"])]
    review: Option<String>,

    /// The reviewer as a command; it writes its report to `$PROVOST_RESULT`.
    #[arg(long, value_name = "CMD", conflicts_with = "no_review")]
    review_cmd: Option<String>,

    /// Accept the whole without a reviewer; you are asked to approve that.
    #[arg(long)]
    no_review: bool,

    /// How many parts run at once [default: the number of processors].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,

    /// How often a part may be fixed because the whole was refused.
    #[arg(long, value_name = "COUNT", default_value_t = 2,
        value_parser = clap::value_parser!(u32).range(0..=10))]
    retries: u32,

    /// The revision that the work starts from.
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    base: String,

    /// Do the whole as one part.
    #[arg(long)]
    no_split: bool,
}

#[derive(Subcommand)]
enum CaseCommand {
    /// List all cases, newest first.
    List,
    /// Show a case: its parts, the whole, and the next command.
    Show {
        /// The case: its id, or a part of it.
        #[arg(value_name = "CASE")]
        case: String,
    },
}

/// A case that this process drives.
struct OpenCase {
    id: String,
    directory: PathBuf,
    _lock: DriverGuard,
    ledger: Box<dyn Ledger>,
    bundle: Box<dyn Bundle>,
    signer: KeySigner,
}

/// How a case is driven.
struct How<'a> {
    jobs: usize,
    /// The secrets that resumed runs may send.
    send: &'a [Sent],
    reader: Reader,
}

impl How<'_> {
    /// For a step that starts no agent.
    fn without_agents(reader: Reader) -> Self {
        How {
            jobs: 1,
            send: &[],
            reader,
        }
    }
}

impl OpenCase {
    fn begin(place: &Places, id: &str) -> Result<Self, Failure> {
        place.prepare()?;
        let directory = place.run(id);
        let made = DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(|error| Failure::of(Code::HostFailed, &error).about(&directory))?;
        Self::with(place, id, Expected::New)
    }

    /// Takes over the case `id`, if this user began it and no process drives it.
    fn open(place: &Places, id: &str) -> Result<Self, Failure> {
        parts::case_records(place, id)?;
        Self::with(place, id, Expected::Existing)
    }

    fn with(place: &Places, id: &str, expected: Expected) -> Result<Self, Failure> {
        let directory = place.run(id);
        let lock = lock(&directory, id)?;
        let (secret, path) = (place.secret()?, directory.join(LEDGER));
        Ok(Self {
            id: id.to_owned(),
            _lock: lock,
            ledger: stores::open_ledger(&path, expected, Head::genesis(), Some(secret))?,
            bundle: stores::bundle(&directory),
            signer: KeySigner::of(place)?,
            directory,
        })
    }

    fn state(&self) -> Result<State, Failure> {
        Ok(case::fold(self.ledger.as_ref())?)
    }

    /// Carries out `step` with the ports of the case; runs use the agents of `opened`.
    fn with_ports<T>(
        &mut self,
        opened: &CaseOpened,
        How { jobs, send, reader }: How<'_>,
        step: impl FnOnce(&mut Ports<'_>, &Task<'_>) -> Result<T, PortError>,
    ) -> Result<T, Failure> {
        let agents = part_runner::NodeAgents {
            agent: opened.agent.clone(),
            review: opened.review.clone(),
            credentials: Vec::new(),
            places: Vec::new(),
            send: send.to_vec(),
            case: Some(self.id.clone()),
        };
        let began = self.ledger.records().first();
        let began = began.and_then(|first| time::parse(&first.event.ts).ok());
        let began = began.unwrap_or_else(clock::now_millis) / 1000;
        let planner = opened.planner.clone();
        let about = (reader, began);
        let directory = self.directory.clone();
        let mut runner = CaseThreads::new(&self.id, directory, planner, agents, about)?;
        let task = Task { id: &self.id, jobs };
        let mut ports = Ports {
            runner: &mut runner,
            ledger: self.ledger.as_mut(),
            bundle: self.bundle.as_mut(),
            signer: &self.signer,
            clock: &SystemClock,
        };
        Ok(step(&mut ports, &task)?)
    }
}

pub(super) fn run(case: &Case, reader: Reader) -> Outcome {
    match &case.command {
        Some(CaseCommand::List) => return list(),
        Some(CaseCommand::Show { case }) => return show_named(case),
        None => {}
    }
    let Some(request) = &case.request else {
        return list();
    };
    command_name::refuse(request)?;
    let place = Places::find()?;
    let origin = GitOrigin(&place.repo);
    let base_commit = origin.resolve(&case.base)?;
    let policy = origin.policy(&origin.tree(&base_commit)?)?;
    let review = chosen(case.review_cmd.as_ref(), case.review.as_ref());
    if review.is_none() && policy.review.is_none() && !case.no_review {
        let reason = "a case needs a reviewer, and none is named";
        return Err(Failure::new(Code::UsageError, reason)
            .hint("add --review NAME or --review-cmd CMD, or --no-review, which you are then asked to approve"));
    }
    let agent = chosen(case.agent_cmd.as_ref(), case.agent.as_ref());
    let agent = agent.unwrap_or_else(|| RequestedAgent::Named("default".to_owned()));
    let planner = chosen(case.planner_cmd.as_ref(), case.planner.as_ref());
    let planner = planner.unwrap_or_else(|| agent.clone());
    // A name that is wrong is reported before anything is begun.
    let found = login::found();
    for asked in [Some(&planner), Some(&agent), review.as_ref()]
        .into_iter()
        .flatten()
    {
        let own = OwnLogins {
            typed: &[],
            found: &found,
        };
        opening::reading_agent(asked, &policy, own, &[], LaunchAnswer::Free)?;
    }
    let now = clock::now_millis();
    let opened = CaseOpened {
        request: request.clone(),
        base_commit,
        trace_id: crate::trace::trace_id()?,
        planner,
        agent,
        review,
        unreviewed: case.no_review,
        retries: case.retries,
        split: !case.no_split,
        ask: session::case_rules(&policy.ask)?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let id = ids::run_id(now)?.replacen("run_", "case_", 1);
    let jobs = case.jobs.map_or_else(super::chain::processors, usize::from);
    let mut open = OpenCase::begin(&place, &id)?;
    let how = How {
        jobs,
        ..How::without_agents(reader)
    };
    let state = open.with_ports(&opened, how, |ports, task| {
        case::open(ports, task, opened.clone())?;
        let state = case::fold(ports.ledger)?;
        case::drive(ports, task, state)
    })?;
    Ok(answer(&open, &state))
}

fn show_named(name: &str) -> Outcome {
    let place = Places::look()?;
    if let Some(id) = place.find_case(name)? {
        return show(&place, &id);
    }
    let reason = format!("no case is called `{name}`");
    Err(Failure::new(Code::NotFound, reason).hint("provost case list"))
}

/// The agent that the user typed or named.
fn chosen(command: Option<&String>, name: Option<&String>) -> Option<RequestedAgent> {
    let command = command.cloned().map(RequestedAgent::Typed);
    command.or(name.cloned().map(RequestedAgent::Named))
}

fn answer(open: &OpenCase, state: &State) -> Answer {
    let report = CaseReport::of(&open.id, state);
    let exit = match (&state.finished, &state.asked) {
        (Some(verdict), _) => verdict.exit(),
        (None, _) => Exit::NotNow,
    };
    Answer::new(exit, &report, text::case(&report))
}

fn list() -> Outcome {
    let place = Places::look()?;
    let mut cases = Vec::new();
    for id in place.cases()?.into_iter().rev() {
        let state = parts::case_state(&place, &id);
        cases.push((id, state));
    }
    Ok(text::list(&cases))
}

/// The cases that have not ended, as text.
pub(super) fn open_cases(place: &Places) -> String {
    let mut open = Vec::new();
    for id in place.cases().unwrap_or_default() {
        let state = parts::case_state(place, &id);
        if state.as_ref().is_ok_and(|state| state.finished.is_none()) {
            open.push((id, state));
        }
    }
    match open.as_slice() {
        [] => String::new(),
        open => text::list(open).text,
    }
}

pub(super) fn show(place: &Places, id: &str) -> Outcome {
    let state = parts::case_state(place, id)?;
    let report = CaseReport::of(id, &state);
    let model = CaseModel {
        workflow_case_read_model: WorkflowCaseModel::of(place, &report),
    };
    Ok(Answer::data(&report, text::case(&report)).with(model))
}

/// What a case adds for readers of roles.
#[derive(Serialize)]
struct CaseModel {
    workflow_case_read_model: WorkflowCaseModel,
}

/// Continues the case `id` after its driver died, a question was answered, or the machine failed.
pub(super) fn resume(id: &str, send: &[Sent], reader: Reader) -> Outcome {
    let place = Places::find()?;
    let mut open = OpenCase::open(&place, id)?;
    drive(&mut open, false, send, reader)
}

/// Continues the case `id`, and tries again what was refused.
pub(super) fn retry(id: &str, send: &[Sent], reader: Reader) -> Outcome {
    let place = Places::find()?;
    let mut open = OpenCase::open(&place, id)?;
    drive(&mut open, true, send, reader)
}

/// The run that a command about the case `id` is about: the one that judged the whole, or else the
/// last one that was refused.
pub(super) fn run_of(place: &Places, id: &str) -> Result<String, Failure> {
    let state = parts::case_state(place, id)?;
    let runs = state.runs();
    let whole = runs.iter().rev().find(|(part, _)| part.is_none());
    let found = whole
        .or_else(|| runs.last())
        .map(|(_, run)| (*run).to_owned());
    found.ok_or_else(|| {
        let reason = format!("{id} has no run yet");
        Failure::new(Code::NotFound, reason).hint(format!("provost show {id}"))
    })
}

fn drive(open: &mut OpenCase, again: bool, send: &[Sent], reader: Reader) -> Outcome {
    let opened = open.state()?.opened;
    let how = How {
        jobs: thread::available_parallelism().map_or(1, usize::from),
        send,
        reader,
    };
    let state = open.with_ports(&opened, how, |ports, task| {
        let state = case::resume(ports, task, again)?;
        case::drive(ports, task, state)
    })?;
    Ok(answer(open, &state))
}

/// The answer of a person to the question of a case.
pub(super) struct Reply<'a> {
    pub(super) approved: bool,
    /// The digest of the question that the person has seen; the open question if none is named.
    pub(super) digest: Option<&'a str>,
    pub(super) reason: &'a str,
    /// How long the yes is valid, in seconds.
    pub(super) lasts_sec: u64,
    pub(super) signing: &'a SigningFlags,
    /// Whether the case is driven on at once.
    pub(super) go: bool,
    /// The secrets that resumed runs may send.
    pub(super) send: &'a [Sent],
}

pub(super) fn reply(id: &str, reply: &Reply<'_>, reader: Reader) -> Outcome {
    let place = Places::find()?;
    let mut open = OpenCase::open(&place, id)?;
    let mut state = open.state()?;
    let asked = state.asked.as_ref().map(|question| question.digest.clone());
    let lasts = i64::try_from(reply.lasts_sec.saturating_mul(1000)).unwrap_or(i64::MAX);
    let mut given = CaseAnswer {
        digest: reply
            .digest
            .map(str::to_owned)
            .or(asked)
            .unwrap_or_default(),
        approved: reply.approved,
        by: session::person()?,
        reason: reply.reason.to_owned(),
        how: AnswerMeans::Terminal,
        until: time::render(clock::now_millis().saturating_add(lasts)),
        signature: None,
    };
    let needs = state.opened.ask.needs;
    (given.how, given.signature) = person_signing::give(reply.signing, needs, &given.statement())?;
    let opened = state.opened.clone();
    let how = How::without_agents(reader);
    open.with_ports(&opened, how, |ports, task| {
        case::answer(ports, task, &mut state, given)
    })?;
    if reply.go || !reply.approved {
        let mut done = drive(&mut open, false, reply.send, reader)?;
        if !reply.approved {
            // The verdict is a refusal, as the user asked.
            done.exit = Exit::Yes;
        }
        return Ok(done);
    }
    let report = CaseReport::of(id, &state);
    let approved = report.question.map(text::asked).unwrap_or_default();
    let text = format!("approved: {id}\n{approved}next: provost resume {id}\n");
    Ok(Answer::data(&report, text))
}

/// Cancels the case `id` and its active runs, whichever process drives them.
pub(super) fn cancel(id: &str, reason: &str, reader: Reader) -> Outcome {
    let place = Places::find()?;
    let state = parts::case_state(&place, id)?;
    if let Some(verdict) = &state.finished {
        let reason = format!("{id} is over already: {}", verdict.reason);
        return Err(Failure::new(Code::RunOver, reason).hint(format!("provost show {id}")));
    }
    let cancel = Cancel {
        by: Some(session::person()?),
        at: clock::now(),
        reason: reason.to_owned(),
    };
    let runs = state.runs().into_iter().map(|(_, run_id)| run_id);
    let open_runs: Vec<&str> = runs.filter(|run_id| !place.is_sealed(run_id)).collect();
    for run_id in &open_runs {
        CancelRequest::of(&place.root, run_id).leave(&cancel)?;
    }
    if place.is_driven(id) {
        CancelRequest::of(&place.root, id).leave(&cancel)?;
        let text = format!("asked {id} to end\nnext: provost show {id}\n");
        return Ok(Answer::data(CaseReport::of(id, &state), text));
    }
    for run_id in open_runs {
        // A run that never began has nothing to end.
        if !query::never_began(&place, run_id) {
            take_over(run_id, &Go::End, reader)?;
        }
        CancelRequest::of(&place.root, run_id).forget();
    }
    let mut open = OpenCase::open(&place, id)?;
    let mut state = open.state()?;
    let opened = state.opened.clone();
    let how = How::without_agents(reader);
    open.with_ports(&opened, how, |ports, task| {
        case::cancel(ports, task, &mut state, reason)
    })?;
    let report = CaseReport::of(id, &state);
    Ok(Answer::data(&report, text::case(&report)))
}
