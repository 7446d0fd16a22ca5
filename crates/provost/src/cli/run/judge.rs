//! `provost judge REV`: has the gates judge a change that any agent or person made.

use std::path::PathBuf;

use clap::Args;
use provost_core::code::Code;
use provost_core::contract;
use provost_core::contract::document::AcceptMode;
use provost_core::object::Oid;
use provost_core::run::fact::{ExistingWork, Names, Revision};
use provost_core::tier::Tier;
use provost_engine::opening::Origin as _;
use provost_host::origin::GitOrigin;
use provost_host::{clock, ids};

use super::{Begun, CONTRACT, PERMITS, Run, begin_file, begin_typed, objective, start, ticketed};
use crate::answer::{Failure, Outcome};
use crate::cli::duration::seconds;
use crate::cli::limits::Limits;
use crate::cli::net::Net;
use crate::input;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::show::{Reader, one_line};

/// Judge a branch or commit that any agent or person made; no agent is started.
#[derive(Args)]
#[command(after_help = "\
The files of the revision are compared with the base and judged as an agent's work would be: diff
gate, review if there is a reviewer, acceptance commands, seal. The bundle names the revision, and an
accepted one lands with `provost land` as one commit.

Examples:
  provost judge feature --allow src --accept 'cargo test'
  provost judge refs/pull/7/head --base main --allow src --accept 'pytest -q' --review claude")]
pub(in crate::cli) struct Judge {
    /// The branch, commit or other revision to judge.
    #[arg(value_name = "REV")]
    revision: String,

    /// What the change is for; a reviewer reads it, and the landed commit has it as its message
    /// [default: the subject of the commit].
    #[arg(value_parser = objective)]
    objective: Option<String>,

    /// The contract as a file, instead of an objective and flags; its base is what the change is
    /// compared with.
    #[arg(short, long, value_name = "CONTRACT", help_heading = CONTRACT, conflicts_with_all =
        ["objective", "base", "allow", "accept", "forbid", "target", "timeout", "accept_mode", "tier",
         "permit_oracle", "permit_governing", "allow_binary", "permit_symlink",
         "permit_fewer_tests"])]
    file: Option<PathBuf>,

    #[command(flatten)]
    ticketed: ticketed::Ticketed,

    /// The revision that the change is compared with [default: where REV left the target branch, or
    /// else HEAD].
    #[arg(long, value_name = "BASE", help_heading = CONTRACT)]
    base: Option<String>,

    /// A path that may have changed, from the top of the repository, with everything below it.
    /// Repeat for more [default: `allow` of [run]].
    #[arg(long, value_name = "PATH", help_heading = CONTRACT)]
    allow: Vec<String>,

    /// A command that must pass on the revision; it is split into words and never given to a shell.
    /// Repeat for more [default: `accept` of [run]].
    #[arg(long, value_name = "CMD", help_heading = CONTRACT)]
    accept: Vec<String>,

    /// A path that may not have changed, even inside an allowed path.
    #[arg(long, value_name = "PATH", help_heading = CONTRACT)]
    forbid: Vec<String>,

    /// The branch that the result lands on [default: the one that is checked out].
    #[arg(long, value_name = "BRANCH", help_heading = CONTRACT)]
    target: Option<String>,

    /// Time limit of the reviewer, and of each acceptance command: 90s, 20m, 2h or 1d [default:
    /// `timeout` of [run], or 20m].
    #[arg(long, value_name = "TIME", help_heading = CONTRACT, value_parser = seconds)]
    timeout: Option<u64>,

    /// What the acceptance commands have to show: that they `pass`, or `no-regression`: that each
    /// failing test also failed twice on the base, and that no test is missing [default: pass].
    #[arg(long, value_name = "MODE", help_heading = CONTRACT)]
    accept_mode: Option<AcceptMode>,

    /// The tier of the sandboxes: `namespaces`, or `landlock` where namespaces are missing and the
    /// policy of the repository accepts it [default: namespaces].
    #[arg(long, value_name = "TIER", help_heading = CONTRACT)]
    tier: Option<Tier>,

    /// The reviewer: an agent of `provost.toml`, or codex, claude or gemini [default:
    /// `review.agent` of provost.toml, if set].
    #[arg(long, value_name = "NAME", help_heading = CONTRACT, conflicts_with = "review_cmd")]
    review: Option<String>,

    /// The reviewer as a command; it writes its report to `$PROVOST_RESULT`.
    #[arg(long, value_name = "CMD", help_heading = CONTRACT)]
    review_cmd: Option<String>,

    #[command(flatten)]
    net: Net,

    #[command(flatten)]
    limits: Limits,

    /// A test configuration, build script, lock file or CI file that may change.
    #[arg(long, value_name = "PATH", help_heading = PERMITS)]
    permit_oracle: Vec<String>,

    /// An agent instruction or configuration file that may change.
    #[arg(long, value_name = "PATH", help_heading = PERMITS)]
    permit_governing: Vec<String>,

    /// A file that may change although it is not text.
    #[arg(long, value_name = "PATH", help_heading = PERMITS)]
    allow_binary: Vec<String>,

    /// A symbolic link that may change.
    #[arg(long, value_name = "PATH", help_heading = PERMITS)]
    permit_symlink: Vec<String>,

    /// Permit that an acceptance command runs fewer tests than on the base, or none.
    #[arg(long, help_heading = PERMITS)]
    permit_fewer_tests: bool,
}

