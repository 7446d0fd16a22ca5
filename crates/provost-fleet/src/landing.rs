//! The lander: verifies evidence from its bytes, decides, and moves the target in one push.
//!
//! # Invariants
//!
//! - The push that moves the target also makes the ref with the signed landing, which must not
//!   exist: a run lands at most once, whatever the server repeats.
//! - The landed commit is made here from the accepted tree; nothing else of a worker lands.

use std::path::Path;
use std::process::Command;

use provost_core::code::Code;
use provost_core::contract;
use provost_core::object::Oid;
use provost_core::policy;
use provost_core::policy::fleet::FleetKeys;
use provost_core::record::{self, Head, Record};
use provost_core::run::fact::{Fact, Opened};
use provost_core::verdict::Verdict;
use provost_evidence::dsse;
use provost_evidence::key::{PublicKey, SigningKey};
use provost_ticket::course::{AttemptReport, LandingEnd};
use provost_ticket::landing::{BundleFacts, FleetLanding, LandingDecision, LandingFacts, decide};

use crate::attempt::{Prepared, prepare};
use crate::command;
use crate::failure::{FleetFailure, FleetResult, host};
use crate::hub::{Author, RunRefs};
use crate::identity;
use crate::settings::FleetSettings;

/// What a lander is asked for.
#[derive(Debug, Clone)]
pub struct LandingOrder {
    /// The signed ticket.
    pub ticket: String,
    pub report: AttemptReport,
    /// The number of the lease that the run holds now.
    pub held: Option<u64>,
}

/// Lands a result, or says why not. A failure means that the question is open.
pub fn land(settings: &FleetSettings, order: &LandingOrder) -> FleetResult<LandingEnd> {
    match try_to_land(settings, order) {
        // What cannot be trusted is a result; that the hub is away is none.
        Err(failure) if is_final(failure.code) => Ok(LandingEnd::Refused(failure.verdict())),
        other => other,
    }
}

fn is_final(code: Code) -> bool {
    !matches!(
        code,
        Code::HubUnreachable | Code::GitFailed | Code::HostFailed | Code::WorkerUnfit
    )
}

fn try_to_land(settings: &FleetSettings, order: &LandingOrder) -> FleetResult<LandingEnd> {
    let key = identity::signing_key()?;
    let prepared = prepare(settings, &order.ticket)?;
    let ticket = &prepared.opened.ticket;
    let clone = &prepared.clone;
    let (at_base, _) = clone.policy(&prepared.opened.base_commit)?;
    let (at_tip, _) = clone.policy(&prepared.tip)?;
    if let Some(commit) = landed(&prepared, &at_base.fleet)? {
        return Ok(LandingEnd::Landed { commit });
    }
    let refs = RunRefs(&ticket.run);
    let fence = order.report.fence;
    let (bundle, candidate) = (refs.bundle(fence), refs.candidate(fence));
    clone.fetch(&[
        format!("+{bundle}:{bundle}"),
        format!("+{candidate}:{candidate}"),
    ])?;
    let bundle = clone.resolve(&bundle)?;
    let tree = clone.tree_of(&clone.resolve(&candidate)?)?;
    let evidence = evidence(settings, &prepared, &bundle, &at_base.fleet)?;
    let policies = [evidence.base_commit.as_str(), tree.as_str()];
    let [before, after] = policies.map(|object| clone.file(object, policy::FILE));
    let decision = decide(&LandingFacts {
        ticket: &prepared.opened,
        fence,
        held: order.held,
        bundle: &evidence,
        keys_at_base: &at_base.fleet,
        keys_at_tip: &at_tip.fleet,
        lander: &key.public(),
        tip: &prepared.tip,
        candidate_tree: &tree,
        policy_is_unchanged: before? == after?,
        now: identity::now()?,
    });
    let tip = prepared.tip.clone();
    match decision {
        LandingDecision::Refuse(verdict) => Ok(LandingEnd::Refused(verdict)),
        LandingDecision::Moved => Ok(LandingEnd::Moved { tip }),
        LandingDecision::Land => {
            move_target(&prepared, order, (&bundle, &tree), &key, &at_base.fleet)
        }
    }
}

