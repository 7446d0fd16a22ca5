//! Prepares the dependencies of a tree: runs the steps of the policy, each once, in a sandbox.
//!
//! # Invariants
//!
//! - A step runs on a checkout of the base. It runs on another tree only where that changed its
//!   inputs, and then its output is used for that tree alone.
//! - A step reaches the network only by its grants. Its output becomes a layer that no process
//!   writes to.

pub(super) mod identity;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::change::Node;
use provost_core::code::Code;
use provost_core::contract::limits::Limits;
use provost_core::gate::command;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::traffic::Traffic;
use provost_core::object::Oid;
use provost_core::path::{RawPath, RepoPath};
use provost_core::prepare::{self, Circumstances, HostDirectory, Output, Step, Use};
use provost_core::run::effect::Prepare;
use provost_core::run::fact::{CommandRun, Ending, Layered, Made};
use provost_core::run::judge::render_ending;
use provost_core::tier::Tier;
use provost_engine::dependencies::missing::grants;
use provost_engine::ports::{PortError, Progress, Watch};

use super::sandboxed_command::SandboxedCommand;
use super::{Machine, git, host, profile};
use crate::clock;
use crate::git::Repository;
use crate::proxy::Outlet;
use crate::sandbox::{HOME, Mount, Profile, Stdin};
use crate::virtual_environment;
use crate::workspace::layer::{self, Layer};
use crate::workspace::{self, PrivateGit, WorkspaceError};

/// Time limit of one command of a step.
const LONGEST: Duration = Duration::from_mins(30);
/// How many of the last characters that a failed step printed are reported.
const SHOWN: usize = 400;
/// The file with the certificates that the machine trusts.
const TRUSTED: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Variables that make tools with certificates of their own trust those of the machine.
const TRUST: [&str; 4] = [
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
];

/// The layers of one tree, which are not removed while this value lives.
#[derive(Debug, Default)]
pub struct Ready {
    layers: Vec<(Step, Layer)>,
    /// Steps whose directory of the host is mounted as it is.
    given: Vec<Step>,
    /// What the ledger says about them.
    pub layered: Vec<Layered>,
}

impl Ready {
    /// Makes mount points for the layers in the checkout `tree`, and in `home` if that is on disk.
    pub(super) fn make_places(&self, tree: &Path, home: Option<&Path>) -> Result<(), PortError> {
        let outputs = self.layers.iter().flat_map(|(step, _)| &step.outputs);
        make_places(outputs, tree, home)
    }

    /// Adds the layers to `profile`, with the variables that name them; their programs come first
    /// in PATH.
    pub(super) fn add_to(&self, profile: &mut Profile) {
        let mut path = Vec::new();
        for (step, layer) in &self.layers {
            for (number, output) in step.outputs.iter().enumerate() {
                let (source, target) = (layer.output(number), target(output));
                let programs = programs(&source).map(|below| target.join(below));
                path.extend(programs.map(|programs| programs.display().to_string()));
                profile.add(Mount::ReadOnly { source, target });
            }
            profile.env.extend(step.variables(HOME, Use::Used));
        }
        for step in &self.given {
            let Some(directory) = &step.mount else {
                continue;
            };
            path.push(format!("{}/bin", directory.path));
            profile.add(Mount::ReadOnly {
                source: directory.path.clone().into(),
                target: directory.path.clone().into(),
            });
            profile.env.extend(step.variables(HOME, Use::Used));
        }
        path.extend(profile.env.get("PATH").cloned());
        profile.env.insert("PATH".to_owned(), path.join(":"));
    }
}

/// Where the programs of an output are, if it is a virtual environment or what npm installs.
fn programs(output: &Path) -> Option<&'static str> {
    if output.join("pyvenv.cfg").is_file() {
        return Some("bin");
    }
    output.join(".bin").is_dir().then_some(".bin")
}

/// Where an output is in a sandbox.
pub(super) fn target(output: &Output) -> PathBuf {
    match output {
        Output::Tree(path) => Path::new(profile::TREE).join(path.as_str()),
        Output::Home(path) => Path::new(HOME).join(path.as_str()),
    }
}

