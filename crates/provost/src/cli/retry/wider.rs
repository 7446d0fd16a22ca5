//! The flags of `provost retry --keep-work`: how the contract gets wider.

use clap::Args;
use provost_core::contract::document::{AcceptMode, Permissions};
use provost_core::run::State;
use provost_core::run::fact::Opened;
use provost_engine::bundle::statement::LedgerHead;
use provost_engine::opening::{KeepWorkRequest, RequestedAgent, RetryRequest, Wider, keep_work};
use provost_engine::query::RunArchive as _;
use provost_host::login;
use provost_host::origin::GitOrigin;

use crate::answer::Failure;
use crate::cli::duration::seconds;
use crate::cli::limits::Limits;
use crate::places::Places;

const WIDER: &str = "With --keep-work";

// How a contract gets wider; every flag adds to the contract or replaces one of its values.
#[derive(Args)]
pub(super) struct WiderFlags {
    /// A further path that may be written, with everything below it. Repeat for more.
    #[arg(long, value_name = "PATH", help_heading = WIDER)]
    allow: Vec<String>,

    /// A test configuration, build script, lock file or CI file that may change.
    #[arg(long, value_name = "PATH", help_heading = WIDER)]
    permit_oracle: Vec<String>,

    /// An agent instruction or configuration file that may change.
    #[arg(long, value_name = "PATH", help_heading = WIDER)]
    permit_governing: Vec<String>,

    /// A file that may change although it is not text.
    #[arg(long, value_name = "PATH", help_heading = WIDER)]
    allow_binary: Vec<String>,

    /// A symbolic link that may change.
    #[arg(long, value_name = "PATH", help_heading = WIDER)]
    permit_symlink: Vec<String>,

    /// Permit that an acceptance command runs fewer tests than on the base, or none.
    #[arg(long, help_heading = WIDER)]
    permit_fewer_tests: bool,

    /// Time limit of each acceptance command and of the reviewer: 90s, 20m, 2h or 1d.
    #[arg(long, value_name = "TIME", help_heading = WIDER, value_parser = seconds)]
    timeout: Option<u64>,

    /// Commands that replace those of the contract; one that is missing then needs approval.
    #[arg(long, value_name = "CMD", help_heading = WIDER)]
    accept: Vec<String>,

    /// What the acceptance commands have to show: `pass` or `no-regression`, which needs approval.
    #[arg(long, value_name = "MODE", help_heading = WIDER)]
    accept_mode: Option<AcceptMode>,

    /// Another reviewer, which needs approval: an agent of `provost.toml`, or codex, claude or
    /// gemini.
    #[arg(long, value_name = "NAME", help_heading = WIDER, conflicts_with = "review_cmd")]
    review: Option<String>,

    /// Another reviewer as a command, which needs approval.
    #[arg(long, value_name = "CMD", help_heading = WIDER)]
    review_cmd: Option<String>,

    #[command(flatten)]
    limits: Limits,
}

impl WiderFlags {
    pub(super) fn wider(&self) -> Wider {
        let command = self.review_cmd.clone().map(RequestedAgent::Typed);
        Wider {
            allow: self.allow.clone(),
            permit: Permissions {
                oracle: self.permit_oracle.clone(),
                governing: self.permit_governing.clone(),
                binary: self.allow_binary.clone(),
                symlink: self.permit_symlink.clone(),
                fewer_tests: self.permit_fewer_tests,
            },
            timeout_sec: self.timeout,
            limits: self.limits.asked(),
            accept: self.accept.clone(),
            accept_mode: self.accept_mode,
            review: command.or(self.review.clone().map(RequestedAgent::Named)),
        }
    }
}

/// The first record of a run that judges the work of `before` again.
pub(super) fn opened(
    place: &Places,
    before: &State,
    wider: Wider,
    retry: RetryRequest,
) -> Result<Opened, Failure> {
    let records = place.records(&before.names.run_id)?;
    let last = records.last().ok_or_else(|| {
        let reason = "the ledger is empty";
        Failure::new(provost_core::code::Code::EvidenceIncomplete, reason)
    })?;
    let request = KeepWorkRequest {
        wider,
        sealed_head: LedgerHead {
            seq: last.seq,
            hash: last.hash.clone(),
        },
        logins: login::found(),
        retry,
    };
    let opened = keep_work(&GitOrigin(&place.repo), before, request)?;
    // A flag that breaks a rule starts no run.
    let verdict = opened.judge();
    if !verdict.allow {
        return Err(Failure::from(verdict).hint("provost retry --help"));
    }
    Ok(opened)
}
