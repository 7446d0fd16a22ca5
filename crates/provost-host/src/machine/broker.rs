//! The broker: answers what the agent of one sandbox asks for, which is children, messages to and from
//! them, and more than its contract gives.
//!
//! # Invariants
//!
//! - The event that takes the share of a child is in the ledger before its run begins; the event
//!   that gives the rest back comes after every process of the child is dead.
//! - The base of a child is what the agent had on disk while all its processes were stopped.
//! - When the agent ends, its children are ended.
//! - What an agent writes to another one is in both ledgers, without the secrets that were found.

mod ask;
mod handoff;
mod messages;
mod start;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use provost_core::children::{
    BrokerAnswer, BrokerRequest, ChildBudget, ChildEnd, ChildRefused, ChildRow, ChildState,
    FamilyMember, MessageTool, broker_tools,
};
use provost_core::code::Code;
use provost_core::run::effect::AgentEffect;
use provost_core::run::fact::Fact;
use provost_core::verdict::Verdict;
use provost_engine::ports::{ChildCame, ChildRunner, PortError, Watch};

use super::Machine;
use super::broker_calls::{BrokerCall, BrokerCalls};
use crate::clock;
use crate::sandbox::ProcessIdentity;
use messages::reply;

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

/// What the broker does about a request, or why it refuses it.
type BrokerOutcome = Result<Result<Reaction, Verdict>, PortError>;

enum Reaction {
    Answer(BrokerAnswer),
    /// The answer follows, at the latest after these seconds.
    Wait(Awaited, u64),
}

/// Answers one sandbox.
pub(super) struct Broker<'a> {
    machine: &'a Machine,
    order: &'a AgentEffect,
    runner: &'a mut (dyn ChildRunner + 'static),
    shared: PathBuf,
    calls: Option<BrokerCalls>,
    init: Option<ProcessIdentity>,
    waiting: Vec<WaitingCall>,
    /// How often an agent waited for another one or for a person; an agent that waits is not silent.
    waited: u64,
    /// Refusals without an event of their own.
    unrecorded: u64,
    failed: Option<PortError>,
}

/// An agent that waits.
struct WaitingCall {
    call: BrokerCall,
    awaited: Awaited,
    until: Instant,
}

/// What an agent waits for.
enum Awaited {
    /// The end of this child, or its question.
    Child(String),
    /// The reply to this question.
    Reply(String),
}

impl<'a> Broker<'a> {
    pub(super) fn new(
        machine: &'a Machine,
        order: &'a AgentEffect,
        runner: &'a mut (dyn ChildRunner + 'static),
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
    ///
    /// Returns a number that grows while an agent waits.
    pub(super) fn serve(&mut self, watch: &mut dyn Watch) -> Result<u64, ()> {
        if self.failed.is_none() {
            self.failed = self.turn(watch).err();
        }
        if self.failed.is_some() {
            Err(())
        } else {
            Ok(self.waited)
        }
    }

