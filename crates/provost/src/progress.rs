//! Shows the progress of a run: one line that is redrawn on a terminal, plain lines elsewhere.

mod line;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use provost_core::run::fact::Cancel;
use provost_core::run::{Gate, State, Step};
use provost_core::verdict::Verdict;
use provost_engine::ports::{Observer, ObserverChoice, Progress};
use provost_host::cancel_request::CancelRequest;
use provost_host::clock;

use crate::show::{neutralise, one_line, width_of};

/// Shows progress on stderr and reads the user's cancel requests.
#[derive(Debug)]
pub(crate) struct ProgressObserver {
    terminal: bool,
    quiet: bool,
    cancelled: Arc<AtomicBool>,
    /// Where another process leaves a request to cancel the run.
    request: Option<CancelRequest>,
    began: Instant,
    step: &'static str,
    /// The current attempt, from 1.
    attempt: u32,
    /// What the last progress report was about.
    worker: String,
}

impl ProgressObserver {
    /// Registers for Ctrl-C; `quiet` prints nothing, for a program that reads `--json`.
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
            request: None,
            began: Instant::now(),
            step: "",
            attempt: 1,
            worker: String::new(),
        }
    }

    /// Also follows the cancel request that another process may leave.
    pub(crate) fn listen(&mut self, request: CancelRequest) {
        self.request = Some(request);
    }

    /// Removes the cancel request once the run `state` is over.
    pub(crate) fn close_request(&self, state: &State) {
        if let Some(request) = self.request.as_ref().filter(|_| state.finished.is_some()) {
            request.forget();
        }
    }

    /// Whether the user, here or by another process, wants the run cancelled.
    pub(crate) fn choice(&self) -> ObserverChoice {
        let requested = self.request.as_ref().is_some_and(CancelRequest::is_there);
        if requested || self.cancelled.load(Ordering::Relaxed) {
            ObserverChoice::Cancel
        } else {
            ObserverChoice::Continue
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

    /// Redraws the status line.
    fn redraw(&self, text: &str) {
        if self.quiet || !self.terminal {
            return;
        }
        // A line that wraps could not be cleared.
        let width = width_of(io::stderr()).unwrap_or(80).saturating_sub(1);
        let text = line::within(&one_line(text), width);
        let mut out = io::stderr().lock();
        let _ = write!(out, "\r\x1b[K{text}");
        let _ = out.flush();
    }

    /// Shows the current step: in the status line, or in a line of its own without a terminal.
    pub(crate) fn show_step(&self, text: &str) {
        if self.terminal {
            self.redraw(text);
        } else {
            self.line(text);
        }
    }

    /// Shows `step` as the current one.
    pub(crate) fn follow(&mut self, step: Step) {
        self.step = words(step);
    }

    /// Shows work that is no step of a run.
    pub(crate) fn follow_other(&mut self, words: &'static str) {
        self.step = words;
    }

    /// The current step, with the attempt unless that is the first.
    fn phase(&self) -> String {
        match self.attempt {
            1 => self.step.to_owned(),
            attempt => format!("{} (attempt {attempt})", self.step),
        }
    }

    /// Clears the status line.
    pub(crate) fn clear(&self) {
        self.eraser().wipe();
    }

    /// A handle that clears the status line while another thread shows progress.
    pub(crate) fn eraser(&self) -> Eraser {
        Eraser(self.terminal && !self.quiet)
    }
}

/// Clears the status line, if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Eraser(bool);

impl Eraser {
    pub(crate) fn wipe(self) {
        if self.0 {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// The text for an agent, and for the steps of preparation.
const AGENT: &str = "agent is working";
const PREPARE: &str = "preparing dependencies";

fn words(step: Step) -> &'static str {
    match step {
        Step::Lease => "acquiring the lease on the scope",
        Step::Prepare => PREPARE,
        Step::Workspace => "creating the workspace",
        Step::Selftest => "testing the sandbox",
        Step::Agent => AGENT,
        Step::Capture => "capturing the workspace",
        Step::Review => "reviewer is working",
        Step::BaseAcceptance => "acceptance commands on the base",
        Step::BaseAgain => "acceptance commands on the base again",
        Step::Acceptance => "acceptance commands on the candidate",
        Step::OldTests => "acceptance commands with the tests of the base",
        Step::NewTests => "acceptance commands with the new tests alone",
        Step::Fix => "waiting for another attempt",
        Step::Publish => "creating the branch",
        Step::Clean => "removing the workspace",
    }
}

impl Observer for ProgressObserver {
    fn begins(&mut self, state: &State, step: Step) -> ObserverChoice {
        self.step = match (step, &state.opened.work) {
            (Step::Capture, Some(_)) => "reading the work",
            _ => words(step),
        };
        self.attempt = state.attempt;
        self.worker.clear();
        self.show_step(&format!("{} …", self.phase()));
        self.choice()
    }

    fn cancel(&mut self) -> Option<Cancel> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Some(Cancel {
                by: None,
                at: clock::now(),
                reason: String::new(),
            });
        }
        self.request.as_ref()?.read()
    }

    fn judged(&mut self, gate: Gate, verdict: &Verdict) {
        let mark = if verdict.allow { "PASS" } else { "FAIL" };
        self.line(&format!("{mark} {}: {}", gate.name(), verdict.reason));
    }

    fn progressed(&mut self, progress: &Progress) -> ObserverChoice {
        let seconds = progress.elapsed_ms / 1000;
        let total = self.began.elapsed().as_secs();
        let line = line::printable(&progress.last_line);
        let (line, phase) = (line.trim(), self.phase());
        let who = match self.step {
            // The step already names the agent.
            AGENT => String::new(),
            _ => format!(": {}", progress.what),
        };
        if self.worker != progress.what && !self.terminal && self.step == PREPARE {
            self.line(&format!("{phase}{who} …"));
        }
        self.worker.clone_from(&progress.what);
        self.redraw(&format!("{phase}{who} {seconds}s (in all {total}s) {line}"));
        self.choice()
    }
}
