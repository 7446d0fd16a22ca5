//! `provost change`: controlled changes from the command line, with the answers of the MCP tools.
//!
//! Each call is a process of its own, so an agent is known by a name (`--agent`, `PROVOST_AGENT`)
//! or else by the process that started us, which for a person is the shell of the terminal.
//! `--json` has the whole answer; the text output has the outcome and the next command.

mod text;

use text::Asked;
pub(super) use text::row;

use clap::{Args, Subcommand};
use provost_change::next_step::Audience;
use provost_change::start::decide::{DirtyPolicy, OnConflict};
use provost_change::tools::Request;
use provost_change::tools::answers::Detail;
use provost_change::tools::arguments::{
    Action, AnalysisArguments, BlastArtifactArguments, ClaimsArguments, CompareArguments,
    ContractArguments, FinishArguments, ManageArguments, Mode, ReceiptArguments, ScopeArguments,
    StartArguments,
};
use provost_core::code::Code;
use provost_core::path::is_segment;
use provost_host::process_owner;
use provost_lens::structure::budget::Strictness;
use serde_json::{Map, Value};

use crate::answer::{Answer, Failure, Outcome};
use crate::change::{ChangeSession, Identity, Trouble};
use crate::places::Places;

#[derive(Args)]
pub(super) struct Change {
    /// Your name, from one call to the next [default: `PROVOST_AGENT`, or else the shell you call
    /// from].
    #[arg(long, global = true, value_name = "NAME")]
    agent: Option<String>,

    /// The directory to analyze; scopes are relative to it.
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    root: String,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone)]
#[command(defer = true)]
enum Command {
    /// Analyze the checkout; needed before a start, and again after the last edit.
    Analyze(Analysis),
    /// Declare what you will touch, and learn whether you may edit now.
    Start(Start),
    /// Report what you touched, and get a verdict and a receipt.
    Finish(Finish),
    /// Show the state of one of your intents.
    Status(Which),
    /// Declare what you will touch, and wait while other agents hold it.
    Queue(Start),
    /// Activate a waiting intent if its turn has come.
    Promote(Which),
    /// Renew the lease of an intent.
    Renew(Renew),
    /// Release one intent, or all of yours.
    Clear(Maybe),
    /// Take over an intent whose agent died.
    Recover(Recover),
    /// List the active changes in this repository.
    List,
    /// Check what was touched against what was declared.
    Check(Touched),
    /// Judge a patch without finishing the change.
    Verify(Verify),
    /// Print the receipt of a finished change, by its digest.
    Receipt(Digest),
    /// Compare two of your analyses.
    Compare(Compare),
    /// Check claims about the code against an analysis.
    Claims(Claims),
    /// Check one of your analyses against limits.
    Gates(Gates),
    /// Print the whole blast radius of a start, by the name or digest that the start printed.
    Blast(Digest),
    /// Close expired intents and those of dead agents.
    Gc,
    /// Restart one of your intents, or close one whose agent is dead.
    Reset(Which),
}

#[derive(Args, Clone)]
struct Analysis {
    /// The file of findings that the repository accepts [default: `provost.baseline.json`, if it
    /// exists].
    #[arg(long, value_name = "FILE")]
    baseline: Option<String>,
}

#[derive(Args, Clone)]
struct Gates {
    /// The analysis [default: the newest].
    #[arg(long, value_name = "RUN")]
    run: Option<String>,

    /// A switch of the tool `evaluate_gates`, by its name (`fail_cycles`) or with its number
    /// (`fail_complexity=20`); repeatable.
    #[arg(long = "gate", value_name = "NAME[=NUMBER]", required = true)]
    gates: Vec<String>,
}

#[derive(Args, Clone)]
struct Start {
    /// What you will do, in words.
    intent: String,

    /// A file that you will touch; repeatable. A directory keeps other agents out, but a finish
    /// accepts only files that were named.
    #[arg(long = "file", value_name = "PATH", required = true)]
    files: Vec<String>,