pub(in crate::cli) fn run(judge: Judge, reader: Reader) -> Outcome {
    let place = Places::find()?;
    let now = clock::now_millis();
    let origin = GitOrigin(&place.repo);
    let revision = Revision {
        commit: origin.resolve(&judge.revision)?,
        name: judge.revision.clone(),
    };
    let base = match &judge.file {
        Some(_) => None,
        None => Some(base(&place, &judge, &revision)?),
    };
    let work = ExistingWork {
        tree: origin.tree(&revision.commit)?,
        revision: Some(revision),
        judged: Vec::new(),
        findings: Vec::new(),
        rounds: Vec::new(),
    };
    let run_id = match super::several::assigned() {
        Some(run_id) => run_id,
        None => ids::run_id(now)?,
    };
    let objective = match &judge.file {
        Some(_) => None,
        None => Some(objective_of(&place, &judge, &work)?),
    };
    let run = judge.into_run(objective, base, work);
    // The same functions as for a run, so that both take the same contract.
    let begun = match &run.file {
        Some(file) => begin_file(&run, &place, file, input::read(file, contract::LARGEST)?)?,
        None => begin_typed(&run, &place, reader, |typed| typed.document(&run_id, now))?,
    };
    let Begun { opened, source, .. } = begun;
    let names = Names {
        run_id,
        task_id: opened.contract.task_id.clone(),
        trace_id: crate::trace::trace_id()?,
    };
    let observer = ProgressObserver::new(reader == Reader::Program);
    start::report_interrupted(&place, &observer)?;
    start::start(place, &names, opened, source.as_ref(), observer)
}

/// The revision that the change is compared with.
fn base(place: &Places, judge: &Judge, revision: &Revision) -> Result<String, Failure> {
    if let Some(base) = &judge.base {
        return Ok(base.clone());
    }
    let target = judge.target.as_deref().unwrap_or("HEAD");
    let name = one_line(&revision.name);
    let tip = GitOrigin(&place.repo).resolve(target)?;
    let usage = |reason: String, hint: String| Failure::new(Code::UsageError, reason).hint(hint);
    let common = place.repo.merge_base(&tip, &revision.commit);
    let common: Option<Oid> = common.map_err(|error| Failure::of(Code::GitFailed, &error))?;
    match common {
        None => Err(usage(
            format!("`{name}` has no commit in common with {target}"),
            "name what it is compared with: --base REV".to_owned(),
        )),
        Some(common) if common == revision.commit => Err(usage(
            format!("`{name}` is part of {target} already, so there is nothing to judge"),
            "name the commit before the change: --base REV".to_owned(),
        )),
        Some(common) => Ok(common.to_string()),
    }
}

/// What the change is for: what the user typed, or else the subject of the judged commit.
fn objective_of(place: &Places, judge: &Judge, work: &ExistingWork) -> Result<String, Failure> {
    if let Some(objective) = &judge.objective {
        return Ok(objective.clone());
    }
    let Some(revision) = &work.revision else {
        return Ok(one_line(&judge.revision));
    };
    let subject = place.repo.commit_subject(&revision.commit);
    let subject = subject.map_err(|error| Failure::of(Code::GitFailed, &error))?;
    Ok(match one_line(&subject) {
        empty if empty.is_empty() => {
            let commit = revision.commit.short();
            format!("{} ({commit})", one_line(&judge.revision))
        }
        subject => subject,
    })
}

impl Judge {
    /// The flags of a run with the same contract, compared with `base`, of `work`.
    fn into_run(self, objective: Option<String>, base: Option<String>, work: ExistingWork) -> Run {
        Run {
            objective,
            file: self.file,
            ticketed: self.ticketed,
            fleet: false,
            allow: self.allow,
            accept: self.accept,
            forbid: self.forbid,
            base,
            target: self.target,
            timeout: self.timeout,
            retries: None,
            accept_mode: self.accept_mode,
            may_ask: false,
            danger_full_access: None,
            tier: self.tier,
            net: self.net,
            limits: self.limits,
            agent: None,
            agent_cmd: None,
            review: self.review,
            review_cmd: self.review_cmd,
            detach: false,
            venv: None,
            permit_oracle: self.permit_oracle,
            permit_governing: self.permit_governing,
            allow_binary: self.allow_binary,
            permit_symlink: self.permit_symlink,
            permit_fewer_tests: self.permit_fewer_tests,
            work: Some(work),
        }
    }
}
