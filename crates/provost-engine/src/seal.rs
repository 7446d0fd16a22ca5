//! Seals a run: reports, manifest and attestation, in that order.
//!
//! Each piece names the digests of those before it, and the signature covers the last one, so the
//! signed statement is about every byte of the bundle. All of it is computed from the ledger:
//! sealing again after a crash writes the same bytes.

mod agent_files;
pub(crate) mod children;

pub(crate) use agent_files::thread;

use crate::bundle::attempts::{self, Attempt, result_patch};
use crate::bundle::compose::{ComposeError, Composer, Files};
use provost_core::agent::Adapter;
use provost_core::bundle::layout::{
    AGENT_RESULT, ATTESTATION, BASELINE, BESIDE, BundleFormat, CHANGED, CHANGED_COPY,
    EVIDENCE_REPORT, LARGEST_FILE, MANIFEST, META, MOST_EARLIER, OUTPUT_SCHEMA, PACK, PATCH,
    PATCH_COPY, TEST_COMMANDS, TEST_ERRORS, TEST_OUTPUT, TRACE, WORKED_IN,
};
use provost_core::bundle::report::{NetworkUse, RunMeta, ToolCalls};
use provost_core::code::Code;
use provost_core::contract::additions;
use provost_core::contract::output::Output;
use provost_core::gate::command::line;
use provost_core::json::{self, canonical};
use provost_core::net::traffic::Traffic;
use provost_core::record::Head;
use provost_core::run::State;
use provost_core::run::fact::{Capture, ResultFile, Side};
use provost_core::verdict::Verdict;

use serde_json::{Map, Value};

use crate::drive::{self, Ports};
use crate::ports::{Bundle, Host, PortError};

pub(crate) fn is_sealed(ports: &Ports<'_>) -> Result<bool, PortError> {
    Ok(ports.bundle.get(ATTESTATION)?.is_some())
}

pub(crate) fn seal(ports: &mut Ports<'_>, state: &State) -> Result<(), PortError> {
    ports.bundle.tidy()?;
    drive::restore_contract(ports.bundle, &state.opened)?;
    let made = Made::of(ports.host, state)?;
    let head = ports.ledger.head();
    let statement = write(ports.bundle, state, &made, &head)?;
    // The pin comes before the seal: the end of a sealed run without a pin could be cut unnoticed.
    ports.registry.pin(&state.names.run_id, &head)?;
    let envelope = ports.signer.sign(statement.as_bytes())?;
    ports.bundle.put(ATTESTATION, &envelope)
}

/// Writes the manifest of a run that has begun, unless there is one, with the files that it has to
/// name: empty ones for the change, and reports that say that nothing was judged yet.
pub(crate) fn begin(ports: &mut Ports<'_>, state: &State) -> Result<(), PortError> {
    if state.finished.is_some() || ports.bundle.get(MANIFEST)?.is_some() {
        return Ok(());
    }
    let empty = |name: &str| (name.to_owned(), Vec::new());
    ports.bundle.put_all(&[empty(PATCH), empty(CHANGED)])?;
    let verdict = Verdict::deny(Code::RunUnfinished, "the run has not ended yet");
    let files = files(ports.bundle)?;
    let reports = Composer::unfinished(state, &verdict, &files).judges();
    ports.bundle.put_all(&reports.map_err(bug)?)?;
    let files = self::files(ports.bundle)?;
    let manifest = Composer::unfinished(state, &verdict, &files).manifest();
    ports.bundle.put(MANIFEST, &manifest.map_err(bug)?)
}

/// The files of a bundle that only the machine can make.
#[derive(Default)]
pub(crate) struct Made {
    /// The patch; empty if nothing was captured.
    pub(crate) patch: Vec<u8>,
    /// The patch of every attempt, by the name of its file.
    pub(crate) patches: Vec<(String, Vec<u8>)>,
    /// The objects that prove the patches.
    pub(crate) objects: Option<Vec<u8>>,
}

impl Made {
    fn of(host: &mut dyn Host, state: &State) -> Result<Self, PortError> {
        let before = &state.opened.base_tree;
        let mut patch_of = |captured: &Capture| match captured.shown() {
            None => host.patch(before, &captured.tree),
            Some(paths) => host.patch_of(before, &captured.tree, &paths),
        };
        let mut made = Self::default();
        let last = attempts::last(state);
        if let Some(last) = &last {
            made.patch = patch_of(last.captured)?;
            made.patches.push((last.patch(), made.patch.clone()));
        }
        let mut room = MOST_EARLIER;
        let mut held: Vec<Attempt<'_>> = last.into_iter().collect();
        for attempt in attempts::earlier(state).into_iter().rev() {
            let patch = patch_of(attempt.captured)?;
            let Some(rest) = room.checked_sub(patch.len() as u64) else {
                break;
            };
            room = rest;
            made.patches.push((attempt.patch(), patch));
            held.push(attempt);
        }
        made.add_objects(host, state, held)?;
        Ok(made)
    }