/// The commit that landed already, by the statement of a lander at the hub.
fn landed(prepared: &Prepared, keys: &FleetKeys) -> FleetResult<Option<Oid>> {
    let clone = &prepared.clone;
    let name = RunRefs(&prepared.opened.ticket.run).landed();
    if clone.remote(&name)?.is_none() {
        return Ok(None);
    }
    clone.fetch(&[format!("+{name}:{name}")])?;
    let bytes = clone.file(clone.resolve(&name)?.as_str(), "landed.json")?;
    let keys: Vec<PublicKey> = keys.landers.values().copied().collect();
    let read = FleetLanding::open(&bytes.unwrap_or_default(), &keys);
    let (commit, landing) = read.map_err(|error| {
        FleetFailure::of(
            Code::SignatureInvalid,
            "the hub holds a landing of this run",
            &error,
        )
    })?;
    if landing.ticket_sha256 != prepared.opened.sha256 {
        let reason = "another ticket with the id of this run has landed";
        return Err(FleetFailure::new(Code::TicketRefused, reason));
    }
    Ok(Some(commit))
}

fn move_target(
    prepared: &Prepared,
    order: &LandingOrder,
    (bundle, tree): (&Oid, &Oid),
    key: &SigningKey,
    keys: &FleetKeys,
) -> FleetResult<LandingEnd> {
    let (clone, ticket) = (&prepared.clone, &prepared.opened.ticket);
    let submitter = &prepared.opened.submitter;
    let author = Author {
        name: submitter.clone(),
        email: format!("{submitter}@fleet.invalid"),
        seconds: ticket.issued_at / 1000,
    };
    let subject = provost_core::foreign_text::first_line(&prepared.contract.inputs.spec, 72);
    let message = format!(
        "{subject}\n\nProvost-Run: {}\nProvost-Ticket: {}\nProvost-Evidence: {bundle}\n",
        ticket.run, prepared.opened.sha256
    );
    let tip = &prepared.tip;
    let commit = clone.commit_tree(tree, &[tip], &message, &author)?;
    let landing = FleetLanding {
        run: ticket.run.clone(),
        ticket_sha256: prepared.opened.sha256.clone(),
        fence: order.report.fence.to_string(),
        target: ticket.target.clone(),
        from: tip.clone(),
        bundle: bundle.clone(),
        landed_at: identity::now()?,
    };
    let statement = landing.sign(&commit, key);
    let files = [("landed.json".to_owned(), statement.into_bytes())];
    let statement = clone.commit(&files, &[], &format!("landing of {}\n", ticket.run))?;
    let name = RunRefs(&ticket.run).landed();
    let refspecs = [
        format!("{commit}:{}", ticket.target),
        format!("{statement}:{name}"),
    ];
    let leases = [format!("{}:{tip}", ticket.target), format!("{name}:")];
    let pushed = clone.push(&refspecs, &leases);
    if pushed.is_ok() {
        return Ok(LandingEnd::Landed { commit });
    }
    // The push may have succeeded although its answer was lost, or the target may have moved.
    if let Some(commit) = landed(prepared, keys)? {
        return Ok(LandingEnd::Landed { commit });
    }
    match clone.fetch_target(&ticket.target)? {
        moved if moved != *tip => Ok(LandingEnd::Moved { tip: moved }),
        _ => pushed.map(|()| LandingEnd::Landed { commit }),
    }
}