fn make_places<'a>(
    outputs: impl Iterator<Item = &'a Output>,
    tree: &Path,
    home: Option<&Path>,
) -> Result<(), PortError> {
    for output in outputs {
        let (root, path) = match (output, home) {
            (Output::Tree(path), _) => (tree, path),
            (Output::Home(path), Some(home)) => (home, path),
            (Output::Home(_), None) => continue,
        };
        layer::make_place(root, path).map_err(host("make room for what was prepared"))?;
    }
    Ok(())
}

impl Machine {
    /// Locks the layers of `plan`, and makes those that are missing.
    pub fn ready(&self, plan: &Prepare, watch: &mut dyn Watch) -> Result<Ready, PortError> {
        let mut ready = Ready::default();
        for Keyed { step, key, source } in keyed(&self.repo, plan)? {
            if let Some(directory) = &step.mount {
                ready.layered.push(given(step, directory, key)?);
                ready.given.push(step.clone());
                continue;
            }
            let mut making = Making {
                machine: self,
                step,
                key: &key,
                source,
                commit: &plan.base.commit,
                earlier: &ready,
                logs: &plan.logs,
                limits: &plan.limits,
                loopback: plan.loopback,
                commands: Vec::new(),
                network: Vec::new(),
            };
            let mut fill = |begun: &Path| making.fill(begun, watch);
            let layer = self.places.layers.hold(&key, &mut fill)?;
            let made = layer.is_new().then(|| Made {
                tree: source.clone(),
                again: layer.is_fixed(),
                commands: making.commands,
                network: making.network,
            });
            ready.layered.push(Layered {
                name: step.name.clone(),
                key,
                sha256: layer.digest().to_owned(),
                bytes: layer.bytes(),
                made,
            });
            ready.layers.push((step.clone(), layer));
        }
        Ok(ready)
    }
}

/// A directory that the user gave, if it is as it was when the run began.
fn given(step: &Step, directory: &HostDirectory, key: String) -> Result<Layered, PortError> {
    let path = &directory.path;
    let found = virtual_environment::digest(Path::new(path));
    let (sha256, bytes) = found.map_err(host("read the virtual environment"))?;
    if sha256 != directory.sha256 {
        let reason = format!("`{path}` was changed since the run began");
        let hint = "start the run again, or have it prepared by a step of provost.toml";
        return Err(PortError::new(Code::PrepareFailed, reason).hint(hint));
    }
    Ok(Layered {
        name: step.name.clone(),
        key,
        sha256,
        bytes,
        made: None,
    })
}

/// The names of the layers of `plan` in `repo`, whether they exist or not.
pub fn layer_keys(repo: &Repository, plan: &Prepare) -> Result<Vec<String>, PortError> {
    let keyed = keyed(repo, plan)?;
    Ok(keyed.into_iter().map(|keyed| keyed.key).collect())
}

/// The steps of `plan` with the names of their layers, in order.
fn keyed<'a>(repo: &Repository, plan: &'a Prepare) -> Result<Vec<Keyed<'a>>, PortError> {
    if plan.steps.is_empty() {
        return Ok(Vec::new());
    }
    let base = repo.read_tree(&plan.base.tree).map_err(git)?;
    let other = (plan.tree != plan.base.tree).then(|| repo.read_tree(&plan.tree));
    let files = other.transpose().map_err(git)?;
    let files = &files.as_ref().unwrap_or(&base).files;
    if let Some(path) = prepare::in_the_way(&plan.steps, files).into_iter().next() {
        let reason = format!("`{path}` of the tree lies where a prepared output goes");
        return Err(PortError::new(Code::PrepareFailed, reason));
    }
    let mut keyed = Vec::new();
    let mut before = Vec::new();
    let mut is_changed = false;
    for step in &plan.steps {
        let inputs = inputs(step, files)?;
        is_changed = is_changed || step.inputs_in(&base.files).as_ref() != Ok(&inputs);
        let circumstances = Circumstances {
            // Of this step alone: a step that is added later leaves the earlier layers valid.
            toolchain: &identity::of(step),
            before: &before,
            untrusted: is_changed.then_some(&plan.tree),
            loopback: plan.loopback,
        };
        let key = prepare::key(step, &inputs, circumstances);
        before.push(key.clone());
        // Other changes of a tree must not influence a layer that other runs use.
        let source = if is_changed {
            &plan.tree
        } else {
            &plan.base.tree
        };
        keyed.push(Keyed { step, key, source });
    }
    Ok(keyed)
}

