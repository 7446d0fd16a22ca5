//! One attempt on this machine: verify the ticket, have `provost` do the work, push the result.
//!
//! # Invariants
//!
//! - A ticket is verified here, whatever the server says about it.
//! - Success is reported after evidence and candidate are at the hub, in one push.
//! - A child that is still alive, or has sealed its run, is adopted and not started again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::object::{Oid, sha256};
use provost_core::verdict::Verdict;
use provost_ticket::course::{AttemptEnd, AttemptReport};
use provost_ticket::fence::Fence;
use provost_ticket::ticket::{self, OpenedTicket};
use serde::{Deserialize, Serialize};

use crate::child::{Child, ChildEnd, RunAnswer};
use crate::failure::{FleetFailure, FleetResult, host};
use crate::hub::{Author, HubClone, RunRefs, files_of};
use crate::identity;
use crate::settings::FleetSettings;

/// What an attempt is watched by.
#[derive(Debug, Clone, Default)]
pub struct AttemptWatch {
    /// Set when the run was cancelled, or this attempt no longer counts.
    pub cancelled: Arc<AtomicBool>,
    /// Where the ledger of the child is.
    pub ledger: Arc<std::sync::Mutex<Option<PathBuf>>>,
}

/// What an attempt is asked for.
#[derive(Debug, Clone)]
pub struct AttemptOrder {
    /// The signed ticket.
    pub ticket: String,
    pub fence: Fence,
    /// Work of an earlier attempt, to be judged again on a target that moved.
    pub again: Option<JudgeAgain>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeAgain {
    pub from: Fence,
    /// The base that the candidate was judged on.
    pub base: Oid,
    pub tip: Oid,
}

/// The record of an attempt on this machine, so that a later one can adopt it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttemptRecord {
    run_id: String,
    fence: Fence,
    base: Oid,
    child: Child,
}

/// A verified ticket with the clone of its hub, where everything it names is present.
pub struct Prepared {
    pub clone: HubClone,
    pub opened: OpenedTicket,
    pub contract: provost_core::contract::document::Document,
    pub tip: Oid,
}

/// Gets what a ticket names, and verifies it against the keys of its base and of the tip.
pub fn prepare(settings: &FleetSettings, text: &str) -> FleetResult<Prepared> {
    let refused = |error: ticket::TicketRefusal| {
        FleetFailure::of(Code::TicketRefused, "the ticket is refused", &error)
    };
    let (base, unverified) = ticket::unverified(text.as_bytes()).map_err(refused)?;
    let hub = settings.hub(&unverified.hub)?;
    let name = format!("{}/{}.git", unverified.hub, unverified.repository);
    let directory = settings.state()?.join("hubs").join(name);
    let clone = HubClone::open(directory, &hub.url, settings.intervals.git())?;
    let tip = clone.fetch_target(&unverified.target)?;
    let refs = RunRefs(&unverified.run);
    let kept = refs.ticket();
    clone.fetch(&[format!("+{kept}:{kept}")])?;
    if !clone.contains(&tip, &base)? {
        let reason = "the base of the ticket is not part of its target, so its keys do not count";
        return Err(FleetFailure::new(Code::TicketRefused, reason));
    }
    let (at_base, rules) = clone.policy(&base)?;
    let (at_tip, _) = clone.policy(&tip)?;
    let opened = ticket::open(text.as_bytes(), &at_base.fleet, &at_tip.fleet).map_err(refused)?;
    let contract = clone.contract(&clone.resolve(&kept)?)?;
    let digest = provost_core::contract::digest(&contract)
        .map_err(|error| FleetFailure::of(Code::Bug, "digesting a contract", &error))?;
    let about = opened.is_about(ticket::TicketFacts {
        repository: &at_base.fleet.repository,
        contract_sha256: &digest,
        policy_sha256: &rules,
        base_commit: &base,
    });
    let now = identity::now()?;
    about
        .and_then(|()| opened.is_in_time(now))
        .map_err(refused)?;
    Ok(Prepared {
        clone,
        opened,
        contract,
        tip,
    })
}

