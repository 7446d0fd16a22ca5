//! Runs the acceptance commands on exactly one tree, in a fresh workspace made from git objects.
//!
//! The same commands judge the base once. The result is kept, because the same commands on the same
//! tree in the same sandbox need not run twice. A candidate's result is never taken from there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use provost_core::change::Change;
use provost_core::contract::Test;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_core::run::effect::{Accept, AskedStart};
use provost_core::run::fact::{CommandRun, Ending, Layered, Side, Stream, TestRun};
use provost_core::secret::Known;
use provost_core::tally::Tally;
use provost_engine::ports::{PortError, Watch};
use provost_engine::runner_output;
use provost_fs::atomic::{self, Durability};
use serde_json::json;

use super::prepare::Ready;
use super::sandboxed_command::{self, SandboxedCommand};
use super::workspaces::Wanted;
use super::{Machine, host, profile, uncaptured};
use crate::cache;
use crate::capture::{self, Limits, Mode};
use crate::clock;
use crate::proxy::Outlet;
use crate::sandbox::{Mount, Profile, Stdin};
use crate::workspace::Workspace;

/// The directory in which acceptance commands run.
pub(super) const TESTS: &str = "tests";

impl Machine {
    /// The sandbox of an acceptance command of the run, with what was prepared for its tree.
    pub(super) fn test_profile(
        &self,
        order: &Accept,
        tree: Mount,
        ready: &Ready,
    ) -> Result<Profile, PortError> {
        let mut profile = self.tree_profile(order.tier, order.time_limit, tree, order.loopback);
        self.add_submodules(&mut profile, &order.base.tree)?;
        profile.limits.hold(order.time_limit, &order.limits);
        ready.add_to(&mut profile);
        Ok(profile)
    }

    /// Runs the commands on one tree.
    pub(super) fn run_tests(
        &self,
        order: &Accept,
        watch: &mut dyn Watch,
    ) -> Result<TestRun, PortError> {
        let ready = self.ready(&order.prepare, watch)?;
        // Without the place of the workspace, which differs from run to run.
        let anywhere = Mount::Writable {
            source: "/".into(),
            target: profile::TREE.into(),
        };
        let shape = self.test_profile(order, anywhere, &ready)?;
        let digest = shape.digest()?;
        if let Some(run) = self.vouched(order, &digest, &ready) {
            return Ok(run);
        }
        let cache = self.round_cache(order, &digest)?;
        let memory = Memory::of(&self.places.cache, &digest, order, cache.memory());
        // The cross-tests only add text to the report. The base decides only by the number of its
        // tests, and the same commands on the same tree in the same sandbox run as many again.
        let is_kept = !matches!(order.side, Side::Candidate | Side::Merged);
        if is_kept
            && !self.lacks_kept(&memory)
            && let Some(mut run) = memory.recall(order, &self.bundle, &self.known)
        {
            run.layers = ready.layered;
            return Ok(run);
        }
        let directory = self.places.run.join(TESTS);
        self.remove(&directory)?;
        fs::create_dir_all(&self.places.run).map_err(host("make the cache directory"))?;
        let fresh = self.fresh(&Wanted::of_round(order, cache.dates()), &directory)?;
        ready.make_places(&fresh.workspace.tree, None)?;
        let mount = fresh.workspace.mount(profile::TREE.as_ref());
        let mut profile = self.test_profile(order, mount, &ready)?;
        cache.mount(&fresh.workspace, &mut profile)?;
        let round = Round {
            machine: self,
            order,
            profile,
            workspace: &fresh.workspace,
        };
        self.ensure_tested(&round.profile, "acceptance commands")?;
        let (commands, altered) = round.run(watch)?;
        let cache = self.close_cache(order, &cache, &fresh.workspace, (&commands, &altered));
        self.remove(&directory)?;
        let run = TestRun {
            side: order.side,
            tree: order.tree.clone(),
            cached: false,
            profile: digest,
            layers: ready.layered,
            cache: cache.map(Box::new),
            commands,
            altered,
        };
        if is_kept {
            // It only saves time: a result that cannot be stored is no error.
            let _ = memory.keep(&run, &self.bundle);
        }
        Ok(run)
    }
}

impl Machine {
    /// Whether the remembered round kept build caches that are gone by now.
    fn lacks_kept(&self, memory: &Memory) -> bool {
        let kept = memory.read().and_then(|run| run.cache?.kept);
        kept.is_some_and(|kept| !self.places.builds.know(&kept.key))
    }