/// A step, and the layer that it makes.
struct Keyed<'a> {
    step: &'a Step,
    /// The name of the layer.
    key: String,
    /// The tree it is made from.
    source: &'a Oid,
}

fn inputs<'a>(
    step: &'a Step,
    files: &'a BTreeMap<RawPath, Node>,
) -> Result<BTreeMap<&'a RawPath, &'a Node>, PortError> {
    step.inputs_in(files).map_err(|missing| {
        let reason = format!("{}: the input `{missing}` is not in the tree", step.name);
        PortError::new(Code::PrepareFailed, reason)
    })
}

/// A layer that is being made.
struct Making<'a> {
    machine: &'a Machine,
    step: &'a Step,
    key: &'a str,
    /// The tree it is made from.
    source: &'a Oid,
    /// The commit that the git directory of the checkout names.
    commit: &'a Oid,
    earlier: &'a Ready,
    logs: &'a str,
    limits: &'a Limits,
    loopback: bool,
    commands: Vec<CommandRun>,
    network: Vec<Traffic>,
}

impl Making<'_> {
    /// Makes the layer in the new directory `begun`.
    fn fill(&mut self, begun: &Path, watch: &mut dyn Watch) -> Result<(), PortError> {
        // Shows the observer what is made; a cancel request is seen again at the next tick.
        let _ = watch.tick(&Progress {
            what: self.step.name.clone(),
            ..Progress::default()
        });
        let private = PrivateGit {
            commit: self.commit.clone(),
            objects: profile::OBJECTS.into(),
        };
        let (repo, checkout) = (&self.machine.repo, begun.join("workspace"));
        let made = workspace::create(repo, self.source, &checkout, Some(&private))?;
        let home = begun.join("home");
        fs::create_dir(&home).map_err(host("make the home directory"))?;
        self.earlier.make_places(&made.tree, Some(&home))?;
        let tree = made.mount(profile::TREE.as_ref());
        let mut profile = self
            .machine
            .tree_profile(Tier::default(), LONGEST, tree, self.loopback);
        self.machine.add_submodules(&mut profile, self.source)?;
        profile.add(Mount::Writable {
            source: home.clone(),
            target: HOME.into(),
        });
        self.earlier.add_to(&mut profile);
        profile.env.extend(self.step.variables(HOME, Use::Made));
        if !self.step.net.is_empty() {
            profile.grant(self.step.net.clone());
            trust(&mut profile);
        }
        profile.limits.hold(LONGEST, self.limits);
        self.machine.attack(&profile, "dependencies")?;
        for argv in &self.step.run {
            self.command(argv, begun, &profile, watch)?;
        }
        let place = |output: &'_ Output| match output {
            Output::Tree(path) => (made.tree.clone(), path.clone()),
            Output::Home(path) => (home.clone(), path.clone()),
        };
        let outputs: Vec<(PathBuf, RepoPath)> = self.step.outputs.iter().map(place).collect();
        layer::close(begun, self.key, &outputs).map_err(|error| {
            let reason = format!("{}: {}", self.step.name, whole(&error));
            PortError::new(Code::PrepareFailed, reason)
        })
    }

    fn command(
        &mut self,
        argv: &[String],
        directory: &Path,
        profile: &Profile,
        watch: &mut dyn Watch,
    ) -> Result<(), PortError> {
        let number = self.commands.len() + 1;
        let log = |stream: &str| {
            let key = &self.key[..16];
            let (logs, step) = (self.logs, &self.step.name);
            format!("{logs}/{step}.{key}.{number}.{stream}.log")
        };
        let run = SandboxedCommand {
            broker: None,
            launcher: &self.machine.launcher,
            profile,
            directory,
            bundle: &self.machine.bundle,
            what: &self.step.name,
            stdout: log("stdout"),
            stderr: log("stderr"),
            outlet: Outlet::default(),
            known: &self.machine.known,
        };
        let began = Some(clock::now());
        let ended = run.follow(argv.to_vec(), Stdin::Null, watch)?;
        self.network.extend(ended.network);
        let ran = CommandRun {
            name: self.step.name.clone(),
            argv: argv.to_vec(),
            ending: ended.ending,
            began,
            wall_ms: ended.wall_ms,
            stdout: ended.stdout,
            stderr: ended.stderr,
            tally: None,
        };
        let failure = (ran.ending != Ending::Exited(0)).then(|| self.failure(&ran));
        self.commands.push(ran);
        failure.map_or(Ok(()), Err)
    }

    /// Why a step that ended so failed.
    fn failure(&self, ran: &CommandRun) -> PortError {
        let code = match ran.ending {
            Ending::Cancelled => Code::Cancelled,
            Ending::LeaseLost => Code::LeaseLost,
            _ => Code::PrepareFailed,
        };
        let line = command::line(&ran.argv);
        let mut reason = format!("{}: `{line}` {}", self.step.name, render_ending(ran.ending));
        // Some tools say on one stream that they failed, and on the other why.
        let streams = [&ran.stderr, &ran.stdout];
        let mut printed = String::new();
        for stream in streams.into_iter().filter(|stream| stream.kept > 0) {
            let place = self.machine.bundle.join(&stream.file);
            let end = end_of(&place);
            reason += &format!("; {} ends: {end}", place.display());
            printed += &format!("{end}\n");
        }
        reason += &refusals(&self.network, self.step);
        let error = PortError::new(code, reason);
        match grants(&printed, self.step, &lacking(&self.network, self.step)) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// The places that a step was refused because it does not grant them.
fn lacking(network: &[Traffic], step: &Step) -> BTreeSet<String> {
    let refused = network
        .iter()
        .filter(|one| one.code == Code::NetworkRefused && Endpoint::parse(&one.target).is_ok());
    let granted = |place: &str| step.net.iter().any(|net| net.to_string() == place);
    let places = refused.map(|one| one.target.clone());
    places.filter(|place| !granted(place)).collect()
}

/// Which places a step was refused, and how to permit them.
fn refusals(network: &[Traffic], step: &Step) -> String {
    let refused = network.iter().filter(|one| {
        // A request that named no place cannot be granted.
        one.code == Code::NetworkRefused && one.target.contains(':')
    });
    let refused: BTreeMap<&str, Option<&str>> = refused
        .map(|one| (one.target.as_str(), one.reason.as_deref()))
        .collect();
    let granted = |place: &str| step.net.iter().any(|net| net.to_string() == place);
    let mut words = String::new();
    let mut lacking = Vec::new();
    for (place, reason) in refused {
        words += &format!("; refused: {place}");
        match reason {
            // The name is granted and its address is not: the reason says more than the name.
            Some(reason) if granted(place) => words += &format!(" ({reason})"),
            _ => lacking.push(format!("{place:?}")),
        }
    }
    if !lacking.is_empty() {
        let (places, step) = (lacking.join(", "), &step.name);
        words += &format!("; if you trust them, add {places} to `net` of the step `{step}`");
    }
    words
}

/// Makes the programs in a sandbox trust the certificates that this machine trusts.
fn trust(profile: &mut Profile) {
    if Path::new(TRUSTED).is_file() {
        let variable = |name: &str| (name.to_owned(), TRUSTED.to_owned());
        profile.env.extend(TRUST.map(variable));
    }
}

/// An error with its chain of causes.
fn whole(error: &WorkspaceError) -> String {
    use std::error::Error as _;
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The last characters of a log.
fn end_of(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let letters: Vec<char> = text.trim().chars().collect();
    letters[letters.len().saturating_sub(SHOWN)..]
        .iter()
        .collect()
}