    /// Adds the objects of the attempts `held`, newest first, as many as one file of a bundle can
    /// hold; an attempt without objects has no patch either.
    fn add_objects(
        &mut self,
        host: &mut dyn Host,
        state: &State,
        mut held: Vec<Attempt<'_>>,
    ) -> Result<(), PortError> {
        loop {
            let shown = held.iter().map(|it| it.captured);
            let shown: Vec<_> = shown
                .filter(|captured| !captured.withheld.names)
                .map(|captured| (&captured.tree, &captured.withheld.contents))
                .collect();
            if shown.is_empty() {
                return Ok(());
            }
            let objects = host.objects(&state.base(), &shown)?;
            if held.len() == 1 || objects.len() as u64 <= LARGEST_FILE {
                self.objects = Some(objects);
                return Ok(());
            }
            held.pop();
            self.patches.pop();
        }
    }
}

/// Writes every file of the bundle that follows from the ledger, and gives the statement to sign.
pub(crate) fn write(
    bundle: &mut dyn Bundle,
    state: &State,
    made: &Made,
    head: &Head,
) -> Result<String, PortError> {
    let evidence = evidence(bundle, state, made)?;
    bundle.put_all(&evidence)?;
    let files = files(bundle)?;
    let reports = compose(state, &files)?.reports().map_err(bug)?;
    bundle.put_all(&reports)?;
    let files = self::files(bundle)?;
    let report = compose(state, &files)?.evidence_report().map_err(bug)?;
    bundle.put(EVIDENCE_REPORT, &report)?;
    let files = self::files(bundle)?;
    let composer = compose(state, &files)?;
    let manifest = composer.manifest().map_err(bug)?;
    bundle.put(MANIFEST, &manifest)?;
    let statement = composer.statement(&manifest, head).map_err(bug)?;
    let payload =
        serde_json::to_value(&statement).map_err(|error| PortError::of(Code::Bug, error))?;
    Ok(canonical(&payload))
}

fn compose<'a>(state: &'a State, files: &'a Files) -> Result<Composer<'a>, PortError> {
    Composer::new(state, files).map_err(bug)
}

fn bug(error: ComposeError) -> PortError {
    PortError::of(Code::Bug, error)
}

/// The files that the manifest names.
fn files(bundle: &dyn Bundle) -> Result<Files, PortError> {
    let named = bundle
        .list()?
        .into_iter()
        .filter(|kept| !BESIDE.contains(&kept.name.as_str()));
    Ok(named
        .map(|kept| (kept.name, (kept.bytes, kept.sha256)))
        .collect())
}

/// The evidence that is not a report, file by file.
fn evidence(
    bundle: &dyn Bundle,
    state: &State,
    made: &Made,
) -> Result<Vec<(String, Vec<u8>)>, PortError> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut put = |name: &str, bytes: Vec<u8>| files.push((name.to_owned(), bytes));
    let line = |text: &dyn std::fmt::Display| format!("{text}\n").into_bytes();
    let changes = state.captured.iter().flat_map(|captured| &captured.changes);
    let names: Vec<u8> = changes.flat_map(|change| line(&change.path)).collect();
    if let Some(objects) = &made.objects {
        put(PACK, objects.clone());
    }
    put(PATCH, made.patch.clone());
    put(PATCH_COPY, made.patch.clone());
    put(&result_patch(&state.names.task_id), made.patch.clone());
    for (name, patch) in &made.patches {
        put(name, patch.clone());
    }
    let attempts = attempts::earlier(state).into_iter();
    for fix in attempts.chain(attempts::last(state)) {
        let made = made.patches.iter().find(|(name, _)| *name == fix.patch());
        if let Some((_, patch)) = made.filter(|_| fix.task_id != state.names.task_id) {
            put(&result_patch(fix.task_id), patch.clone());
        }
    }
    put(CHANGED_COPY, names.clone());
    put(CHANGED, names);
    put(BASELINE, line(&state.opened.base_commit));
    put(TRACE, line(&state.names.trace_id));
    let format = state.opened.format;
    let bug = |error| PortError::of(Code::Bug, error);
    let meta = json::pretty(&meta(state)?).map_err(bug)?;
    put(META, meta.into_bytes());
    if let Some(schema) = bound_schema(state) {
        put(OUTPUT_SCHEMA, schema);
    }
    if let Some(ResultFile::Text(text)) = state.agent.as_ref().map(|agent| &agent.result) {
        put(AGENT_RESULT, text.clone().into_bytes());
    }
    if let Some(test) = &state.tested {
        let test = serde_json::to_vec_pretty(test).map_err(bug)?;
        put(format.selftest(), test);
    }
    let fixed = state.past.iter().filter_map(|past| past.agent.as_ref());
    let agents: Vec<_> = fixed.chain(&state.agent).collect();
    if !agents.is_empty()
        && let Some(grants) = granted(state)
    {
        let requests = agents.iter().flat_map(|agent| &agent.network);
        let network = NetworkUse {
            grants: grants.to_vec(),
            requests: requests.map(as_object).collect::<Result<_, _>>()?,
        };
        put(
            format.network(),
            json::pretty(&network).map_err(bug)?.into_bytes(),
        );
    }
    if let Some(path) = &state.worked_in {
        put(WORKED_IN, line(path));
    }
    files.extend(test_logs(bundle, state)?);
    files.extend(agent_files::files(bundle, state)?);
    files.extend(children::files(state)?);
    Ok(files)
}

