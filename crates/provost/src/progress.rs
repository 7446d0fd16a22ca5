//! Shows a run as it goes: one line that changes on a terminal, plain lines elsewhere.

mod line;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use provost_core::run::fact::Cancel;
use provost_core::run::{Gate, State, Step};
use provost_core::verdict::Verdict;
use provost_engine::ports::{Observer, ObserverChoice, Progress};
use provost_host::clock;

use crate::cancel_request::CancelRequest;
use crate::show::{neutralise, width_of};

/// Looks on for a person at a terminal or in a log.
#[derive(Debug)]
pub(crate) struct ProgressObserver {
    terminal: bool,
    quiet: bool,
    cancelled: Arc<AtomicBool>,
    /// Where somebody else may leave the wish that the run ends.
    wishes: Option<CancelRequest>,
    began: Instant,
    step: &'static str,
    /// The attempt that goes on.
    attempt: u32,
    /// Who was at work last.
    worker: String,
}

impl ProgressObserver {
    /// Somebody who looks on and may press Ctrl-C; `quiet` for a program that reads `--json`.
    pub(crate) fn new(quiet: bool) -> Self {
        let cancelled = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Without a handler the signal ends us, and the next command cleans up after that.
            let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
        }
        Self {
            terminal: io::stderr().is_terminal(),
            quiet,
            cancelled,
            wishes: None,
            began: Instant::now(),
            step: "",
            attempt: 1,
            worker: String::new(),
        }
    }

    /// Also listens to whoever leaves a wish there.
    pub(crate) fn listen(&mut self, wishes: CancelRequest) {
        self.wishes = Some(wishes);
    }

    /// Takes away what was wished, after the end of the run `state`.
    pub(crate) fn fulfil(&self, state: &State) {
        if let Some(wishes) = self.wishes.as_ref().filter(|_| state.finished.is_some()) {
            wishes.forget();
        }
    }

    /// What whoever looks on wants.
    pub(crate) fn wish(&self) -> ObserverChoice {
        let told = self.wishes.as_ref().is_some_and(CancelRequest::is_there);
        if told || self.cancelled.load(Ordering::Relaxed) {
            ObserverChoice::Cancel
        } else {
            ObserverChoice::GoOn
        }
    }

    /// Writes one lasting line.
    pub(crate) fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        let _ = writeln!(io::stderr().lock(), "{clear}{}", neutralise(text));
    }

    /// Writes the line that changes.
    fn flicker(&self, text: &str) {
        if self.quiet || !self.terminal {
            return;
        }
        // A line that wraps could not be taken away again.
        let width = width_of(io::stderr()).unwrap_or(80).saturating_sub(1);
        let text = line::within(&neutralise(text).replace('\n', " "), width);
        let mut out = io::stderr().lock();
        let _ = write!(out, "\r\x1b[K{text}");
        let _ = out.flush();
    }

    /// Says what goes on now: in the line that changes, or in a lasting one where there is none.
    pub(crate) fn says(&self, text: &str) {
        if self.terminal {
            self.flicker(text);
        } else {
            self.line(text);
        }
    }

    /// Looks on while `step` goes on.
    pub(crate) fn follow(&mut self, step: Step) {
        self.step = words(step);
    }

    /// Looks on while something goes on that is no step of a run.
    pub(crate) fn attend(&mut self, words: &'static str) {
        self.step = words;
    }

    /// What goes on, and in which attempt where that is not the first.
    fn phase(&self) -> String {
        match self.attempt {
            1 => self.step.to_owned(),
            attempt => format!("{} (attempt {attempt})", self.step),
        }
    }

    /// Takes the line that changes away.
    pub(crate) fn clear(&self) {
        self.eraser().wipe();
    }

    /// What takes the line that changes away while somebody else looks on.
    pub(crate) fn eraser(&self) -> Eraser {
        Eraser(self.terminal && !self.quiet)
    }
}

/// Takes the line that changes away, if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Eraser(bool);

impl Eraser {
    pub(crate) fn wipe(self) {
        if self.0 {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// What is said of an agent, and of the steps of preparation.
const AGENT: &str = "agent at work";
const PREPARE: &str = "preparing dependencies";

fn words(step: Step) -> &'static str {
    match step {
        Step::Lease => "getting the lease on the scope",
        Step::Prepare => PREPARE,
        Step::Workspace => "making the workspace",
        Step::Selftest => "testing the sandbox",
        Step::Agent => AGENT,
        Step::Capture => "capturing what it left",
        Step::Review => "reviewer at work",
        Step::BaseAcceptance => "acceptance commands on the base",
        Step::Acceptance => "acceptance commands on the candidate",
        Step::OldTests => "acceptance commands with the tests of the base",
        Step::NewTests => "acceptance commands with the new tests alone",
        Step::Fix => "waiting for another attempt",
        Step::Publish => "writing the branch",
        Step::Clean => "removing the workspace",
    }
}

impl Observer for ProgressObserver {
    fn begins(&mut self, state: &State, step: Step) -> ObserverChoice {
        self.step = words(step);
        self.attempt = state.attempt;
        self.worker.clear();
        self.says(&format!("{} …", self.phase()));
        self.wish()
    }

    fn cancel(&mut self) -> Option<Cancel> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Some(Cancel {
                by: None,
                at: clock::now(),
                reason: String::new(),
            });
        }
        self.wishes.as_ref()?.read()
    }

    fn judged(&mut self, gate: Gate, verdict: &Verdict) {
        let mark = if verdict.allow { "ok" } else { "NO" };
        self.line(&format!("{mark}  {:11} {}", gate.name(), verdict.reason));
    }

    fn goes_on(&mut self, progress: &Progress) -> ObserverChoice {
        let seconds = progress.elapsed_ms / 1000;
        let total = self.began.elapsed().as_secs();
        let line = line::printable(&progress.last_line);
        let (line, phase) = (line.trim(), self.phase());
        let who = match self.step {
            // Its only worker, and named by its step.
            AGENT => String::new(),
            _ => format!(": {}", progress.what),
        };
        if self.worker != progress.what && !self.terminal && self.step == PREPARE {
            self.line(&format!("{phase}{who} …"));
        }
        self.worker.clone_from(&progress.what);
        self.flicker(&format!("{phase}{who} {seconds}s (in all {total}s) {line}"));
        self.wish()
    }
}
