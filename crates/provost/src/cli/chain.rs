//! `provost chain`: runs several contracts as ordinary runs, in parallel, with one report.

mod combined;
mod earlier_rounds;
pub(super) mod part_runner;

use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use provost_core::bundle::layout::LEDGER;
use provost_core::code::Code;
use provost_core::contract::additions::AdditionsFrom;
use provost_core::contract::check::{Purpose, Rules};
use provost_core::contract::{self, Problem};
use provost_core::document;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::json;
use provost_core::net::credential::Credential;
use provost_core::object::Oid;
use provost_core::record::Head;
use provost_core::verdict::Verdict;
use provost_engine::chain::{
    self, Chain, Document, NodeAgents, Ports, Standing, State, Task,
    report::{self, ChainReport},
};
use provost_engine::drive;
use provost_engine::opening::{self, Origin as _, RequestedAgent};
use provost_host::machine;
use provost_host::origin::GitOrigin;
use serde::Serialize;

use super::net::{Again, Net};
use super::run::references;
use crate::answer::{Answer, Failure, Outcome};
use crate::input;
use crate::parts;
use crate::places::Places;
use crate::session::{KeySigner, SystemClock, lock};
use crate::show::{Reader, neutralise, relative};
use crate::stores::{self, Expected};
use part_runner::PartThreads;

/// Run several contracts, some of which start from the results of others.
#[derive(Args)]
#[command(after_help = "\
Each node is an ordinary run with its own bundle. It starts from the base of the chain, or from the
results of the nodes it needs. Called again, a chain keeps finished nodes and continues with the
rest. `provost explain chain` describes the file format.

Exit 0: every node was accepted. Otherwise the status of the first node that was not.

Examples:
  provost chain -f chain.json --agent claude
  provost chain -f chain.yaml --agent-cmd my-agent --jobs 2 --json")]
pub(super) struct Run {
    /// The chain as JSON, or as YAML or TOML by its file name; `-` reads JSON from stdin.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,

    /// How many nodes run at once [default: the number of processors].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,

    /// The revision that nodes without needs start from.
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    base: String,

    /// Run nodes again that were refused when the chain was called before.
    #[arg(long)]
    again: bool,

    /// An agent of `provost.toml`, or codex, claude or gemini [default: the agent `default`].
    #[arg(long, value_name = "NAME", conflicts_with = "agent_cmd")]
    agent: Option<String>,

    /// The agent as a command; it is split into words and runs in the sandbox.
    #[arg(long, value_name = "CMD")]
    agent_cmd: Option<String>,

    /// The reviewer of each result: an agent of `provost.toml`, or codex, claude or gemini.
    #[arg(long, value_name = "NAME", conflicts_with = "review_cmd")]
    review: Option<String>,

    /// The reviewer as a command; it leaves its report at `$PROVOST_RESULT`.
    #[arg(long, value_name = "CMD")]
    review_cmd: Option<String>,

    #[command(flatten)]
    net: Net,

    #[command(flatten)]
    named: Again,
}

pub(super) fn run(run: &Run, reader: Reader) -> Outcome {
    let place = Places::find()?;
    // A missing secret is reported before anything starts.
    run.net.outlet()?;
    let document = read(&run.file)?;
    let origin = GitOrigin(&place.repo);
    let base = origin.resolve(&run.base)?;
    let chain = match check(&place, &document, &base)? {
        Ok(chain) => chain,
        Err(problems) => return Ok(refusal(&problems).into()),
    };
    let text = serde_json::to_vec_pretty(&document);
    let text = text.map_err(|error| Failure::of(Code::Bug, &error))?;
    run.refuse_unused(&chain)?;
    let credentials: Vec<&Credential> = run.net.credentials().iter().collect();
    if machine::known(&credentials).is_in(&text) {
        return Err(drive::secret_words().into());
    }
    let digest = document.digest();
    let id = chain::id(&digest, &base);
    let directory = place.chains().join(&id);
    let secret = place.secret()?;
    parts::records(&place, &id)?;
    place.prepare_with(&directory)?;
    let _lock = lock(&directory, &id)?;
    let mut bundle = stores::bundle(&directory);
    bundle.put(parts::DOCUMENT, &text)?;
    let path = directory.join(LEDGER);
    let mut ledger = stores::open_ledger(&path, Expected::Either, Head::genesis(), Some(secret))?;
    let signer = KeySigner::of(&place)?;
    let task = Task {
        id: &id,
        chain: &chain,
        sha256: &digest,
        base: &base,
        jobs: run.jobs.map_or_else(processors, usize::from),
        again: run.again,
        hands: &run.said(),
    };
    let mut runner = PartThreads::new(place, directory.clone(), run.agents(), reader);
    let state = provost_engine::chain::drive(
        &mut Ports {
            runner: &mut runner,
            ledger: ledger.as_mut(),
            bundle: bundle.as_mut(),
            signer: &signer,
            clock: &SystemClock,
        },
        &task,
    )
    .map_err(|error| match error.verdict().code {
        Code::UsageError => Failure::from(error).hint(
            "call the chain with the same flags as before; to use other agents, change the \
             document: that is another chain",
        ),
        _ => Failure::from(error),
    })?;
    Ok(answer(&id, &chain, &state, &directory))
}

pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

impl Run {
    /// Refuses flags that have no effect on any node.
    fn refuse_unused(&self, chain: &Chain) -> Result<(), Failure> {
        let hint = "write the place into `x_provost.net` of the contracts that need it";
        if let Some(place) = self.net.named() {
            let reason =
                format!("`--net {place}`: the contracts of a chain grant places, not a flag");
            return Err(Failure::new(Code::UsageError, reason).hint(hint));
        }
        let granted = |it: &&Credential| {
            chain.nodes.iter().any(|node| {
                let extra = node.contract.document.x_provost.as_ref();
                let places = extra.map_or(&[][..], |extra| extra.net.as_slice());
                opening::is_granted(&it.endpoint, places)
            })
        };
        match self.net.credentials().iter().find(|it| !granted(it)) {
            None => Ok(()),
            Some(it) => {
                let place = &it.endpoint;
                let reason = format!("`--credential` for `{place}`: no contract grants that place");
                Err(Failure::new(Code::UsageError, reason).hint(hint))
            }
        }
    }

    /// The agents of every node, as the ledger records them.
    fn said(&self) -> NodeAgents {
        let text = |agent: RequestedAgent| match agent {
            RequestedAgent::Typed(text) | RequestedAgent::Named(text) => text,
        };
        let agents = self.agents();
        let credentials = agents.credentials.iter();
        NodeAgents {
            agent: text(agents.agent),
            review: agents.review.map(text),
            credentials: credentials.map(ToString::to_string).collect(),
        }
    }

    /// The agents of every node.
    fn agents(&self) -> part_runner::NodeAgents {
        let typed = |command: &Option<String>, name: &Option<String>| {
            let command = command.clone().map(RequestedAgent::Typed);
            command.or(name.clone().map(RequestedAgent::Named))
        };
        part_runner::NodeAgents {
            agent: typed(&self.agent_cmd, &self.agent)
                .unwrap_or_else(|| RequestedAgent::Named("default".to_owned())),
            review: typed(&self.review_cmd, &self.review),
            credentials: self.net.credentials().to_vec(),
            places: self.net.places(),
            send: self.named.send.clone(),
            case: None,
        }
    }
}

/// Reads a chain, with the contracts that it names by file.
fn read(file: &Path) -> Result<Document, Failure> {
    let bytes = input::read(file, json::LARGEST)?;
    let wrong = |error: &dyn std::error::Error| {
        Failure::of(Code::InputInvalid, error)
            .about(file)
            .hint("`provost explain chain` shows every field and an example")
    };
    let value = document::parse(input::format(file), &bytes).map_err(|error| wrong(&error))?;
    let mut document = Document::from_value(&value).map_err(|error| wrong(&error))?;
    let beside = file.parent().unwrap_or(Path::new("."));
    for node in &mut document.nodes {
        if let Some(name) = node.contract_file.take() {
            node.contract = Some(input::contract(&beside.join(name))?.document);
        }
    }
    Ok(document)
}