    /// A round of the same tree, commands, sandbox and layers that the ledgers of the run vouch
    /// for, if its logs still exist.
    fn vouched(&self, order: &Accept, profile: &str, ready: &Ready) -> Option<TestRun> {
        let keys = |layers: &[Layered]| -> Vec<(String, String)> {
            let key = |layer: &Layered| (layer.key.clone(), layer.sha256.clone());
            layers.iter().map(key).collect()
        };
        let there = |stream: &Stream| {
            let log = fs::read(self.bundle.join(&stream.file));
            log.is_ok_and(|log| sha256(&log) == stream.sha256 && !self.known.is_in(&log))
        };
        let same = |run: &&TestRun| {
            run.tree == order.tree
                // What a warm round showed is no cold round.
                && (order.cache.start == AskedStart::Warm || !run.is_warm())
                && run.profile == profile
                && is_asked(order, run)
                && run.commands.iter().all(|ran| is_settled(ran.ending))
                && keys(&run.layers) == keys(&ready.layered)
                && streams(run).all(there)
        };
        let mut run = order.evidence.iter().rev().find(same)?.clone();
        run.side = order.side;
        run.cached = true;
        Some(run)
    }
}

/// Whether `run` is of exactly the commands that `order` asks for.
fn is_asked(order: &Accept, run: &TestRun) -> bool {
    let asked = order.tests.iter().map(|test| (&test.name, &test.argv));
    asked.eq(run.commands.iter().map(|ran| (&ran.name, &ran.argv)))
}

/// Whether the ending of a command depends on the tree alone.
pub(super) fn is_settled(ending: Ending) -> bool {
    matches!(ending, Ending::Exited(_) | Ending::NotStarted)
}

/// One tree under test.
struct Round<'a> {
    machine: &'a Machine,
    order: &'a Accept,
    workspace: &'a Workspace,
    profile: Profile,
}

impl Round<'_> {
    /// Runs all commands; returns them with the paths of the tree that they changed.
    fn run(&self, watch: &mut dyn Watch) -> Result<(Vec<CommandRun>, Vec<RawPath>), PortError> {
        let mut commands = Vec::new();
        let mut altered = BTreeSet::new();
        for (number, test) in self.order.tests.iter().enumerate() {
            let ran = self.command(number + 1, test, watch)?;
            // After each one: a later command could restore what helped an earlier one to pass.
            altered.extend(self.altered()?);
            let stopped = matches!(ran.ending, Ending::Cancelled | Ending::LeaseLost);
            commands.push(ran);
            if stopped {
                break;
            }
        }
        Ok((commands, altered.into_iter().collect()))
    }

    fn command(
        &self,
        number: usize,
        test: &Test,
        watch: &mut dyn Watch,
    ) -> Result<CommandRun, PortError> {
        let run = SandboxedCommand {
            broker: None,
            launcher: &self.machine.launcher,
            profile: &self.profile,
            directory: &self.workspace.root,
            bundle: &self.machine.bundle,
            what: &test.name,
            stdout: log_name(self.order, number, "stdout"),
            stderr: log_name(self.order, number, "stderr"),
            outlet: Outlet::default(),
            known: &self.machine.known,
        };
        let began = Some(clock::now());
        let ended = run.follow(test.argv.clone(), Stdin::Null, watch)?;
        let bundle = &self.machine.bundle;
        let tally =
            tally_of(bundle, &ended.stdout, &ended.stderr).map_err(host("read a stream"))?;
        Ok(CommandRun {
            name: test.name.clone(),
            argv: test.argv.clone(),
            ending: ended.ending,
            began,
            wall_ms: ended.wall_ms,
            stdout: ended.stdout,
            stderr: ended.stderr,
            tally,
        })
    }

    /// Paths of the tree that changed; new files beside them are build output.
    fn altered(&self) -> Result<impl Iterator<Item = RawPath>, PortError> {
        let (repo, source) = (&self.machine.repo, self.workspace.source());
        let limits = Limits::default();
        let after = capture::capture(repo, &self.order.tree, &source, &limits, Mode::Compare)
            .map_err(uncaptured)?;
        let was_there = |change: &Change| change.before.is_some();
        let changes = after.changes.into_iter().filter(was_there);
        Ok(changes.map(|change| change.path))
    }
}