/// The schema that the result of the run is bound to; none if the contract binds none that is known.
fn bound_schema(state: &State) -> Option<Vec<u8>> {
    let contract = &state.opened.contract;
    if let Some(own) = state.opened.additions.bound(contract) {
        return Some(own.text.clone().into_bytes());
    }
    let output = Output::of(contract.assigned_agent.role);
    let (_, artifact) = additions::bound_schema(contract)?;
    additions::is_shipped(artifact, output).then(|| output.text().into_bytes())
}

/// How the run was carried out.
fn meta(state: &State) -> Result<RunMeta, PortError> {
    let opened = &state.opened;
    let known = opened.adapted.as_ref();
    let program = state.tested.as_ref().and_then(|test| test.program.as_ref());
    let environment = program.map(|program| program.environment.clone().try_into());
    let environment = environment.transpose();
    let of_format = |format| state.tested.clone().filter(|_| opened.format == format);
    Ok(RunMeta {
        provost: opened.version.clone(),
        agent: opened.agent.clone(),
        adapter: known
            .map_or(Adapter::COMMAND, |known| known.adapter)
            .name()
            .to_owned(),
        program_version: program.and_then(|program| program.version.clone()),
        model: known.and_then(|known| known.model.clone()),
        environment_sha256: environment.map_err(|error| PortError::of(Code::Bug, error))?,
        tool_calls: match (&opened.work, known) {
            (Some(_), _) => ToolCalls::None,
            (None, Some(_)) => ToolCalls::Reported,
            (None, None) => ToolCalls::NotObservable,
        },
        sandbox: of_format(BundleFormat::Two),
        r#box: of_format(BundleFormat::One),
        resumed: state.resumed,
        attempts: state.attempt,
    })
}

fn as_object(traffic: &Traffic) -> Result<Map<String, Value>, PortError> {
    match serde_json::to_value(traffic) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(PortError::new(Code::Bug, "traffic is no object")),
        Err(error) => Err(PortError::of(Code::Bug, error)),
    }
}

/// The endpoints that the contract grants, if any.
fn granted(state: &State) -> Option<&[String]> {
    let extension = state.opened.contract.x_provost.as_ref()?;
    Some(extension.net.as_slice()).filter(|net| !net.is_empty())
}

/// The logs of all acceptance commands joined, as the bundle layout requires.
fn test_logs(bundle: &dyn Bundle, state: &State) -> Result<Vec<(String, Vec<u8>)>, PortError> {
    let Some(run) = state.tests.get(&Side::Candidate) else {
        return Ok(Vec::new());
    };
    let (mut commands, mut stdout, mut stderr) = (String::new(), Vec::new(), Vec::new());
    for command in &run.commands {
        commands += &format!("{}\n", line(&command.argv));
        stdout.extend(log(bundle, &command.stdout.file)?);
        stderr.extend(log(bundle, &command.stderr.file)?);
    }
    Ok(vec![
        (TEST_COMMANDS.to_owned(), commands.into_bytes()),
        (TEST_OUTPUT.to_owned(), stdout),
        (TEST_ERRORS.to_owned(), stderr),
    ])
}

/// A log that a record names; a missing one is an error.
fn log(bundle: &dyn Bundle, name: &str) -> Result<Vec<u8>, PortError> {
    let missing = || PortError::new(Code::EvidenceIncomplete, format!("`{name}` is missing"));
    bundle.get(name)?.ok_or_else(missing)
}