/// The same for as long as the hub is away: attempts are for losses of work.
fn prepare_patiently(
    settings: &FleetSettings,
    order: &AttemptOrder,
    watch: &AttemptWatch,
) -> FleetResult<Prepared> {
    let since = Instant::now();
    let patience = Duration::from_millis(settings.intervals.hub_ms);
    loop {
        let failure = match prepare(settings, &order.ticket) {
            Err(failure) if failure.code == Code::HubUnreachable => failure,
            decided => return decided,
        };
        if since.elapsed() > patience || watch.cancelled.load(Ordering::SeqCst) {
            return Err(failure);
        }
        sleep(settings.intervals.poll());
    }
}

/// Makes an attempt, and reports how it ended. A failure means that there is no result.
pub fn make(
    settings: &FleetSettings,
    order: &AttemptOrder,
    watch: &AttemptWatch,
) -> FleetResult<AttemptReport> {
    let prepared = prepare_patiently(settings, order, watch)?;
    let place = Place::of(settings, &prepared, order)?;
    let record = match place.adoptable()? {
        Some(record) => record,
        None => match place.start(settings, &prepared, order)? {
            Ok(record) => record,
            Err(verdict) => return Ok(place.report(settings, order, verdict)),
        },
    };
    let ledger = place.bundle(&record.run_id).join("events.jsonl");
    if let Ok(mut shown) = watch.ledger.lock() {
        *shown = Some(ledger);
    }
    let limit = Duration::from_millis(settings.intervals.attempt_ms);
    let end = record.child.wait(&place.output, limit, &watch.cancelled)?;
    let bundle = place.bundle(&record.run_id);
    let is_sealed = bundle.join("attestation.dsse.json").is_file();
    let pushed = if is_sealed {
        Some(place.push(settings, &prepared, &record, &end)?)
    } else {
        None
    };
    let end = Place::end_of(end, is_sealed, watch)?;
    Ok(AttemptReport {
        end,
        fence: record.fence,
        worker: settings.name.clone(),
        bundle: pushed,
        base: record.base,
    })
}

/// The directories of one run on this machine.
struct Place {
    clone: HubClone,
    run: String,
    directory: PathBuf,
    /// What the child prints.
    output: PathBuf,
    /// The commit that the work is compared with.
    base: Oid,
}

impl Place {
    fn of(
        settings: &FleetSettings,
        prepared: &Prepared,
        order: &AttemptOrder,
    ) -> FleetResult<Self> {
        let run = prepared.opened.ticket.run.clone();
        // Work that is judged again is another piece of work than the run itself.
        let piece = match &order.again {
            None => "run".to_owned(),
            Some(again) => format!("judge-{}", again.tip.short()),
        };
        let directory = settings.state()?.join("attempts").join(&run).join(piece);
        fs::create_dir_all(&directory).map_err(host("making the directory of an attempt"))?;
        Ok(Self {
            clone: prepared.clone.clone(),
            run,
            output: directory.join("answer.json"),
            base: match &order.again {
                None => prepared.opened.base_commit.clone(),
                Some(again) => again.tip.clone(),
            },
            directory,
        })
    }

    fn bundle(&self, run_id: &str) -> PathBuf {
        self.clone.directory.join(".provost/runs").join(run_id)
    }

    fn record(&self) -> PathBuf {
        self.directory.join("attempt.json")
    }

    /// An earlier attempt whose child is alive, or whose run is sealed.
    fn adoptable(&self) -> FleetResult<Option<AttemptRecord>> {
        let Ok(bytes) = fs::read(self.record()) else {
            return Ok(None);
        };
        let Ok(record) = provost_core::json::parse_as::<AttemptRecord>(&bytes) else {
            return Ok(None);
        };
        let sealed = self
            .bundle(&record.run_id)
            .join("attestation.dsse.json")
            .is_file();
        let lives = record.child.is_alive()?;
        Ok((sealed || lives).then_some(record))
    }