/// Verifies a bundle from its bytes with `provost verify`, and reads what decides.
fn evidence(
    settings: &FleetSettings,
    prepared: &Prepared,
    bundle: &Oid,
    keys: &FleetKeys,
) -> FleetResult<BundleFacts> {
    let number = provost_fs::atomic::unused_number().map_err(host("naming a directory"))?;
    let directory = settings.state()?.join("landing").join(number);
    std::fs::create_dir_all(&directory).map_err(host("making a directory for evidence"))?;
    let found = prepared
        .clone
        .export(bundle, &directory)
        .and_then(|()| read_evidence(settings, prepared, &directory, keys));
    // A copy of what the hub has.
    let _ = std::fs::remove_dir_all(&directory);
    found
}

fn read_evidence(
    settings: &FleetSettings,
    prepared: &Prepared,
    directory: &Path,
    keys: &FleetKeys,
) -> FleetResult<BundleFacts> {
    let read = |name: &str| std::fs::read(directory.join(name)).map_err(host("reading evidence"));
    let workers: Vec<PublicKey> = keys.workers.values().copied().collect();
    let opened = dsse::open(&read("attestation.dsse.json")?, &workers);
    let signer = opened.map_err(|error| match error {
        dsse::OpenError::UnknownKey { .. } => {
            let reason = "the evidence is sealed by a key that is not under [fleet.workers]";
            FleetFailure::new(Code::FleetKeyRefused, reason)
        }
        other => FleetFailure::of(Code::SignatureInvalid, "the seal of the evidence", &other),
    })?;
    verify(settings, directory, &signer.key)?;
    let chain = record::read(&read("events.jsonl")?, Head::genesis());
    let chain = chain.map_err(|error| {
        FleetFailure::of(Code::EvidenceAltered, "reading the ledger of a run", &error)
    })?;
    let (opened, verdict, tree) = facts(&chain.records)?;
    let mut contract = opened.contract.clone();
    contract.rollback.baseline_ref = prepared.opened.base_commit.to_string();
    let (_, rules) = prepared.clone.policy(&opened.base_commit)?;
    Ok(BundleFacts {
        signer: signer.key,
        accepted: verdict.is_some_and(|verdict| verdict.allow),
        ticket: opened.ticket.clone(),
        contract_sha256: contract::digest(&contract)
            .map_err(|error| FleetFailure::of(Code::Bug, "digesting a contract", &error))?,
        base_commit: opened.base_commit.clone(),
        policy_sha256: rules,
        tree,
    })
}

/// The first event, the verdict and the last captured tree of a ledger.
fn facts(records: &[Record]) -> FleetResult<(Box<Opened>, Option<Verdict>, Option<Oid>)> {
    let (mut opened, mut verdict, mut tree) = (None, None, None);
    for record in records {
        let fact = record.event.untagged::<Fact>().map_err(|error| {
            FleetFailure::of(Code::EvidenceAltered, "reading an event of a run", &error)
        })?;
        match fact {
            Fact::Opened(first) => {
                tree = first.work.as_ref().map(|work| work.tree.clone());
                opened = Some(first);
            }
            Fact::Captured(capture) => tree = Some(capture.tree),
            Fact::Finished { verdict: last } => verdict = Some(last),
            _ => {}
        }
    }
    match opened {
        Some(opened) => Ok((opened, verdict, tree)),
        None => Err(FleetFailure::new(
            Code::EvidenceIncomplete,
            "the ledger has no first event",
        )),
    }
}

fn verify(settings: &FleetSettings, directory: &Path, key: &PublicKey) -> FleetResult<()> {
    let mut program = Command::new(&settings.provost);
    program
        .arg("verify")
        .arg(directory)
        .args(["--json", "--key", &key.to_string()]);
    program.current_dir(directory);
    let done = command::run(program, &[], settings.intervals.git())?;
    let verdict = provost_core::json::parse_as::<Verdict>(&done.out);
    match verdict {
        Ok(verdict) if verdict.allow && done.status.success() => Ok(()),
        Ok(verdict) if !verdict.allow => Err(FleetFailure::new(verdict.code, verdict.reason)),
        _ => Err(FleetFailure::new(Code::HostFailed, done.complaint())),
    }
}