/// Judges a chain by the policy of its base, with the files that its contracts refer to.
pub(super) fn check(
    place: &Places,
    document: &Document,
    base: &Oid,
) -> Result<Result<Chain, Vec<Problem>>, Failure> {
    let bug = |error| Failure::of(Code::Bug, &error);
    let origin = GitOrigin(&place.repo);
    let tree = origin.tree(base)?;
    let policy = origin.policy(&tree)?;
    let shipped = CommandPolicy::shipped().map_err(bug)?;
    let policy = shipped.with(policy.commands).map_err(bug)?;
    let mut checked = opening::with_files(&origin, &tree, |read| {
        let rules = Rules {
            policy: &policy,
            trust: Trust::FromFile,
            purpose: Purpose::Run,
            additions: AdditionsFrom::Base(read),
        };
        chain::check(document, &rules)
    })?;
    for (at, node) in document.nodes.iter().enumerate() {
        let missing = node.contract.as_ref().map(|it| references(place, it));
        for problem in missing.into_iter().flatten() {
            let path = format!("/nodes/{at}/contract{}", problem.path);
            let problem = Problem { path, ..problem };
            match &mut checked {
                Ok(_) => checked = Err(vec![problem]),
                Err(problems) => problems.push(problem),
            }
        }
    }
    Ok(checked)
}

/// The refusal of a chain, by the rule that the first problem breaks.
pub(super) fn refusal(problems: &[Problem]) -> Verdict {
    let verdict = contract::judge(problems);
    let code = problems.first().map_or(Code::ChainInvalid, |one| one.code);
    Verdict {
        // A contract in a chain that breaks a rule is refused as it would be alone.
        code: match code {
            Code::ChainInvalid | Code::PackageExceedsGrant | Code::ParentFingerprintMismatch => {
                code
            }
            _ => verdict.code,
        },
        ..verdict
    }
}

fn answer(id: &str, chain: &Chain, state: &State, directory: &Path) -> Answer {
    let facts = ChainAnswer {
        report: ChainReport::of(id, chain, state),
        directory,
    };
    let verdict = state.finished.clone();
    let verdict = verdict.unwrap_or_else(|| Verdict::deny(Code::Bug, "it has no verdict"));
    let mut text = format!("{}: {id}, {}\n", report::word(&verdict), verdict.reason);
    let width = chain.nodes.iter().map(|node| node.id.len()).max();
    let width = width.unwrap_or_default();
    let mut next = Vec::new();
    for at in &chain.order {
        let node = &chain.nodes[*at].id;
        let standing = state.nodes.get(node);
        text += &format!("  {node:width$}  {}\n", row(standing));
        next.extend(step(standing, verdict.allow));
    }
    if let Some(tested) = &state.tested {
        let reason = &tested.reason;
        text += &format!(
            "  {:width$}  {}  {reason}\n",
            "together",
            report::word(tested)
        );
    }
    let file = directory.join(provost_engine::chain::REPORT);
    text += &format!("  report   {}\n", relative(&file));
    if state.tested.as_ref().is_some_and(|tested| !tested.allow) {
        next.push("split the contract differently; the parts do not land as they are".to_owned());
    }
    for step in next {
        text += &format!("next: {step}\n");
    }
    Answer::new(verdict.exit(), facts, neutralise(&text))
}

#[derive(Serialize)]
struct ChainAnswer<'a> {
    #[serde(flatten)]
    report: ChainReport<'a>,
    directory: &'a Path,
}

/// The next command for a node: when the chain was accepted, every run lands.
fn step(standing: Option<&Standing>, accepted: bool) -> Option<String> {
    let Some(Standing::Ended(end)) = standing else {
        return None;
    };
    let run_id = &end.run_id;
    match end.accepted() {
        Some(_) => accepted.then(|| format!("provost land {run_id}")),
        None if end.waits() => Some(format!(
            "provost approve {run_id} # or: provost reject {run_id}; then this command again"
        )),
        None => Some(format!("provost why {run_id}")),
    }
}

/// The outcome of a node, in one line.
fn row(standing: Option<&Standing>) -> String {
    match standing {
        Some(Standing::Ended(end)) if end.accepted().is_some() => {
            format!("accepted  {}", end.run_id)
        }
        Some(Standing::Ended(end)) if end.waits() => {
            format!("waiting   {}  {}", end.run_id, end.verdict.reason)
        }
        Some(Standing::Ended(end)) => {
            let verdict = &end.verdict;
            format!(
                "refused   {}  {}: {}",
                end.run_id, verdict.code, verdict.reason
            )
        }
        Some(Standing::NotRun(verdict)) => {
            format!("not run   {}: {}", verdict.code, verdict.reason)
        }
        Some(Standing::Running { run_id } | Standing::Left { run_id }) => {
            format!("running   {run_id}")
        }
        None => "waiting".to_owned(),
    }
}
