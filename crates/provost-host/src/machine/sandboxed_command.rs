//! Runs one command in a sandbox, with its streams in the bundle, under the engine's watch.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_core::net::model_traffic::ModelTraffic;
use provost_core::net::traffic::Traffic;
use provost_core::object::sha256;
use provost_core::run::effect::Adaptation;
use provost_core::run::fact::{AgentClaims, AgentRun, Ending, ResultFile, Stream};
use provost_core::secret::Known;
use provost_engine::ports::{AgentProgress, Control, PortError, Progress, Watch};
use provost_model_record::playback::Playback;

use super::asking::Asking;
use super::broker::Broker;
use super::{host, write_birth, write_live};
use crate::agent::{self, AgentControl, AgentStream};
use crate::git::Repository;
use crate::proxy::{Outlet, TokenMeter};
use crate::sandbox::refused_program::StubReports;
use crate::sandbox::{self, Command, How, LauncherProgram, Profile, Stdin, StreamFacts};

/// How often the last line is read again.
const GLANCE: Duration = Duration::from_millis(400);

/// A command about to be sandboxed.
pub(super) struct SandboxedCommand<'a> {
    pub(super) launcher: &'a LauncherProgram,
    pub(super) profile: &'a Profile,
    /// Where the init of the sandbox is recorded.
    pub(super) directory: &'a Path,
    pub(super) bundle: &'a Path,
    /// What the observer shows as the present step.
    pub(super) what: &'a str,
    /// The files of the bundle that keep the streams.
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// What the proxy of the sandbox needs.
    pub(super) outlet: Outlet,
    /// Secrets that must not stay in its streams.
    pub(super) known: &'a Known,
    /// The broker through which it may start children.
    pub(super) broker: Option<RefCell<Broker<'a>>>,
}

/// A sandboxed command that ended.
pub(super) struct Ended {
    pub(super) ending: Ending,
    pub(super) wall_ms: u64,
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    pub(super) network: Vec<Traffic>,
    /// How often it tried to start each program that may not run.
    pub(super) refused: BTreeMap<String, u64>,
    /// Its traffic with its model.
    pub(super) model: Option<ModelTraffic>,
}

impl Ended {
    /// The facts of an agent that ended so, with the result it left and what it claims.
    pub(super) fn of_agent(self, left: (ResultFile, u64), claims: Option<AgentClaims>) -> AgentRun {
        let (result, redacted) = left;
        AgentRun {
            ending: self.ending,
            wall_ms: self.wall_ms,
            stdout: self.stdout,
            stderr: self.stderr,
            result,
            redacted,
            network: self.network,
            refused: self.refused,
            claims: claims.map(Box::new),
            model: self.model.map(Box::new),
        }
    }
}

