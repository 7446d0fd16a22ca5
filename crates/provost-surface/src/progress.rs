//! Shows the progress of a run: a few lines that are redrawn on a terminal, plain lines elsewhere.

mod line;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use provost_core::agent::{Budget, dollars};
use provost_core::question::AgentQuestion;
use provost_core::run::fact::Cancel;
use provost_core::run::judge::NO_RESULT;
use provost_core::run::spent::Spent;
use provost_core::run::{Gate, State, Step};
use provost_core::verdict::Verdict;
use provost_engine::ports::{AgentProgress, Observer, ObserverChoice, Progress};
use provost_engine::query::{Worker, event_words};
use provost_host::cancel_request::CancelRequest;
use provost_host::clock;

use crate::approval_text;
use crate::frame::{Frame, Size};
use crate::look;
use crate::show::{neutralise, one_line};

/// Shows progress on stderr and reads the user's cancel requests.
#[derive(Debug)]
pub struct ProgressObserver {
    /// What is redrawn on the terminal; `None` without one, or if the user wants plain lines.
    frame: Option<Eraser>,
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
    pub fn new(quiet: bool) -> Self {
        let cancelled = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Without a handler the signal ends us, and the next command cleans up after that.
            let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
        }
        Self {
            frame: (io::stderr().is_terminal() && !quiet && !look::is_plain())
                .then(Eraser::default),
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
    pub fn listen(&mut self, request: CancelRequest) {
        self.request = Some(request);
    }

    /// Removes the cancel request once the run `state` is over.
    pub fn close_request(&self, state: &State) {
        if let Some(request) = self.request.as_ref().filter(|_| state.finished.is_some()) {
            request.forget();
        }
    }

    /// Whether the user, here or by another process, wants the run cancelled.
    pub fn choice(&self) -> ObserverChoice {
        let requested = self.request.as_ref().is_some_and(CancelRequest::is_there);
        if requested || self.cancelled.load(Ordering::Relaxed) {
            ObserverChoice::Cancel
        } else {
            ObserverChoice::Continue
        }
    }

    /// Writes one lasting line.
    pub fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        self.clear();
        let text = look::for_people(&neutralise(text), &io::stderr());
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Redraws the lines that change.
    fn redraw(&self, lines: &[String]) {
        if let Some(frame) = &self.frame {
            let lines: Vec<String> = lines.iter().map(|line| one_line(line)).collect();
            let mut frame = frame.0.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = frame.draw(&mut io::stderr().lock(), &lines, Size::of(io::stderr()));
        }
    }

    /// Shows the current step: in the lines that change, or in a line of its own without a terminal.
    pub fn show_step(&self, text: &str) {
        if self.frame.is_some() {
            self.redraw(&[text.to_owned()]);
        } else {
            self.line(text);
        }
    }

    /// Shows `step` as the current one.
    pub fn follow(&mut self, step: Step) {
        self.step = words(step);
    }

    /// Shows work that is no step of a run.
    pub fn follow_other(&mut self, words: &'static str) {
        self.step = words;
    }

    /// The current step, with the attempt unless that is the first.
    fn phase(&self) -> String {
        match self.attempt {
            1 => self.step.to_owned(),
            attempt => format!("{} (attempt {attempt})", self.step),
        }
    }

    /// Removes the lines that change.
    pub fn clear(&self) {
        self.eraser().wipe();
    }

    /// A handle that removes them while another thread shows progress.
    pub fn eraser(&self) -> Eraser {
        self.frame.clone().unwrap_or_default()
    }
}

/// Removes the lines that change, if there are any.
#[derive(Debug, Clone, Default)]
pub struct Eraser(Arc<Mutex<Frame>>);

impl Eraser {
    pub fn wipe(&self) {
        let mut frame = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = frame.erase(&mut io::stderr().lock(), Size::of(io::stderr()));
    }
}

/// Tokens and price against the limits of an agent; `None` if nothing was spent.
pub fn spent_words(spent: Option<&Spent>, limit: Budget) -> Option<String> {
    let usage = spent?.usage;
    let of = |most: Option<String>| most.map_or(String::new(), |most| format!(" of {most}"));
    let most = of(limit.tokens.map(|it| it.to_string()));
    let tokens = format!("{} tokens{most}", usage.tokens());
    Some(match usage.micro_usd {
        0 => tokens,
        price => {
            let most = of(limit.micro_usd.map(dollars));
            format!("{tokens}, {}{most}", dollars(price))
        }
    })
}

/// What an agent does, in lines below the step.
fn agent_lines(agent: &AgentProgress) -> Vec<String> {
    let row = |name: &str, words: &str| format!("  {name:8} {}", line::printable(words).trim());
    let tools = agent.tools.iter();
    let tools = tools.filter_map(|event| event_words(Worker::Agent, event));
    let mut lines: Vec<String> = tools.map(|(name, words)| row(name, &words)).collect();
    let says = agent.says.split_whitespace().collect::<Vec<&str>>();
    let spent = agent.spent.clone().unwrap_or_default();
    for (name, words) in [("says", says.join(" ")), ("spent", spent)] {
        if !words.is_empty() {
            lines.push(row(name, &words));
        }
    }
    lines
}

/// The text for an agent, and for the steps of preparation.
const AGENT: &str = "agent is working";
const PREPARE: &str = "preparing dependencies";

pub fn words(step: Step) -> &'static str {
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
        let reason = &verdict.reason;
        if !verdict.allow {
            self.line(&format!("FAIL {}: {reason}", gate.name()));
        } else if reason != NO_RESULT {
            self.line(&format!("PASS {reason}"));
        }
    }

    fn asked(&mut self, run_id: &str, question: &AgentQuestion) {
        self.line(&approval_text::agent_question(run_id, question));
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
        if self.worker != progress.what && self.frame.is_none() && self.step == PREPARE {
            self.line(&format!("{phase}{who} …"));
        }
        self.worker.clone_from(&progress.what);
        let head = format!("{phase}{who} {seconds}s (in all {total}s)");
        match &progress.agent {
            Some(agent) => self.redraw(&[vec![head], agent_lines(agent)].concat()),
            None => self.redraw(&[format!("{head} {line}")]),
        }
        self.choice()
    }
}
