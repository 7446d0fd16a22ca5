//! The broker: answers what the agent of one sandbox asks for, which is children, and more than its
//! contract gives.
//!
//! # Invariants
//!
//! - The event that takes the share of a child is in the ledger before its run begins; the event
//!   that gives the rest back comes after every process of the child is dead.
//! - The base of a child is what the agent had on disk while all its processes were stopped.
//! - When the agent ends, its children are ended.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use provost_core::children::{
    Asking, BrokerAnswer, BrokerRequest, ChildBase, ChildBudget, ChildEnd, ChildRefused, ChildRow,
    ChildState, ChildTask, FamilyMember, admit,
};
use provost_core::code::Code;
use provost_core::object::sha256;
use provost_core::question::{LONGEST, Permission, QuestionKind};
use provost_core::run::effect::AgentEffect;
use provost_core::run::fact::{Fact, Names};
use provost_core::run::refs::Kind;
use provost_core::time;
use provost_core::verdict::Verdict;
use provost_engine::ports::{ChildCame, ChildRunner, PortError, Watch};

use super::broker_calls::{BrokerCall, BrokerCalls};
use super::{Machine, of_run, uncaptured};
use crate::capture::{self, Mode};
use crate::sandbox::{ProcessIdentity, stopped};
use crate::workspace;

/// The directory of an attempt that its sandbox sees at [`CHILDREN`].
pub(super) const SHARED: &str = "children";

/// Where an agent finds what its children left.
pub(super) const CHILDREN: &str = "/run/provost/children";

/// How many refusals get an event of their own; the others are added up at the end.
const RECORDED: usize = 50;
/// How many messages are answered before the limits of the sandbox are looked at again.
const AT_ONCE: usize = 4;
/// How long children may take to end when their parent has ended.
const LAST: Duration = Duration::from_mins(1);
/// The longest that an agent waits for an answer.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// Answers one sandbox.
pub(super) struct Broker<'a> {
    machine: &'a Machine,
    order: &'a AgentEffect,
    /// Absent if the contract grants no children.
    runner: Option<&'a mut (dyn ChildRunner + 'static)>,
    shared: PathBuf,
    calls: Option<BrokerCalls>,
    init: Option<ProcessIdentity>,
    waiting: Vec<WaitingCall>,
    /// How often an answer was that no person has answered yet.
    waited: u64,
    /// Refusals without an event of their own.
    unrecorded: u64,
    failed: Option<PortError>,
}

/// An agent that waits for the end of a child.
struct WaitingCall {
    call: BrokerCall,
    child: String,
    until: Instant,
}