impl SandboxedCommand<'_> {
    /// Runs `argv` to its end.
    pub(super) fn follow(
        &self,
        argv: Vec<String>,
        stdin: Stdin,
        watch: &mut dyn Watch,
    ) -> Result<Ended, PortError> {
        self.follow_with(argv, stdin, watch, Listener::default())
    }

    /// Runs a known agent to its end and reads its stream; returns what it claims too. What it
    /// spends counts for the run and the repository `spender`.
    pub(super) fn converse(
        &self,
        known: &Adaptation,
        words: &[String],
        spender: (&str, &Repository),
        watch: &mut dyn Watch,
    ) -> Result<(Ended, AgentStream, AgentClaims), PortError> {
        let argv = agent::argv(&known.adapted, words)?;
        let stream = self.bundle.join(&self.stdout);
        let (mut stream, stdin) = AgentStream::open(known, stream, self.bundle, self.known)
            .map_err(host("write the events of the agent"))?;
        let rows = known.requests();
        // What a record answers costs nothing.
        let gauge = match self.outlet.playback {
            Some(_) => None,
            None => self.meter(&known.adapted, &rows, spender)?,
        };
        let listener = Listener {
            stream: Some(&mut stream),
            gauge,
            playback: self.outlet.playback.clone(),
            written: None,
        };
        let mut ended = self.follow_with(argv, stdin, watch, listener)?;
        if let Some(model) = &mut ended.model {
            let read = fs::read(self.bundle.join(&rows));
            let bytes = read.map_err(host("read the rows about requests to models"))?;
            sync(self.bundle, std::iter::once(rows.as_str())).map_err(host("sync a stream"))?;
            model.rows = Some(said(&rows, &bytes));
        }
        let claims = stream
            .finish()
            .map_err(host("read the events of the agent"))?;
        Ok((ended, stream, claims))
    }

    /// Runs `argv` to its end; `listener` reads its stream and its traffic.
    fn follow_with(
        &self,
        argv: Vec<String>,
        stdin: Stdin,
        watch: &mut dyn Watch,
        mut listener: Listener<'_>,
    ) -> Result<Ended, PortError> {
        let command = Command {
            argv,
            stdin,
            stdout: self.place(&self.stdout)?,
            stderr: self.place(&self.stderr)?,
        };
        let mut glance = Glance::over([command.stdout.clone(), command.stderr.clone()]);
        let gauge = listener.gauge.clone();
        let passed = || gauge.as_ref().map(|gauge| self.scrubbed(gauge.passed()));
        let mut reports =
            StubReports::open(self.profile).map_err(host("open the pipe of stubs"))?;
        let began = Instant::now();
        let mut requested = Control::Continue;
        let mut control = AgentControl::Continue;
        let mut asking = Asking::new(self.outlet.questions.clone(), self.known);
        let mut tick = |progress: sandbox::Progress| {
            let waited = asking.relay(listener.stream.as_deref_mut(), watch);
            control = listener.listen();
            reports.iter_mut().for_each(StubReports::read);
            listener.write_traffic(self.directory);
            let stream = listener.stream.as_deref();
            let printed = progress.stdout_bytes + progress.stderr_bytes;
            let said = stream.map_or(printed, |stream| stream.said(progress.stdout_bytes));
            let progress = Progress {
                what: self.what.to_owned(),
                elapsed_ms: millis(progress.wall),
                last_line: listener.words().unwrap_or_else(|| glance.line()),
                agent: listener.agent(),
            };
            requested = watch.tick(&progress);
            // The end of the sandbox reports why its children could not be served.
            let served = self
                .serve(watch)
                .ok()
                .filter(|_| control == AgentControl::Continue);
            let Some(served) = served.filter(|_| requested == Control::Continue) else {
                return sandbox::Control::Cancel;
            };
            sandbox::Control::Said(said.saturating_add(waited).saturating_add(served))
        };
        let outcome = self
            .start(&command, gauge.clone())
            .and_then(|running| running.scrubbed(self.known).wait(&mut tick));
        if let Some(broker) = &self.broker {
            // No child outlives its parent.
            broker.borrow_mut().finish(watch)?;
        }
        reports.iter_mut().for_each(StubReports::read);
        let refused = reports.map_or_else(BTreeMap::new, StubReports::into_counts);
        match outcome {
            Ok(ended) => {
                self.sync()?;
                Ok(Ended {
                    ending: ending(ended.how, requested, control),
                    wall_ms: millis(ended.wall),
                    stdout: kept(&self.stdout, &ended.stdout),
                    stderr: kept(&self.stderr, &ended.stderr),
                    network: ended.network,
                    refused,
                    // Every request has ended with the proxy.
                    model: passed(),
                })
            }
            Err(error) if error.is_exec() => {
                self.not_started(&error.exec_words(), &command.stderr, began)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Starts the sandbox; from now on its agent may ask the broker, if there is one.
    fn start(
        &self,
        command: &Command,
        gauge: Option<Arc<TokenMeter>>,
    ) -> Result<sandbox::Running, sandbox::SandboxError> {
        let outlet = Outlet {
            gauge,
            ..self.outlet.clone()
        };
        let birth = |birth: &_| write_birth(self.directory, birth);
        let mut running = (self.launcher).start_with(self.profile, command, outlet, birth)?;
        if let (Some(broker), Some(listener)) = (&self.broker, running.take_broker()) {
            let init = running.birth().cloned();
            broker.borrow_mut().attach(listener, init);
        }
        Ok(running)
    }

    /// Answers what its agent asked of the broker since the last call.
    fn serve(&self, watch: &mut dyn Watch) -> Result<u64, ()> {
        let broker = self.broker.as_ref();
        broker.map_or(Ok(0), |broker| broker.borrow_mut().serve(watch))
    }

    /// A command that could not be executed; writes `words`, the reason, to the file of stderr.
    fn not_started(&self, words: &str, file: &Path, began: Instant) -> Result<Ended, PortError> {
        let (note, _) = self.known.scrub_text(words.to_owned());
        fs::write(file, &note).map_err(host("write a stream"))?;
        self.sync()?;
        Ok(Ended {
            ending: Ending::NotStarted,
            wall_ms: millis(began.elapsed()),
            stdout: said(&self.stdout, b""),
            stderr: said(&self.stderr, note.as_bytes()),
            network: Vec::new(),
            refused: BTreeMap::new(),
            model: None,
        })
    }

    /// The traffic, without secrets in the provider's messages.
    fn scrubbed(&self, mut passed: ModelTraffic) -> ModelTraffic {
        if let Some(trouble) = &mut passed.trouble {
            let reason = std::mem::take(&mut trouble.reason);
            trouble.reason = self.known.scrub_text(reason).0;
        }
        passed
    }

    pub(super) fn place(&self, name: &str) -> Result<PathBuf, PortError> {
        let path = self.bundle.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(host("make a directory of the bundle"))?;
        }
        Ok(path)
    }

    /// Syncs both streams and the directories above them to disk.
    fn sync(&self) -> Result<(), PortError> {
        let names = [&self.stdout, &self.stderr].into_iter().map(String::as_str);
        sync(self.bundle, names).map_err(host("sync a stream"))
    }
}

/// Reads what a program prints, and its traffic with its model.
#[derive(Default)]
struct Listener<'a> {
    stream: Option<&'a mut AgentStream>,
    gauge: Option<Arc<TokenMeter>>,
    /// What answers in place of its model.
    playback: Option<Arc<Playback>>,
    /// The traffic that was written last.
    written: Option<ModelTraffic>,
}

