//! Signs a ticket for a contract, and leaves both at the hub.

use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::code::Code;
use provost_core::contract;
use provost_core::contract::document::{Document, Extension};
use provost_core::object::sha256;
use provost_core::scope::Scope;
use provost_core::time;
use provost_ticket::ticket::{self, Ticket, TicketBudget};

use crate::failure::{FleetFailure, FleetResult, host};
use crate::flows::RunOrder;
use crate::hub::{HubClone, RunRefs};
use crate::identity;
use crate::settings::FleetSettings;

/// Submit a contract of this repository to the fleet.
#[derive(Debug, Args)]
pub struct Submit {
    /// The contract, as JSON.
    #[arg(short, long, value_name = "CONTRACT", required_unless_present = "run")]
    file: Option<PathBuf>,

    /// A run whose ticket is at the hub already: start it, if the server did not get it before.
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    run: Option<String>,

    /// The agent, by the name that workers have for it.
    #[arg(long, value_name = "NAME", default_value = "default")]
    agent: String,

    /// The hub, by its name in fleet.toml.
    #[arg(long, value_name = "NAME", default_value = "main")]
    hub: String,

    /// The pool of workers that may take it.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pool: String,

    /// How often a lost attempt may be made, the first one included.
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    attempts: u32,

    /// After so many hours the ticket neither starts nor lands.
    #[arg(long, value_name = "NUMBER", default_value_t = 24)]
    hours: u32,

    /// What the agents of the run may spend, in tokens.
    #[arg(long, value_name = "NUMBER")]
    tokens: Option<u64>,

    /// Return once the server has the run, without waiting for its end.
    #[arg(long)]
    pub detach: bool,
}

fn usage(reason: impl Into<String>) -> FleetFailure {
    FleetFailure::new(Code::UsageError, reason).hint("provost-fleet submit --help")
}

impl Submit {
    /// Makes the ticket, or gets it from the hub, and returns what a run is started with.
    pub fn order(&self, settings: &FleetSettings) -> FleetResult<RunOrder> {
        let hub = settings.hub(&self.hub)?;
        let here = std::env::current_dir().map_err(host("finding the current directory"))?;
        let repository = HubClone {
            directory: here,
            url: hub.url.clone(),
            limit: settings.intervals.git(),
        };
        let text = match (&self.run, &self.file) {
            (Some(run), _) => submitted(&repository, run)?,
            (None, Some(file)) => self.issue(&repository, file)?,
            (None, None) => return Err(usage("neither a contract nor a run is named")),
        };
        let (_, ticket) = ticket::unverified(text.as_bytes()).map_err(|error| {
            FleetFailure::of(Code::TicketRefused, "the ticket cannot be used", &error)
        })?;
        let kept = repository.remote(&RunRefs(&ticket.run).ticket())?;
        let kept = kept.ok_or_else(|| {
            FleetFailure::new(Code::HubUnreachable, "the hub does not have the ticket")
        })?;
        let document = repository.contract(&kept)?;
        let scope = Scope::parse(&document.allowed_paths);
        let scope = scope.map_err(|_| {
            FleetFailure::new(
                Code::ScopeInvalid,
                "the paths of the contract cannot be used",
            )
            .hint("provost check contract FILE")
        })?;
        Ok(RunOrder {
            ticket: text,
            run: ticket.run,
            repository: ticket.repository,
            pool: ticket.pool,
            attempts: ticket.attempts,
            scope,
            intervals: settings.intervals,
        })
    }

    fn issue(&self, repository: &HubClone, file: &Path) -> FleetResult<String> {
        let bytes = std::fs::read(file).map_err(host("reading the contract"))?;
        let document = contract::parse(&bytes).map_err(|error| {
            FleetFailure::of(Code::ContractInvalid, "reading the contract", &error)
        })?;
        let key = identity::signing_key()?;
        let base = repository.resolve(&document.rollback.baseline_ref)?;
        let branch = branch(repository, &document)?;
        let document = fixed(document, base.as_str(), &branch);
        let (policy, rules) = repository.policy(&base)?;
        if policy.fleet.repository.is_empty() {
            let reason = "[fleet] of provost.toml at the base names no repository";
            return Err(FleetFailure::new(Code::TicketRefused, reason)
                .hint("provost-fleet keys enroll, and commit provost.toml"));
        }
        let now = identity::now()?;
        let nonce = identity::nonce()?;
        let digest = contract::digest(&document)
            .map_err(|error| FleetFailure::of(Code::Bug, "digesting a contract", &error))?;
        let ticket = Ticket {
            run: run_id(now, &nonce),
            repository: policy.fleet.repository,
            contract_sha256: digest,
            policy_sha256: rules,
            agent: self.agent.clone(),
            budget: TicketBudget {
                tokens: self.tokens,
                micro_usd: None,
            },
            hub: self.hub.clone(),
            target: format!("refs/heads/{branch}"),
            pool: self.pool.clone(),
            attempts: self.attempts,
            deadline: now + i64::from(self.hours) * 3_600_000,
            issued_at: now,
            nonce,
        };
        let text = ticket.sign(&base, &key);
        ticket::unverified(text.as_bytes()).map_err(|error| usage(error.to_string()))?;
        let shown = provost_core::json::pretty(&document)
            .map_err(|error| FleetFailure::of(Code::Bug, "writing a contract", &error))?;
        let files = [
            ("contract.json".to_owned(), shown.into_bytes()),
            ("ticket.json".to_owned(), text.clone().into_bytes()),
        ];
        let message = format!("ticket of {}\n", ticket.run);
        let commit = repository.commit(&files, &[&base], &message)?;
        let name = RunRefs(&ticket.run).ticket();
        // The ref must not exist: a ticket is never replaced.
        repository.push(&[format!("{commit}:{name}")], &[format!("{name}:")])?;
        Ok(text)
    }
}

fn submitted(repository: &HubClone, run: &str) -> FleetResult<String> {
    let name = RunRefs(run).ticket();
    repository.fetch(std::slice::from_ref(&name))?;
    let commit = repository.remote(&name)?;
    let file = match &commit {
        Some(commit) => repository.file(commit.as_str(), "ticket.json")?,
        None => None,
    };
    let bytes = file.ok_or_else(|| FleetFailure::new(Code::NotFound, "the hub has no such run"))?;
    String::from_utf8(bytes).map_err(|_| FleetFailure::new(Code::TicketRefused, "it is no text"))
}

/// The branch that the result is for: of the contract, or the one that is checked out.
fn branch(repository: &HubClone, document: &Document) -> FleetResult<String> {
    let named = document.x_provost.as_ref().and_then(|it| it.target.clone());
    let name = match named {
        Some(name) => name,
        None => repository
            .git(&["symbolic-ref", "HEAD"])
            .map_err(|_| usage("no branch is checked out, and the contract names none"))?,
    };
    Ok(name.trim_start_matches("refs/heads/").to_owned())
}

/// The contract with its base as a commit and its target by name, so that it means the same on
/// every machine.
fn fixed(mut document: Document, base: &str, branch: &str) -> Document {
    base.clone_into(&mut document.rollback.baseline_ref);
    let extension = document.x_provost.get_or_insert_with(Extension::default);
    extension.target = Some(branch.to_owned());
    document
}

/// An id like those of other runs.
fn run_id(now: i64, nonce: &str) -> String {
    let civil = time::civil(now);
    format!(
        "run_{:04}{:02}{:02}_{:02}{:02}{:02}_{:03}_{}",
        civil.year,
        civil.month,
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
        now.rem_euclid(1000),
        &sha256(nonce.as_bytes())[..12]
    )
}