/// Earlier results of the commands on a base tree.
struct Memory {
    directory: PathBuf,
}

impl Memory {
    fn of(cache: &Path, profile: &str, order: &Accept, builds: Option<&str>) -> Self {
        let named = |test: &Test| json!({ "name": test.name, "argv": test.argv });
        let commands: Vec<_> = order.tests.iter().map(named).collect();
        // Results of versions without a count of tests have another form, and another key.
        let mut key = json!({ "tree": order.tree, "profile": profile, "commands": commands,
                              "counted": true });
        // A second round is not the first one, recalled.
        if order.side == Side::BaseAgain {
            key["round"] = json!(2);
        }
        if let Some(builds) = builds {
            key["builds"] = json!(builds);
        }
        let name = sha256(provost_core::json::canonical(&key).as_bytes());
        Self {
            directory: cache.join(cache::RESULTS).join(name),
        }
    }

    fn read(&self) -> Option<TestRun> {
        let bytes = fs::read(self.directory.join("run.json")).ok()?;
        provost_core::json::parse_as(&bytes).ok()
    }

    /// The earlier result, with its logs copied into the bundle; `None` on any doubt.
    fn recall(&self, order: &Accept, bundle: &Path, known: &Known) -> Option<TestRun> {
        let mut run = self.read()?;
        if run.tree != order.tree || !is_asked(order, &run) {
            return None;
        }
        run.side = order.side;
        for (at, ran) in run.commands.iter_mut().enumerate() {
            for (stream, kind) in [(&mut ran.stdout, "stdout"), (&mut ran.stderr, "stderr")] {
                let log = fs::read(self.directory.join(flat(&stream.file))).ok()?;
                // More values may be secret than when the log was written.
                if sha256(&log) != stream.sha256 || known.is_in(&log) {
                    return None;
                }
                stream.file = log_name(order, at + 1, kind);
                let place = bundle.join(&stream.file);
                fs::create_dir_all(place.parent()?).ok()?;
                fs::write(&place, &log).ok()?;
            }
        }
        let names = streams(&run).map(|stream| stream.file.as_str());
        sandboxed_command::sync(bundle, names).ok()?;
        // The tests are counted again; the stored count is not trusted.
        for ran in &mut run.commands {
            ran.tally = tally_of(bundle, &ran.stdout, &ran.stderr).ok()?;
        }
        run.cached = true;
        // A fresh time keeps the entry from being swept; if this fails it is swept earlier.
        let _ = fs::File::open(&self.directory)
            .and_then(|directory| directory.set_modified(SystemTime::now()));
        Some(run)
    }

    /// Stores `run` if its ending depends on the tree alone.
    fn keep(&self, run: &TestRun, bundle: &Path) -> std::io::Result<()> {
        if !run.commands.iter().all(|ran| is_settled(ran.ending)) {
            return Ok(());
        }
        fs::create_dir_all(&self.directory)?;
        for stream in streams(run) {
            fs::copy(
                bundle.join(&stream.file),
                self.directory.join(flat(&stream.file)),
            )?;
        }
        let bytes = serde_json::to_vec(run)?;
        atomic::replace(
            &self.directory.join("run.json"),
            &bytes,
            0o600,
            Durability::Cache,
        )
    }
}

/// How many tests a command ran, if its whole output was kept.
fn tally_of(bundle: &Path, stdout: &Stream, stderr: &Stream) -> std::io::Result<Option<Tally>> {
    if stdout.cut || stderr.cut {
        return Ok(None);
    }
    let read = |stream: &Stream| fs::read(bundle.join(&stream.file));
    Ok(runner_output::count(&read(stdout)?, &read(stderr)?))
}

/// The file of the bundle that keeps a stream of command `number`.
fn log_name(order: &Accept, number: usize, stream: &str) -> String {
    let again = match order.cache.start {
        AskedStart::Warm | AskedStart::Cold(_) => "",
        // The logs of the warm round are evidence.
        AskedStart::Repeat => "cold.",
    };
    format!("{}/{again}{number}.{stream}.log", order.logs)
}

fn streams(run: &TestRun) -> impl Iterator<Item = &Stream> {
    run.commands
        .iter()
        .flat_map(|command| [&command.stdout, &command.stderr])
}

fn flat(name: &str) -> String {
    name.replace('/', "_")
}