    /// Starts the child; `Err` is a refusal before there was anything to start.
    fn start(
        &self,
        settings: &FleetSettings,
        prepared: &Prepared,
        order: &AttemptOrder,
    ) -> FleetResult<Result<AttemptRecord, Verdict>> {
        let ticket = &prepared.opened.ticket;
        let mut contract = prepared.contract.clone();
        let mut words = match &order.again {
            None => {
                let mut words = vec!["run".to_owned()];
                words.extend(settings.agent(&ticket.agent)?);
                words
            }
            Some(again) => match self.merge(prepared, again)? {
                Ok(commit) => vec!["judge".to_owned(), commit.to_string()],
                Err(verdict) => return Ok(Err(verdict)),
            },
        };
        let base = &self.base;
        contract.rollback.baseline_ref = base.to_string();
        let file = self.directory.join("contract.json");
        let text = provost_core::json::pretty(&contract)
            .map_err(|error| FleetFailure::of(Code::Bug, "writing a contract", &error))?;
        fs::write(&file, text).map_err(host("writing a contract"))?;
        let signed = self.directory.join("ticket.json");
        fs::write(&signed, &order.ticket).map_err(host("writing a ticket"))?;
        for (flag, value) in [("-f", &file), ("--ticket", &signed)] {
            words.extend([flag.to_owned(), value.display().to_string()]);
        }
        words.extend([
            "--fence".to_owned(),
            order.fence.to_string(),
            "--json".to_owned(),
        ]);
        let run_id = id_of(&self.run, order.fence);
        let child = Child::start(
            settings,
            &self.clone.directory,
            &words,
            &run_id,
            &self.output,
        )?;
        let record = AttemptRecord {
            run_id,
            fence: order.fence,
            base: base.clone(),
            child,
        };
        let bytes = provost_core::json::pretty(&record)
            .map_err(|error| FleetFailure::of(Code::Bug, "writing an attempt", &error))?;
        let durable = provost_fs::atomic::Durability::Synced;
        provost_fs::atomic::replace(&self.record(), bytes.as_bytes(), 0o600, durable)
            .map_err(host("writing the record of an attempt"))?;
        Ok(Ok(record))
    }

    /// Merges a candidate with the tip, as one commit on it; a conflict is a refusal.
    fn merge(&self, prepared: &Prepared, again: &JudgeAgain) -> FleetResult<Result<Oid, Verdict>> {
        let candidate = RunRefs(&self.run).candidate(again.from);
        self.clone.fetch(&[format!("+{candidate}:{candidate}")])?;
        let base = format!("--merge-base={}", again.base);
        let tip = again.tip.as_str();
        let Some(tree) = self.clone.merge_tree(&base, tip, &candidate)? else {
            let reason = format!(
                "the target moved to {}, and the result cannot be merged with it",
                again.tip.short()
            );
            return Ok(Err(Verdict::deny(Code::LandConflict, reason)));
        };
        let ticket = &prepared.opened.ticket;
        let author = Author {
            name: prepared.opened.submitter.clone(),
            email: format!("{}@fleet.invalid", prepared.opened.submitter),
            seconds: ticket.issued_at / 1000,
        };
        let message = format!("{}, merged with {}\n", ticket.run, again.tip.short());
        let commit = self
            .clone
            .commit_tree(&tree, &[&again.tip], &message, &author)?;
        // A ref keeps what only this attempt knows, until it is judged.
        let kept = format!("refs/provost/fleet-work/{}/{}", self.run, again.tip.short());
        self.clone.git(&["update-ref", &kept, commit.as_str()])?;
        Ok(Ok(commit))
    }