impl Listener<'_> {
    /// Whether the program continues, by all that was read since the last call.
    fn listen(&mut self) -> AgentControl {
        // If the stream cannot be read now, reading its rest at the end fails and is reported.
        let control = self.stream.as_deref_mut().map(AgentStream::listen);
        let control = control
            .and_then(Result::ok)
            .unwrap_or(AgentControl::Continue);
        let complaint = self.stream.as_deref().and_then(AgentStream::complaint);
        if let (Some(gauge), Some(complaint)) = (&self.gauge, complaint) {
            gauge.note_complaint(complaint);
        }
        let playback = self.playback.as_ref();
        if playback.is_some_and(|playback| playback.stopped().is_some()) {
            return AgentControl::NoModel;
        }
        match &self.gauge {
            Some(gauge) if gauge.is_overspent() => AgentControl::Overspent,
            Some(gauge) if gauge.passed().trouble.is_some() => AgentControl::NoModel,
            _ => control,
        }
    }

    /// Writes the traffic so far, for commands of other processes such as `provost show`.
    fn write_traffic(&mut self, directory: &Path) {
        let passed = self.gauge.as_ref().map(|gauge| gauge.passed());
        if let Some(passed) = passed.filter(|passed| self.written.as_ref() != Some(passed)) {
            // Only for display: the facts are recorded at the end.
            let _ = write_live(directory, &passed);
            self.written = Some(passed);
        }
    }

    /// The agent's last message, or why its model does not work.
    fn says(&self) -> Option<String> {
        let note = self.gauge.as_ref().and_then(|gauge| gauge.note());
        note.or_else(|| Some(self.stream.as_deref()?.last_message().to_owned()))
    }

    /// What a known agent does, for display.
    fn agent(&self) -> Option<AgentProgress> {
        let stream = self.stream.as_deref()?;
        Some(AgentProgress {
            tools: stream.last_tools().cloned().collect(),
            says: self.says().unwrap_or_default(),
            spent: self.gauge.as_ref().and_then(|gauge| gauge.spent_words()),
        })
    }

    /// The agent's last message after what it spent, in one line.
    fn words(&self) -> Option<String> {
        let words = self.says()?;
        let spent = self.gauge.as_ref().and_then(|gauge| gauge.spent_words());
        Some(match spent {
            Some(spent) if words.is_empty() => spent,
            Some(spent) => format!("{spent}: {words}"),
            None => words,
        })
    }
}