    /// A file or directory that you may touch in passing; repeatable.
    #[arg(long = "related", value_name = "PATH")]
    related: Vec<String>,

    /// A pattern of paths that you will not touch; repeatable.
    #[arg(long = "forbid", value_name = "PATTERN")]
    forbidden: Vec<String>,

    /// The uncommitted changes in the scope are your own.
    #[arg(long)]
    continue_own_wip: bool,

    /// Lifetime of the intent, in seconds.
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<i64>,

    /// How strict the change is judged: ci, strict or relaxed [default: ci].
    #[arg(long, value_name = "WORD")]
    strictness: Option<String>,
}

#[derive(Args, Clone)]
struct Finish {
    #[command(flatten)]
    touched: Touched,

    /// The analysis from after the last edit.
    #[arg(long, value_name = "RUN")]
    after: Option<String>,

    /// Claims about the change, which are checked.
    #[arg(long, value_name = "TEXT")]
    claims: Option<String>,

    /// A description of the change, for people.
    #[arg(long, value_name = "TEXT")]
    review: Option<String>,

    /// A stricter check than the start asked for: ci or strict.
    #[arg(long, value_name = "WORD")]
    strictness: Option<String>,

    /// List every path.
    #[arg(long)]
    full: bool,
}

#[derive(Args, Clone)]
struct Touched {
    /// The intent.
    intent: String,

    /// A file that you touched; repeatable.
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<String>,

    /// Take all paths that differ from this commit instead.
    #[arg(long, value_name = "REV", conflicts_with = "files")]
    diff: Option<String>,
}

#[derive(Args, Clone)]
struct Which {
    /// The intent.
    intent: String,
}

#[derive(Args, Clone)]
struct Maybe {
    /// The intent [default: all of yours].
    intent: Option<String>,
}

#[derive(Args, Clone)]
struct Renew {
    /// The intent.
    intent: String,

    /// Duration of the lease, in seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<i64>,
}

#[derive(Args, Clone)]
struct Recover {
    /// The intent.
    intent: String,

    /// An analysis of yours.
    #[arg(long, value_name = "RUN")]
    run: String,
}

#[derive(Args, Clone)]
struct Verify {
    /// Your intent; or name the earlier analysis with --before.
    #[arg(long, value_name = "INTENT")]
    intent: Option<String>,

    /// The analysis from before.
    #[arg(long, value_name = "RUN")]
    before: Option<String>,

    /// The analysis from after.
    #[arg(long, value_name = "RUN")]
    after: Option<String>,

    /// A file that was touched; repeatable.
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<String>,
}

#[derive(Args, Clone)]
struct Digest {
    /// The digest that the finish or the start printed, or its name.
    digest: String,
}

#[derive(Args, Clone)]
struct Compare {
    /// The analysis from before.
    before: String,

    /// The analysis from after [default: the newest].
    after: Option<String>,
}

#[derive(Args, Clone)]
struct Claims {
    /// The text.
    text: String,