    /// Pushes evidence and candidate to the refs of the attempt, for as long as the hub is away.
    fn push(
        &self,
        settings: &FleetSettings,
        prepared: &Prepared,
        record: &AttemptRecord,
        end: &ChildEnd,
    ) -> FleetResult<Oid> {
        let files = files_of(&self.bundle(&record.run_id))?;
        let message = format!("evidence of {} attempt {}\n", self.run, record.fence);
        let bundle = self.clone.commit(&files, &[], &message)?;
        let refs = RunRefs(&self.run);
        let mut refspecs = vec![format!("{bundle}:{}", refs.bundle(record.fence))];
        if let ChildEnd::Answered(RunAnswer {
            tree: Some(tree), ..
        }) = end
        {
            let message = format!("candidate of {} attempt {}\n", self.run, record.fence);
            let author = Author {
                name: prepared.opened.submitter.clone(),
                email: format!("{}@fleet.invalid", prepared.opened.submitter),
                seconds: prepared.opened.ticket.issued_at / 1000,
            };
            let parents = [&record.base];
            let candidate = self.clone.commit_tree(tree, &parents, &message, &author)?;
            refspecs.push(format!("{candidate}:{}", refs.candidate(record.fence)));
        }
        let since = Instant::now();
        let patience = Duration::from_millis(settings.intervals.hub_ms);
        loop {
            match self.clone.push(&refspecs, &[]) {
                Ok(()) => return Ok(bundle),
                Err(error) if since.elapsed() > patience => return Err(error),
                Err(_) => sleep(settings.intervals.poll()),
            }
        }
    }

    /// The result of a child that ended.
    fn end_of(end: ChildEnd, is_sealed: bool, watch: &AttemptWatch) -> FleetResult<AttemptEnd> {
        match end {
            _ if watch.cancelled.load(Ordering::SeqCst) => Ok(AttemptEnd::Cancelled),
            ChildEnd::TimedOut => {
                let reason = "the attempt reached the time limit of its worker";
                Ok(AttemptEnd::Refused(Verdict::deny(
                    Code::AgentTimeout,
                    reason,
                )))
            }
            ChildEnd::Answered(RunAnswer { verdict, .. }) if verdict.allow && is_sealed => {
                Ok(AttemptEnd::Accepted)
            }
            ChildEnd::Answered(RunAnswer { verdict, .. }) if verdict.allow => {
                let reason = "provost says that the run was accepted, and there is no seal";
                Err(FleetFailure::new(Code::EvidenceIncomplete, reason))
            }
            ChildEnd::Answered(RunAnswer { verdict, .. }) => Ok(AttemptEnd::Refused(verdict)),
            ChildEnd::Silent(reason) => Err(FleetFailure::new(Code::HostFailed, reason)),
        }
    }

    fn report(
        &self,
        settings: &FleetSettings,
        order: &AttemptOrder,
        verdict: Verdict,
    ) -> AttemptReport {
        AttemptReport {
            end: AttemptEnd::Refused(verdict),
            fence: order.fence,
            worker: settings.name.clone(),
            bundle: None,
            base: self.base.clone(),
        }
    }
}

/// The id of the child's run: that of the fleet's run, with digits of the attempt.
pub fn id_of(run: &str, fence: Fence) -> String {
    let stem = run.rsplit_once('_').map_or(run, |(stem, _)| stem);
    let digest = sha256(format!("{run} {fence}").as_bytes());
    format!("{stem}_{}", &digest[..12])
}

/// The head of a ledger: the number and the hash of its last whole line.
pub fn ledger_head(path: &Path) -> Option<provost_evidence::statement::LedgerHead> {
    let bytes = fs::read(path).ok()?;
    let whole = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let last = whole.rsplit(|byte| *byte == b'\n').next()?;
    let line: LedgerLine = provost_core::json::parse_as(last).ok()?;
    Some(provost_evidence::statement::LedgerHead {
        seq: line.seq,
        hash: line.hash,
    })
}

/// The fields of a ledger line that a heartbeat carries.
#[derive(Deserialize)]
struct LedgerLine {
    seq: u64,
    hash: String,
}