    fn turn(&mut self, watch: &mut dyn Watch) -> Result<(), PortError> {
        self.receive(watch)?;
        for came in self.runner.ended(Duration::ZERO) {
            self.end(came, watch)?;
        }
        for _ in 0..AT_ONCE {
            let Some(call) = self.calls.as_ref().and_then(BrokerCalls::next) else {
                break;
            };
            self.answer(call, watch)?;
        }
        let now = Instant::now();
        let is_due = |it: &mut WaitingCall| it.until <= now || is_there(&it.awaited, watch);
        let due: Vec<WaitingCall> = self.waiting.extract_if(.., is_due).collect();
        for mut waiting in due {
            let answer = match &waiting.awaited {
                Awaited::Child(child) => self.about(child, watch).unwrap_or_else(refused),
                Awaited::Reply(question) => reply(question, watch),
            };
            waiting.call.answer(&answer);
        }
        self.waited += self.waiting.len() as u64;
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
            self.runner
                .cancel(&member.start.run_id, "the agent that started it has ended")?;
        }
        while !running(watch).is_empty() && Instant::now() < deadline {
            for came in self.runner.ended(Duration::from_millis(100)) {
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
        let answer = match call.request.clone() {
            Err(reason) => Err(Verdict::deny(Code::ChildRequestInvalid, reason)),
            Ok(mut request) => {
                let family = watch.state().map(|state| &state.family);
                if let Some(child) = request.child_mut()
                    && let Some(named) = family.and_then(|family| family.named(child))
                {
                    *child = named.to_owned();
                }
                self.answer_to(&request, watch)?
            }
        };
        match answer {
            Ok(Reaction::Answer(answer)) => call.answer(&answer),
            Ok(Reaction::Wait(awaited, seconds)) => {
                let wait = Duration::from_secs(seconds).min(LONGEST_WAIT);
                let until = Instant::now() + wait;
                self.waiting.push(WaitingCall {
                    call,
                    awaited,
                    until,
                });
            }
            Err(verdict) => {
                self.record(&verdict, watch)?;
                call.answer(&refused(verdict));
            }
        }
        Ok(())
    }

    fn answer_to(&mut self, request: &BrokerRequest, watch: &mut dyn Watch) -> BrokerOutcome {
        if let Some(refusal) = not_kept(request, watch) {
            return Ok(Err(refusal));
        }
        match request {
            BrokerRequest::Start(task) => Ok(self.start(task, watch)?.map(Reaction::Answer)),
            BrokerRequest::List {} => Ok(Ok(Reaction::Answer(self.list(watch)))),
            BrokerRequest::Tools {} => Ok(Ok(Reaction::Answer(BrokerAnswer::Tools {
                tools: tools(watch).into_iter().map(str::to_owned).collect(),
            }))),
            BrokerRequest::Ask {
                kind,
                content,
                reason,
            } => Ok(self
                .ask(*kind, content, reason, watch)
                .map(Reaction::Answer)),
            BrokerRequest::Cancel { child } => self.cancel(child, watch),
            BrokerRequest::Wait { child, seconds } => {
                let wait = || Reaction::Wait(Awaited::Child(child.clone()), *seconds);
                Ok(self.about(child, watch).map(|_| wait()))
            }
            other => self.exchange(other, watch),
        }
    }

    /// Ends a child; one that has ended is left as it is.
    fn cancel(&mut self, child: &str, watch: &dyn Watch) -> BrokerOutcome {
        let answer = match self.about(child, watch) {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let member = watch.state().and_then(|state| state.family.find(child));
        if member.is_some_and(FamilyMember::is_running) {
            let reason = "the agent that started it cancelled it";
            self.runner.cancel(child, reason)?;
        }
        Ok(Ok(Reaction::Answer(answer)))
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
        Ok(BrokerAnswer::Child(Box::new(self.row(member, watch))))
    }

    fn list(&self, watch: &dyn Watch) -> BrokerAnswer {
        let members = watch.state().into_iter().flat_map(|it| &it.family.members);
        let children = members.map(|member| self.row(member, watch)).collect();
        BrokerAnswer::Children { children }
    }

    fn row(&self, member: &FamilyMember, watch: &dyn Watch) -> ChildRow {
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
            questions: messages::questions(watch, &start.run_id),
            messages: messages::count(watch, &start.run_id),
        }
    }
}

/// Whether what an agent waits for has come.
fn is_there(awaited: &Awaited, watch: &dyn Watch) -> bool {
    let Some(state) = watch.state() else {
        return true;
    };
    let now = clock::now_millis();
    match awaited {
        Awaited::Child(child) => {
            let running = state
                .family
                .find(child)
                .is_some_and(FamilyMember::is_running);
            let replies = tools(watch).contains(&MessageTool::ReplyToClarification.name());
            !running || replies && state.family.open_questions(child, now).next().is_some()
        }
        Awaited::Reply(question) => messages::reply_to(state, question).is_some(),
    }
}

/// The tools that the agent of this sandbox has.
fn tools(watch: &dyn Watch) -> Vec<&'static str> {
    let state = watch.state().map(|state| &state.opened);
    state.map_or_else(Vec::new, |opened| {
        broker_tools(&opened.contract, opened.child.is_some())
    })
}

/// The refusal of a request by a tool for messages that the package does not keep.
fn not_kept(request: &BrokerRequest, watch: &dyn Watch) -> Option<Verdict> {
    let tool = request.message_tool()?;
    if tools(watch).contains(&tool.name()) {
        return None;
    }
    let reason = format!("the package of this agent does not keep `{tool}`");
    Some(Verdict::deny(Code::ChildToolNotGranted, reason))
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