    /// The analysis that the text is about [default: the newest].
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

pub(super) fn run(change: &Change) -> Outcome {
    let set = std::env::var("PROVOST_AGENT")
        .ok()
        .filter(|name| !name.is_empty());
    let agent = change.agent.clone().or(set);
    let identity = identity(agent.as_deref())?;
    let label = match &identity {
        Identity::Named(name) => name.clone(),
        Identity::Process(_) | Identity::Caller(_) => "command line".to_owned(),
    };
    let command = meant(&change.command, &change.root)?;
    let request = request(&command, &change.root)?;
    let answer = ChangeSession::new(identity, &label)
        .in_root(&change.root)
        .call(&request);
    let answer = answer.map_err(|trouble| {
        let failure = trouble.failure();
        let unnamed = agent.is_none() && failure.code == Code::InputInvalid;
        if unnamed && failure.reason.contains("this session has no") {
            return failure.hint(
                "calls from different shells are different agents; name yourself with --agent NAME",
            );
        }
        failure
    })?;
    let asked = Asked {
        command: &command,
        agent: change.agent.as_deref(),
        root: &change.root,
    };
    let json = |to: Audience| {
        let json = answer.json(to);
        json.map_err(|error| Trouble::from(error).failure())
    };
    Ok(Answer {
        exit: answer.exit(),
        text: text::render(&asked, &answer, &json(Audience::CommandLine)?),
        json: json(Audience::Tool)?,
    })
}

/// The command, with a part of a change's name replaced by the whole name.
fn meant(command: &Command, root: &str) -> Result<Command, Failure> {
    let mut command = command.clone();
    let typed = match &mut command {
        Command::Finish(finish) => Some(&mut finish.touched.intent),
        Command::Check(touched) => Some(&mut touched.intent),
        Command::Status(which) | Command::Promote(which) | Command::Reset(which) => {
            Some(&mut which.intent)
        }
        Command::Clear(which) => which.intent.as_mut(),
        Command::Renew(renew) => Some(&mut renew.intent),
        Command::Recover(recover) => Some(&mut recover.intent),
        Command::Verify(verify) => verify.intent.as_mut(),
        Command::Analyze(_)
        | Command::Start(_)
        | Command::Queue(_)
        | Command::List
        | Command::Receipt(_)
        | Command::Compare(_)
        | Command::Claims(_)
        | Command::Gates(_)
        | Command::Blast(_)
        | Command::Gc => None,
    };
    // Outside of a repository, the tool reports that.
    if let (Some(typed), Ok(place)) = (typed, Places::of(std::path::Path::new(root)))
        && let Some(whole) = place.find_change(typed)?
    {
        *typed = whole;
    }
    Ok(command)
}

/// The identity of the caller.
fn identity(agent: Option<&str>) -> Result<Identity, Failure> {
    match agent {
        Some(name) if is_segment(name) => Ok(Identity::Named(name.to_owned())),
        Some(_) => {
            let words = "an agent's name has letters, digits, `.`, `_` and `-`";
            Err(Failure::new(Code::UsageError, words))
        }
        None => {
            let owner =
                process_owner::parent().map_err(|error| Failure::of(Code::HostFailed, &error))?;
            Ok(Identity::Caller(owner))
        }
    }
}

/// The call of a tool that a command stands for.
fn request(command: &Command, root: &str) -> Result<Request, Failure> {
    let root = || root.to_owned();
    let manage = |action: Action, intent: Option<&String>| ManageArguments {
        root: Some(root()),
        intent_id: intent.cloned(),
        ..ManageArguments::new(action)
    };
    let one = |action: Action, which: &Which| Request::Manage(manage(action, Some(&which.intent)));
    Ok(match command {
        Command::Analyze(analysis) => Request::Analyse(AnalysisArguments {
            root: root(),
            baseline_path: analysis.baseline.clone(),
            ..AnalysisArguments::default()
        }),
        Command::Gates(gates) => Request::read("evaluate_gates", &switches(gates))
            .map_err(|error| Trouble::from(error).failure())?,
        Command::Blast(blast) => Request::BlastArtifact(artifact(&blast.digest, root())),
        Command::Start(start) => Request::Start(declared(start, root(), OnConflict::Block)?),
        Command::Queue(start) => Request::Start(declared(start, root(), OnConflict::Queue)?),
        Command::Finish(finish) => Request::Finish(finished(finish)?),
        Command::Status(which) => one(Action::Get, which),
        Command::Promote(which) => one(Action::Promote, which),
        Command::Reset(which) => one(Action::ResetWorkspace, which),
        Command::Clear(which) => Request::Manage(manage(Action::Clear, which.intent.as_ref())),
        Command::List => Request::Manage(manage(Action::ListWorkspace, None)),
        Command::Gc => Request::Manage(manage(Action::GcWorkspace, None)),
        Command::Renew(renew) => Request::Manage(ManageArguments {
            lease_seconds: renew.seconds,
            ..manage(Action::Renew, Some(&renew.intent))
        }),
        Command::Recover(recover) => Request::Manage(ManageArguments {
            run_id: Some(recover.run.clone()),
            ..manage(Action::Recover, Some(&recover.intent))
        }),
        Command::Check(touched) => Request::Manage(ManageArguments {
            changed_files: touched.named(),
            diff_ref: touched.diff.clone(),
            ..manage(Action::Check, Some(&touched.intent))
        }),
        Command::Verify(verify) => Request::Contract(verified(verify)),
        Command::Receipt(receipt) => Request::Receipt(ReceiptArguments {
            root: root(),
            run_id: None,
            receipt_digest: Some(receipt.digest.clone()),
            format: None,
        }),
        Command::Compare(compare) => Request::Compare(CompareArguments {
            run_id_before: compare.before.clone(),
            run_id_after: compare.after.clone(),
            focus: None,
        }),
        Command::Claims(claims) => Request::Claims(ClaimsArguments {
            text: claims.text.clone(),
            run_id: claims.run.clone(),
            ..ClaimsArguments::default()
        }),
    })
}

/// The blast radius of a start, by its name or by its digest.
fn artifact(typed: &str, root: String) -> BlastArtifactArguments {
    let is_name = typed.starts_with("blast-");
    BlastArtifactArguments {
        root,
        run_id: None,
        blast_artifact_id: is_name.then(|| typed.to_owned()),
        projection_digest: (!is_name).then(|| typed.to_owned()),
    }
}

fn verified(verify: &Verify) -> ContractArguments {
    ContractArguments {
        mode: Mode::Verify,
        run_id: None,
        before_run_id: verify.before.clone(),
        after_run_id: verify.after.clone(),
        intent_id: verify.intent.clone(),
        strictness: None,
        diff_ref: None,
        changed_files: (!verify.files.is_empty()).then(|| verify.files.clone()),
    }
}

/// The gates by their names; the schema of the tool refuses others.
fn switches(gates: &Gates) -> Map<String, Value> {
    let mut given = Map::from_iter([("run_id".to_owned(), Value::from(gates.run.clone()))]);
    for gate in &gates.gates {
        let (name, value) = match gate.split_once('=') {
            None => (gate.as_str(), Value::from(true)),
            Some((name, number)) => match number.parse::<i64>() {
                Ok(number) => (name, Value::from(number)),
                Err(_) => (name, Value::from(number)),
            },
        };
        given.insert(name.to_owned(), value);
    }
    given
}

fn declared(
    start: &Start,
    root: String,
    on_conflict: OnConflict,
) -> Result<StartArguments, Failure> {
    Ok(StartArguments {
        root,
        intent: start.intent.clone(),
        scope: ScopeArguments {
            allowed_files: start.files.clone(),
            allowed_related: Some(start.related.clone()),
            forbidden: Some(start.forbidden.clone()),
        },
        on_conflict: Some(on_conflict),
        dirty_scope_policy: start
            .continue_own_wip
            .then_some(DirtyPolicy::ContinueOwnWip),
        ttl_seconds: start.ttl,
        strictness: strictness(start.strictness.as_deref())?,
        ..StartArguments::default()
    })
}

fn finished(finish: &Finish) -> Result<FinishArguments, Failure> {
    Ok(FinishArguments {
        intent_id: finish.touched.intent.clone(),
        changed_files: finish.touched.named(),
        diff_ref: finish.touched.diff.clone(),
        after_run_id: finish.after.clone(),
        claims_text: finish.claims.clone(),
        review_text: finish.review.clone(),
        strictness: strictness(finish.strictness.as_deref())?,
        detail_level: finish.full.then_some(Detail::Full),
        ..FinishArguments::default()
    })
}

fn strictness(word: Option<&str>) -> Result<Option<Strictness>, Failure> {
    let known = word
        .map(|word| Strictness::parse(word).ok_or(word))
        .transpose();
    known.map_err(|_| {
        let words = "`strictness` is ci, strict or relaxed";
        Failure::new(Code::InputInvalid, words)
    })
}

impl Touched {
    /// The files by name, unless a commit stands for them.
    fn named(&self) -> Option<Vec<String>> {
        self.diff.is_none().then(|| self.files.clone())
    }
}