impl<'a> Broker<'a> {
    pub(super) fn new(
        machine: &'a Machine,
        order: &'a AgentEffect,
        runner: Option<&'a mut (dyn ChildRunner + 'static)>,
    ) -> Self {
        Self {
            shared: machine.places.attempt(order.attempt).join(SHARED),
            machine,
            order,
            runner,
            calls: None,
            init: None,
            waiting: Vec::new(),
            waited: 0,
            unrecorded: 0,
            failed: None,
        }
    }

    /// Begins to read the messages of the sandbox whose init is `init`.
    pub(super) fn attach(&mut self, listener: UnixListener, init: Option<ProcessIdentity>) {
        match BrokerCalls::start(listener) {
            Ok(calls) => self.calls = Some(calls),
            Err(error) => self.failed = Some(PortError::of(Code::HostFailed, error)),
        }
        self.init = init;
    }

    /// Answers what was asked since the last call. An error is kept for [`Broker::finish`].
    pub(super) fn serve(&mut self, watch: &mut dyn Watch) -> Result<(), ()> {
        if self.failed.is_none() {
            self.failed = self.turn(watch).err();
        }
        if self.failed.is_some() {
            Err(())
        } else {
            Ok(())
        }
    }

    /// A number that grows while the agent waits for a person.
    pub(super) fn waited(&self) -> u64 {
        self.waited
    }

    /// The runs of children that ended since the last call, after at most `wait`.
    fn ended(&mut self, wait: Duration) -> Vec<ChildCame> {
        let runner = self.runner.as_mut();
        runner.map_or_else(Vec::new, |runner| runner.ended(wait))
    }

    fn cancel(&mut self, run_id: &str, reason: &str) -> Result<(), PortError> {
        let runner = self.runner.as_mut();
        runner.map_or(Ok(()), |runner| runner.cancel(run_id, reason))
    }

    fn turn(&mut self, watch: &mut dyn Watch) -> Result<(), PortError> {
        for came in self.ended(Duration::ZERO) {
            self.end(came, watch)?;
        }
        for _ in 0..AT_ONCE {
            let Some(call) = self.calls.as_ref().and_then(BrokerCalls::next) else {
                break;
            };
            self.answer(call, watch)?;
        }
        let now = Instant::now();
        let is_due = |it: &mut WaitingCall| {
            let member = watch.state().and_then(|state| state.family.find(&it.child));
            it.until <= now || member.is_none_or(|it| it.state != ChildState::Running)
        };
        let due: Vec<WaitingCall> = self.waiting.extract_if(.., is_due).collect();
        for mut waiting in due {
            let answer = self.about(&waiting.child, watch);
            waiting.call.answer(&answer.unwrap_or_else(refused));
        }
        Ok(())
    }

    /// Ends every child, and records what was not recorded yet.
    pub(super) fn finish(&mut self, watch: &mut dyn Watch) -> Result<(), PortError> {
        self.calls = None;
        self.waiting.clear();
        let deadline = Instant::now() + LAST;
        let running = |watch: &dyn Watch| -> Vec<FamilyMember> {
            let family = watch.state().map(|state| &state.family);
            family
                .into_iter()
                .flat_map(|it| it.running().cloned())
                .collect()
        };
        for member in running(watch) {
            self.cancel(&member.start.run_id, "the agent that started it has ended")?;
        }
        while !running(watch).is_empty() && Instant::now() < deadline {
            for came in self.ended(Duration::from_millis(100)) {
                self.end(came, watch)?;
            }
        }
        for member in running(watch) {
            let verdict = Verdict::deny(Code::RunUnfinished, "the child did not end in time");
            self.end(unknown_end(&member, verdict), watch)?;
        }
        if self.unrecorded > 0 {
            let reason = "more requests of the same attempt were refused";
            let verdict = Verdict::deny(Code::ChildRequestInvalid, reason);
            let times = std::mem::take(&mut self.unrecorded);
            watch.note(Fact::ChildRefused(Box::new(ChildRefused {
                verdict,
                times,
            })))?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    fn answer(&mut self, mut call: BrokerCall, watch: &mut dyn Watch) -> Result<(), PortError> {
        let request = call.request.clone();
        let answer = match request {
            Err(reason) => Err(Verdict::deny(Code::ChildRequestInvalid, reason)),
            Ok(BrokerRequest::Start(task)) => self.start(&task, &call.bytes, watch)?,
            Ok(BrokerRequest::List {}) => Ok(self.list(watch)),
            Ok(BrokerRequest::Ask {
                kind,
                content,
                reason,
            }) => self.ask(kind, content, reason, watch),
            Ok(BrokerRequest::Cancel { child }) => match self.about(&child, watch) {
                Ok(answer) => {
                    self.cancel(&child, "the agent that started it cancelled it")?;
                    Ok(answer)
                }
                refused => refused,
            },
            Ok(BrokerRequest::Wait { child, seconds }) => match self.about(&child, watch) {
                Ok(_) => {
                    let wait = Duration::from_secs(seconds).min(LONGEST_WAIT);
                    let until = Instant::now() + wait;
                    self.waiting.push(WaitingCall { call, child, until });
                    return Ok(());
                }
                refused => refused,
            },
        };
        if let Err(verdict) = &answer {
            self.record(verdict, watch)?;
        }
        call.answer(&answer.unwrap_or_else(refused));
        Ok(())
    }

    /// Asks a person for more than the contract gives.
    fn ask(
        &mut self,
        kind: QuestionKind,
        content: String,
        reason: String,
        watch: &mut dyn Watch,
    ) -> Result<BrokerAnswer, Verdict> {
        let no = |words: String| Err(Verdict::deny(Code::AskRefused, words));
        if reason.len() > LONGEST {
            return no("the reason is longer than a person reads".to_owned());
        }
        match kind {
            QuestionKind::Path | QuestionKind::Widening => {}
            QuestionKind::Command | QuestionKind::Host => {
                return no("is asked by its use, not by this command".to_owned());
            }
        }
        let (content, _) = self.machine.known.scrub_text(content);
        let (reason, _) = self.machine.known.scrub_text(reason);
        match watch.ask(kind, &content, &reason) {
            Permission::Open => {
                self.waited += 1;
                let words = format!("`{content}` waits for a person");
                let granted = false;
                Ok(BrokerAnswer::Asked { granted, words })
            }
            Permission::Yes { .. } => {
                let words = match kind {
                    QuestionKind::Widening => {
                        format!("`{content}` is permitted; read-only files open with the next fix")
                    }
                    _ => format!("`{content}` is permitted for the rest of this run"),
                };
                let granted = true;
                Ok(BrokerAnswer::Asked { granted, words })
            }
            Permission::No(why) => no(format!("`{content}`: {why}")),
        }
    }

    /// Records a refusal, or counts it if there were many.
    fn record(&mut self, verdict: &Verdict, watch: &mut dyn Watch) -> Result<(), PortError> {
        let recorded = watch.state().map_or(0, |state| state.family.refused.len());
        if recorded >= RECORDED {
            self.unrecorded += 1;
            return Ok(());
        }
        let (reason, _) = self.machine.known.scrub_text(verdict.reason.clone());
        let verdict = Verdict::deny(verdict.code, reason);
        watch.note(Fact::ChildRefused(Box::new(ChildRefused {
            verdict,
            times: 1,
        })))
    }

    fn start(
        &mut self,
        task: &ChildTask,
        bytes: &[u8],
        watch: &mut dyn Watch,
    ) -> Result<Result<BrokerAnswer, Verdict>, PortError> {
        let (Some(state), Some(runner)) = (watch.state(), self.runner.as_mut()) else {
            let reason = "the contract grants no children";
            return Ok(Err(Verdict::deny(Code::ChildrenNotGranted, reason)));
        };
        let request_sha256 = sha256(bytes);
        if let Some(known) = state.family.by_key(&task.key) {
            let child = known.start.run_id.clone();
            if known.start.request_sha256 == request_sha256 {
                return Ok(self.about(&child, watch));
            }
            let reason = format!("the key `{}` started another child: {child}", task.key);
            return Ok(Err(Verdict::deny(Code::ChildKeyReused, reason)));
        }
        let child = runner.name()?;
        let admitted = admit(&Asking {
            run_id: &state.names.run_id,
            opened: &state.opened,
            family: &state.family,
            task,
            request_sha256: &request_sha256,
            child: &child,
        });
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(verdict) => return Ok(Err(verdict)),
        };
        let began = time::parse(&state.began).unwrap_or_default() / 1000;
        let trace_id = state.names.trace_id.clone();
        let base = match self.base(&child, began) {
            Ok(base) => base,
            Err(verdict) => return Ok(Err(verdict)),
        };
        let admitted = admitted.on(base);
        let (start, opened) = admitted.map_err(|error| PortError::of(Code::Bug, error))?;
        // From here on the share is taken, whatever happens.
        watch.note(Fact::ChildStarted(Box::new(start)))?;
        let names = Names {
            run_id: child.clone(),
            task_id: opened.contract.task_id.clone(),
            trace_id,
        };
        let started = self
            .runner
            .as_mut()
            .map(|runner| runner.begin(names, opened));
        if let Some(Err(error)) = started {
            let member = watch
                .state()
                .and_then(|state| state.family.find(&child).cloned());
            if let Some(member) = member {
                self.end(unknown_end(&member, error.verdict()), watch)?;
            }
        }
        Ok(self.about(&child, watch))
    }

    /// Captures the work of the agent, which a ref keeps, while its processes are stopped.
    fn base(&self, child: &str, seconds: i64) -> Result<ChildBase, Verdict> {
        let no = |reason: String| Verdict::deny(Code::ChildBaseRefused, reason);
        let machine = self.machine;
        let base = &self.order.base;
        let directory = machine.places.attempt(self.order.attempt);
        let init = self.init.as_ref();
        let init = init.ok_or_else(|| no("the sandbox has no init".to_owned()))?;
        let captured = stopped::while_stopped(init, || {
            let source = workspace::left_in(&directory)
                .ok_or_else(|| PortError::new(Code::HostFailed, "the workspace is gone"))?;
            capture::capture(&machine.repo, &base.tree, &source, &of_run(), Mode::Record)
                .map_err(uncaptured)
        });
        let captured = captured.map_err(|error| no(error.to_string()))?;
        let mut captured = captured.map_err(|error| no(error.verdict().reason))?;
        if let Some(finding) = captured.findings.first() {
            let reason = format!("a tree cannot hold `{}` of the work so far", finding.path);
            return Err(no(reason));
        }
        let withheld = machine.find_secrets(&mut captured, &base.tree);
        let withheld = withheld.map_err(|error| no(error.verdict().reason))?;
        if !withheld.is_nothing() {
            return Err(no("the work so far holds a secret".to_owned()));
        }
        let message = format!("Base of {child}\n");
        let commit = machine.commit(&captured.tree, &base.commit, &message, seconds);
        let commit = commit.map_err(|error| no(error.verdict().reason))?;
        let kept = machine.point(&Kind::Base.of_run(child), &commit);
        kept.map_err(|error| no(error.verdict().reason))?;
        machine.repo.release();
        let tree = captured.tree;
        Ok(ChildBase { commit, tree })
    }

    /// Hands over what a child left, and records its end.
    fn end(&mut self, came: ChildCame, watch: &mut dyn Watch) -> Result<(), PortError> {
        let member = watch
            .state()
            .and_then(|it| it.family.find(&came.run_id).cloned());
        let Some(member) = member.filter(|it| it.state == ChildState::Running) else {
            return Ok(());
        };
        let directory = self.shared.join(&came.run_id);
        let put = |name: &str, bytes: &[u8]| fs::write(directory.join(name), bytes);
        let made = fs::create_dir_all(&directory).and_then(|()| {
            put("said.txt", &came.said)?;
            came.patch
                .as_deref()
                .map_or(Ok(()), |patch| put("patch.diff", patch))
        });
        made.map_err(super::host("hand over what a child left"))?;
        let mut end = match came.end {
            Ok(end) => end,
            Err(verdict) => lost_end(&member, verdict),
        };
        let (reason, _) = self.machine.known.scrub_text(end.verdict.reason);
        end.verdict = Verdict {
            reason,
            details: None,
            ..end.verdict
        };
        watch.note(Fact::ChildEnded(Box::new(end)))
    }

    fn about(&self, child: &str, watch: &dyn Watch) -> Result<BrokerAnswer, Verdict> {
        let member = watch.state().and_then(|state| state.family.find(child));
        let unknown = || {
            let shown: String = child.chars().take(64).collect();
            let reason = format!("this run has no child `{}`", shown.escape_debug());
            Verdict::deny(Code::ChildUnknown, reason)
        };
        let member = member.ok_or_else(unknown)?;
        Ok(BrokerAnswer::Child(Box::new(self.row(member))))
    }

    fn list(&self, watch: &dyn Watch) -> BrokerAnswer {
        let members = watch.state().into_iter().flat_map(|it| &it.family.members);
        let children = members.map(|member| self.row(member)).collect();
        BrokerAnswer::Children { children }
    }

    fn row(&self, member: &FamilyMember) -> ChildRow {
        let start = &member.start;
        let end = match &member.state {
            ChildState::Ended(end) => Some(end.as_ref()),
            ChildState::Running | ChildState::Lost => None,
        };
        let left = |name: &str| {
            let exists = self.shared.join(&start.run_id).join(name).exists();
            exists.then(|| format!("{CHILDREN}/{}/{name}", start.run_id))
        };
        ChildRow {
            child: start.run_id.clone(),
            key: start.key.clone(),
            state: match &member.state {
                ChildState::Running => "running",
                ChildState::Ended(_) => "ended",
                ChildState::Lost => "lost",
            }
            .to_owned(),
            read_only: start.read_only,
            given: start.given,
            spent: end.map(|end| end.spent),
            verdict: end.map(|end| end.verdict.clone()),
            patch: left("patch.diff"),
            said: left("said.txt"),
        }
    }
}

fn refused(verdict: Verdict) -> BrokerAnswer {
    BrokerAnswer::Refused { verdict }
}

/// The end of a child whose use is not known: all that it was given counts as used.
fn lost_end(member: &FamilyMember, verdict: Verdict) -> ChildEnd {
    ChildEnd {
        run_id: member.start.run_id.clone(),
        verdict,
        spent: ChildBudget {
            processes: 0,
            ..member.start.given
        },
        children: member.start.children,
        tree: None,
        attestation_sha256: None,
    }
}

fn unknown_end(member: &FamilyMember, verdict: Verdict) -> ChildCame {
    ChildCame {
        run_id: member.start.run_id.clone(),
        end: Err(verdict),
        patch: None,
        said: Vec::new(),
    }
}
