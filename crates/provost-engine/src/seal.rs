//! Seals a run: reports, manifest and attestation, in that order.
//!
//! Each piece names the digests of those before it, and the signature covers the last one, so the
//! signed statement is about every byte of the bundle. All of it is computed from the ledger:
//! sealing again after a crash writes the same bytes.

use provost_core::bundle::compose::{ComposeError, Composer, Files};
use provost_core::bundle::layout::{ATTESTATION, BESIDE, MANIFEST};
use provost_core::code::Code;
use provost_core::gate::command::line;
use provost_core::json::canonical;
use provost_core::run::State;
use provost_core::run::fact::Side;
use serde_json::json;

use crate::drive::Ports;
use crate::ports::{Bundle, PortError};

/// Whether the run is sealed.
pub(crate) fn is_sealed(ports: &Ports<'_>) -> Result<bool, PortError> {
    Ok(ports.bundle.get(ATTESTATION)?.is_some())
}

/// Seals the run.
pub(crate) fn seal(ports: &mut Ports<'_>, state: &State) -> Result<(), PortError> {
    put_evidence(ports, state)?;
    let files = files(ports.bundle)?;
    for (name, bytes) in compose(state, &files)?.reports().map_err(bug)? {
        ports.bundle.put(&name, &bytes)?;
    }
    let files = self::files(ports.bundle)?;
    let report = compose(state, &files)?.evidence_report();
    ports.bundle.put("reports/evidence_report.json", &report)?;
    let files = self::files(ports.bundle)?;
    let composer = compose(state, &files)?;
    let manifest = composer.manifest().map_err(bug)?;
    ports.bundle.put(MANIFEST, &manifest)?;
    let head = ports.ledger.head();
    let statement = composer.statement(&manifest, &head).map_err(bug)?;
    let payload =
        serde_json::to_value(&statement).map_err(|error| PortError::of(Code::Bug, error))?;
    // The pin comes before the seal: a sealed run without a pin could lose its end unseen.
    ports.registry.pin(&state.names.run_id, &head)?;
    let envelope = ports.signer.sign(canonical(&payload).as_bytes())?;
    ports.bundle.put(ATTESTATION, &envelope)
}

fn compose<'a>(state: &'a State, files: &'a Files) -> Result<Composer<'a>, PortError> {
    Composer::new(state, files).map_err(bug)
}

fn bug(error: ComposeError) -> PortError {
    PortError::of(Code::Bug, error)
}

/// The files the manifest is to name.
fn files(bundle: &dyn Bundle) -> Result<Files, PortError> {
    let named = bundle
        .list()?
        .into_iter()
        .filter(|kept| !BESIDE.contains(&kept.name.as_str()));
    Ok(named
        .map(|kept| (kept.name, (kept.bytes, kept.sha256)))
        .collect())
}

/// Writes the evidence that is not a report.
fn put_evidence(ports: &mut Ports<'_>, state: &State) -> Result<(), PortError> {
    let (mut patch, mut names) = (Vec::new(), String::new());
    if let Some(captured) = &state.captured {
        patch = ports.host.patch(&state.opened.base_tree, &captured.tree)?;
        for change in &captured.changes {
            names += &change.path.to_string();
            names += "\n";
        }
        let objects = ports.host.objects(&state.base(), &captured.tree)?;
        ports.bundle.put("git/objects.pack", &objects)?;
    }
    let task = &state.names.task_id;
    for name in [
        "patch.diff",
        "git/patch.diff",
        &format!("results/{task}/patch.diff"),
    ] {
        ports.bundle.put(name, &patch)?;
    }
    for name in ["diff_name_only.txt", "git/diff_name_only.txt"] {
        ports.bundle.put(name, names.as_bytes())?;
    }
    let base = format!("{}\n", state.opened.base_commit);
    ports
        .bundle
        .put("git/baseline_commit.txt", base.as_bytes())?;
    let trace = format!("{}\n", state.names.trace_id);
    ports.bundle.put("trace/trace_id.txt", trace.as_bytes())?;
    let meta = json!({
        "provost": state.opened.version,
        "agent": state.opened.agent,
        "box": state.tested,
        "resumed": state.resumed,
        "attempts": state.attempt,
    });
    ports
        .bundle
        .put("meta.json", format!("{meta:#}\n").as_bytes())?;
    if let Some(test) = &state.tested {
        let test =
            serde_json::to_vec_pretty(test).map_err(|error| PortError::of(Code::Bug, error))?;
        ports.bundle.put("box/selftest.json", &test)?;
    }
    if let Some(agent) = &state.agent
        && let Some(grants) = granted(state)
    {
        let network = json!({ "grants": grants, "requests": agent.network });
        let text = format!("{network:#}\n");
        ports.bundle.put("box/network.json", text.as_bytes())?;
    }
    if let Some(path) = &state.worked_in {
        ports
            .bundle
            .put("worktree_ref.txt", format!("{path}\n").as_bytes())?;
    }
    put_test_logs(ports, state)
}

/// The places of the network that the contract grants, if any.
fn granted(state: &State) -> Option<&[String]> {
    let extension = state.opened.contract.x_provost.as_ref()?;
    Some(extension.net.as_slice()).filter(|net| !net.is_empty())
}

/// Joins the logs of all acceptance commands, as the layout of the bundle wants them.
fn put_test_logs(ports: &mut Ports<'_>, state: &State) -> Result<(), PortError> {
    let Some(run) = state.tests.get(&Side::Candidate) else {
        return Ok(());
    };
    let (mut commands, mut stdout, mut stderr) = (String::new(), Vec::new(), Vec::new());
    for command in &run.commands {
        commands += &format!("{}\n", line(&command.argv));
        stdout.extend(log(ports.bundle, &command.stdout.file)?);
        stderr.extend(log(ports.bundle, &command.stderr.file)?);
    }
    ports.bundle.put("tests/command.txt", commands.as_bytes())?;
    ports.bundle.put("tests/stdout.log", &stdout)?;
    ports.bundle.put("tests/stderr.log", &stderr)
}

/// A log that a record names; one that is gone is not made up.
fn log(bundle: &dyn Bundle, name: &str) -> Result<Vec<u8>, PortError> {
    let missing = || PortError::new(Code::EvidenceIncomplete, format!("`{name}` is missing"));
    bundle.get(name)?.ok_or_else(missing)
}
