//! Runs under a ticket of the fleet: verifies it, and starts `provost-fleet`.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use provost_core::agent::{Budget, SpendLimits};
use provost_core::code::Code;
use provost_core::contract;
use provost_core::path::RepoPath;
use provost_core::policy::{self, fleet};
use provost_core::run::fact::{Opened, TicketUse};
use provost_engine::opening::{self, Origin as _};
use provost_host::clock;
use provost_host::origin::GitOrigin;
use provost_ticket::fence::Fence;
use provost_ticket::ticket::{self, TicketFacts, TicketRefusal};

use super::FLEET;
use crate::answer::{Failure, Outcome};
use crate::input;
use crate::places::Places;

/// The program that runs contracts on other machines.
const PROGRAM: &str = "provost-fleet";

#[derive(Args)]
pub(in crate::cli) struct Ticketed {
    /// The signed ticket that this run is made under; `provost-fleet` sets it.
    #[arg(long, value_name = "TICKET", requires = "fence", requires = "file", help_heading = FLEET)]
    ticket: Option<PathBuf>,

    /// The number of the run's lease and of the attempt.
    #[arg(long, value_name = "N.A", requires = "ticket", help_heading = FLEET)]
    fence: Option<Fence>,
}

impl Ticketed {
    /// Verifies the ticket against what was opened, and writes it into the first event.
    pub(super) fn apply(&self, place: &Places, opened: &mut Opened) -> Result<(), Failure> {
        let (Some(file), Some(fence)) = (&self.ticket, self.fence) else {
            return Ok(());
        };
        let bytes = input::read(file, ticket::LARGEST)?;
        let origin = GitOrigin(&place.repo);
        let at_tip = match &opened.target {
            Some(target) => opening::policy_at(&origin, target)?.1.fleet,
            None => return Err(refused(&TicketRefusal::Differs { what: "target" })),
        };
        let (base, _) = ticket::unverified(&bytes).map_err(|error| refused(&error))?;
        let at_base = opening::policy_at(&origin, base.as_str())?.1.fleet;
        let ticket = ticket::open(&bytes, &at_base, &at_tip).map_err(|error| refused(&error))?;
        if opened.target.as_deref() != Some(ticket.ticket.target.as_str()) {
            return Err(refused(&TicketRefusal::Differs { what: "target" }));
        }
        // Work that is judged again has another base; the rest of its contract is the same.
        let mut contract = opened.contract.clone();
        let base_commit = match opened.work {
            Some(_) => ticket.base_commit.clone(),
            None => opened.base_commit.clone(),
        };
        contract.rollback.baseline_ref = base_commit.to_string();
        let digest = contract::digest(&contract);
        let path = RepoPath::try_from(policy::FILE);
        let path = path.map_err(|error| Failure::of(Code::Bug, &error))?;
        let policy = origin.read(&opened.base_tree, &path, policy::LARGEST)?;
        let policy = policy.unwrap_or_default();
        let rules = fleet::rules_digest(&policy);
        let facts = TicketFacts {
            repository: &at_base.repository,
            contract_sha256: &digest.map_err(|error| Failure::of(Code::Bug, &error))?,
            policy_sha256: &rules.map_err(|error| Failure::of(Code::InputInvalid, &error))?,
            base_commit: &base_commit,
        };
        let about = ticket.is_about(facts);
        let now = clock::now_millis();
        about
            .and_then(|()| ticket.is_in_time(now))
            .map_err(|error| refused(&error))?;
        hold_budget(opened, &ticket)?;
        opened.ticket = Some(TicketUse {
            sha256: ticket.sha256,
            fence: fence.to_string(),
        });
        Ok(())
    }
}

/// Lets the run spend no more than its ticket.
fn hold_budget(opened: &mut Opened, ticket: &ticket::OpenedTicket) -> Result<(), Failure> {
    let budget = ticket.ticket.budget;
    if budget.is_open() || opened.work.is_some() {
        return Ok(());
    }
    let Some(adapted) = &mut opened.adapted else {
        let reason = "the ticket has a budget, and nothing can count what this agent spends";
        return Err(Failure::new(Code::TicketRefused, reason)
            .hint("name an agent that Provost has an adapter for, or submit without a budget"));
    };
    adapted.grants.limits = adapted.grants.limits.and(SpendLimits {
        run: budget.into(),
        day: Budget::default(),
    });
    Ok(())
}

fn refused(error: &TicketRefusal) -> Failure {
    Failure::of(Code::TicketRefused, error)
}

/// Gives the words after the command to `provost-fleet`, as cargo does with its own subcommands.
pub(in crate::cli) fn submit(command: &str) -> Outcome {
    let words = env::args_os().skip(2).filter(|word| word != "--fleet");
    let beside = env::current_exe().ok();
    let beside = beside.map(|program| program.with_file_name(PROGRAM));
    let program = beside.filter(|program| program.is_file());
    let program = program.unwrap_or_else(|| PROGRAM.into());
    // Only returns if the program could not be started.
    let error = Command::new(program).arg(command).args(words).exec();
    let reason = format!("the program {PROGRAM} is neither beside provost nor on PATH: {error}");
    Err(Failure::new(Code::FleetUnreachable, reason).hint(
        "cargo build --release -p provost-fleet builds it; provost explain FLEET_UNREACHABLE",
    ))
}