/// How often a pause asks its watch whether to continue.
const NAP: Duration = Duration::from_millis(100);

/// Waits for `time` unless `watch` ends it.
pub(super) fn pause(time: Duration, watch: &mut dyn Watch) -> Control {
    let began = Instant::now();
    loop {
        let gone = began.elapsed();
        let left = time.saturating_sub(gone);
        let progress = Progress {
            what: "pause".to_owned(),
            elapsed_ms: millis(gone),
            last_line: format!("{} s left", left.as_secs()),
            agent: None,
        };
        match watch.tick(&progress) {
            Control::Continue if left.is_zero() => return Control::Continue,
            Control::Continue => std::thread::sleep(left.min(NAP)),
            ended => return ended,
        }
    }
}

/// Syncs the files `names` of `bundle` and the directories above them to disk.
pub(super) fn sync<'a>(bundle: &Path, names: impl Iterator<Item = &'a str>) -> io::Result<()> {
    let mut paths = BTreeSet::new();
    for name in names {
        let file = bundle.join(name);
        let within = file.ancestors().take_while(|path| path.starts_with(bundle));
        paths.extend(within.map(Path::to_owned));
    }
    let sync = |path: &PathBuf| fs::File::open(path)?.sync_all();
    paths.iter().try_for_each(sync)
}

fn kept(name: &str, facts: &StreamFacts) -> Stream {
    Stream {
        file: name.to_owned(),
        bytes: facts.total_bytes,
        kept: facts.file_bytes,
        sha256: facts.sha256.clone(),
        redacted: facts.redacted,
        cut: facts.truncated,
    }
}

/// The facts of a stream whose only content is `bytes`.
fn said(name: &str, bytes: &[u8]) -> Stream {
    let length = bytes.len() as u64;
    Stream {
        file: name.to_owned(),
        bytes: length,
        kept: length,
        sha256: sha256(bytes),
        redacted: 0,
        cut: false,
    }
}

/// How a command ended; `requested` and `control` say why if it was cancelled.
fn ending(how: How, requested: Control, control: AgentControl) -> Ending {
    match how {
        How::Exited(status) => Ending::Exited(status),
        How::Signalled(signal) => Ending::Signalled(signal),
        How::TimedOut => Ending::TimedOut,
        How::OutputLimit => Ending::OutputLimit,
        How::MemoryLimit => Ending::MemoryLimit,
        How::ProcessLimit => Ending::ProcessLimit,
        How::DiskLimit => Ending::DiskLimit,
        How::InodeLimit => Ending::InodeLimit,
        How::NoProgress => Ending::NoProgress,
        How::Cancelled if requested == Control::LeaseLost => Ending::LeaseLost,
        How::Cancelled => match control {
            AgentControl::Overspent => Ending::Overspent,
            AgentControl::NoModel => Ending::NoModel,
            AgentControl::Dismiss => Ending::Dismissed,
            AgentControl::Continue => Ending::Cancelled,
        },
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The last line of two growing files: of the one that grew last.
struct Glance {
    streams: [PathBuf; 2],
    lengths: [u64; 2],
    line: String,
    at: Option<Instant>,
}

impl Glance {
    fn over(streams: [PathBuf; 2]) -> Self {
        Self {
            streams,
            lengths: [0, 0],
            line: String::new(),
            at: None,
        }
    }

    fn line(&mut self) -> String {
        if self.at.is_none_or(|at| at.elapsed() > GLANCE) {
            self.at = Some(Instant::now());
            for (path, known) in self.streams.iter().zip(&mut self.lengths) {
                // Only for display: a stream that cannot be read shows nothing.
                let length = fs::metadata(path).map_or(0, |entry| entry.len());
                if *known != length {
                    *known = length;
                    self.line = last_line(path).unwrap_or_default();
                }
            }
        }
        self.line.clone()
    }
}

fn last_line(path: &Path) -> Option<String> {
    let mut file = fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(400)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(400).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(str::to_owned)
}
