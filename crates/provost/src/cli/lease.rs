//! `provost lease`: lists which runs hold which paths, and takes leases away.

use std::time::Duration;

use clap::{Args, Subcommand};
use provost_core::approval::Person;
use provost_core::approval::release::Release as Question;
use provost_core::code::Code;
use provost_core::lease::Lease as Held;
use provost_core::path::RepoPath;
use provost_core::record::Head;
use provost_core::verdict::Verdict;
use provost_engine::release::{LeaseRelease, release};
use provost_host::{clock, process_owner};
use serde::Serialize;

use crate::answer::{Answer, Answered, Failure, Outcome};
use crate::places::Places;
use crate::session::{self, SystemClock};
use crate::stores::{self, Expected};
use crate::times;

/// How long a release waits for other processes that take a lease away.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Lease {
    /// List which runs hold which paths.
    List,
    /// Take a lease away from a run.
    Release(Release),
}

#[derive(Args)]
#[command(after_help = "\
Without --digest it shows the lease and takes nothing away. The run that loses its lease stops its
work, keeps it and is refused with LEASE_LOST. Prefer `provost cancel RUN` as long as the driver
of the run responds.

Example:
  provost lease release RUN --digest SHA256 --reason 'its machine is away'")]
pub(super) struct Release {
    /// The run: its id, or a part of it.
    run: String,

    /// The digest of the lease that you have seen; any other lease is not taken away.
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,

    /// The reason, for the record.
    #[arg(long, value_name = "WHY", default_value = "")]
    reason: String,
}

pub(super) fn run(lease: &Lease) -> Outcome {
    match lease {
        Lease::List => {
            let place = Places::look()?;
            // A registry of another user says nothing about the active runs here.
            if place.is_foreign() {
                let text = "the registry was not made by you, and is not read\n";
                return Ok(Answer::data([(); 0], text));
            }
            Ok(HeldPaths(live(&place)?).into())
        }
        Lease::Release(order) => {
            let place = Places::find()?;
            take(&place, &live(&place)?, order)
        }
    }
}

/// The leases that are valid now.
fn live(place: &Places) -> Result<Vec<Held>, Failure> {
    if !place.registry_path().exists() {
        return Ok(Vec::new());
    }
    let mut leases = place.registry()?.leases()?;
    let now = clock::now_millis();
    leases.retain(|lease| lease.is_live(now, &process_owner::alive));
    Ok(leases)
}

/// The leases that are valid now.
#[derive(Serialize)]
struct HeldPaths(Vec<Held>);

impl Answered for HeldPaths {
    fn text(&self) -> String {
        let line = |lease: &Held| {
            let (run, pid) = (&lease.run_id, lease.owner.pid);
            format!("{run}  {}  pid {pid}\n", paths(lease))
        };
        match self.0.as_slice() {
            [] => "no path is held\n".to_owned(),
            leases => leases.iter().map(line).collect(),
        }
    }
}

/// The lease that a run lost.
#[derive(Serialize)]
struct LostLease<'a> {
    run_id: &'a str,
    digest: &'a str,
    /// Whether the run still had it.
    released: bool,
    by: &'a Person,
    #[serde(skip)]
    lease: &'a Held,
}

impl Answered for LostLease<'_> {
    fn text(&self) -> String {
        let run = self.run_id;
        if self.released {
            format!("{run} has lost its lease on {}\n", paths(self.lease))
        } else {
            format!("{run} had released its lease already\n")
        }
    }
}

/// What a person has to agree to before a lease is taken away.
#[derive(Serialize)]
struct ReleaseQuestion<'a> {
    digest: &'a str,
    question: &'a Question<'a>,
}

fn paths(lease: &Held) -> String {
    let paths: Vec<&str> = lease.scope.entries().iter().map(RepoPath::as_str).collect();
    paths.join(" ")
}

fn take(place: &Places, live: &[Held], order: &Release) -> Outcome {
    let mut found = live
        .iter()
        .filter(|lease| lease.run_id.contains(&order.run));
    let (Some(lease), None) = (found.next(), found.next()) else {
        let reason = format!(
            "`{}` names no run that holds a lease, or several",
            order.run
        );
        return Err(Failure::new(Code::NotFound, reason).hint("provost lease list"));
    };
    let question = Question::of(lease);
    let Some(seen) = &order.digest else {
        return Ok(shown(lease, &question));
    };
    let by = session::person()?;
    let lock = place.root.join("releases.lock");
    let _lock = stores::wait_for_lock(&lock, &session::owner()?, PATIENCE)?;
    let chain = place.root.join("releases.jsonl");
    let mut ledger = stores::open_ledger(&chain, Expected::Either, Head::genesis(), None)?;
    let mut registry = place.registry()?;
    let wanted = LeaseRelease {
        release: question,
        seen,
        by: &by,
        reason: &order.reason,
    };
    let released = release(ledger.as_mut(), &SystemClock, &wanted, |run_id, fence| {
        registry.release_one(run_id, fence)
    })?;
    let lost = LostLease {
        run_id: &lease.run_id,
        digest: seen,
        released,
        by: &by,
        lease,
    };
    Ok(lost.into())
}

/// Shows the lease for a request that does not name its digest.
fn shown(lease: &Held, question: &Question<'_>) -> Answer {
    let (run, digest) = (&lease.run_id, question.digest());
    let reason = format!("a person has to approve that {run} loses its lease");
    let details = ReleaseQuestion {
        digest: &digest,
        question,
    };
    let mut answer = Answer::from(Verdict::deny(Code::ApprovalNeeded, reason).with(details));
    let since = times::length(u64::try_from(clock::now_millis() - lease.granted_at).unwrap_or(0));
    answer.text += &format!(
        "  holds    {}, for {since}\n  driver   pid {}\n  digest   {digest}\n\
         next: provost cancel {run}, or provost lease release {run} --digest {digest}\n",
        paths(lease),
        lease.owner.pid
    );
    answer
}
