//! Passes messages between the agent of one sandbox and its children or its parent.

use provost_core::children::{
    BrokerAnswer, BrokerRequest, ChildRefused, FamilyMessage, MessageDraft, MessageKind,
    MessageRow, Posting,
};
use provost_core::code::Code;
use provost_core::run::State;
use provost_core::run::fact::Fact;
use provost_core::verdict::Verdict;
use provost_engine::ports::{PortError, Watch};

use super::{Awaited, Broker, BrokerOutcome, Reaction};
use crate::clock;

impl Broker<'_> {
    /// Answers a request about messages.
    pub(super) fn exchange(
        &mut self,
        request: &BrokerRequest,
        watch: &mut dyn Watch,
    ) -> BrokerOutcome {
        match request {
            BrokerRequest::Message {
                child,
                key,
                text,
                seconds,
            } => {
                let letter = Letter::of(MessageKind::Message, key, text).lasting(*seconds);
                self.write_to_child(child, &letter, watch)
            }
            BrokerRequest::ReplyToClarification {
                child,
                key,
                question,
                text,
            } => {
                let letter = Letter::of(MessageKind::Reply, key, text).answering(question);
                self.write_to_child(child, &letter, watch)
            }
            BrokerRequest::SendMessage { key, text } => {
                let letter = Letter::of(MessageKind::Message, key, text);
                let sent = self.write_to_parent(&letter, watch)?;
                Ok(sent.map(|message| Reaction::Answer(BrokerAnswer::Sent { message })))
            }
            BrokerRequest::AskParent { key, text, seconds } => {
                let letter = Letter::of(MessageKind::Question, key, text);
                let sent = self.write_to_parent(&letter, watch)?;
                Ok(sent.map(|message| Reaction::Wait(Awaited::Reply(message), *seconds)))
            }
            BrokerRequest::ReadParentMessages { after } => {
                let parent = parent(watch).unwrap_or_default();
                Ok(Ok(Reaction::Answer(BrokerAnswer::Messages {
                    messages: rows(watch, &parent, *after),
                })))
            }
            BrokerRequest::Monitor { child, after } => {
                let known = self.about(child, watch);
                Ok(known.map(|_| {
                    Reaction::Answer(BrokerAnswer::Messages {
                        messages: rows(watch, child, *after),
                    })
                }))
            }
            BrokerRequest::Start(_)
            | BrokerRequest::Wait { .. }
            | BrokerRequest::Cancel { .. }
            | BrokerRequest::List {}
            | BrokerRequest::Tools {}
            | BrokerRequest::Ask { .. } => {
                Err(PortError::new(Code::Bug, "the request is about no message"))
            }
        }
    }

    /// Records what other agents of the family wrote to this one.
    pub(super) fn receive(&mut self, watch: &mut dyn Watch) -> Result<(), PortError> {
        for mut message in self.runner.received() {
            let Some(state) = watch.state() else { continue };
            if let Err(verdict) = state.family.has_room(message.text.len()) {
                watch.note(Fact::ChildRefused(Box::new(ChildRefused {
                    verdict,
                    times: 1,
                })))?;
                continue;
            }
            let known = parent(watch).is_some_and(|parent| parent == message.peer)
                || state.family.find(&message.peer).is_some();
            if !known {
                continue;
            }
            // This run may know secrets that the other one does not.
            let (text, redacted) = self.machine.known.scrub_text(message.text);
            message.text = text;
            message.redacted += redacted;
            watch.note(Fact::ChildMessage(Box::new(message)))?;
        }
        Ok(())
    }

    fn write_to_child(
        &mut self,
        child: &str,
        letter: &Letter<'_>,
        watch: &mut dyn Watch,
    ) -> BrokerOutcome {
        if let Err(refusal) = self.about(child, watch) {
            return Ok(Err(refusal));
        }
        let Some(state) = watch.state() else {
            return Err(PortError::new(Code::Bug, "a child without a family"));
        };
        let now = clock::now_millis();
        let member = state.family.find(child);
        let can = member.map_or(Ok(()), |member| match letter.reply_to {
            // A question waits for its reply whatever else the child reads.
            Some(question) => member
                .is_reached()
                .and_then(|()| state.family.asked_question(child, question, now)),
            None => member.reads_messages(),
        });
        if let Err(refusal) = can {
            return Ok(Err(refusal));
        }
        let sent = self.send(child, letter, watch)?;
        Ok(sent.map(|message| Reaction::Answer(BrokerAnswer::Sent { message })))
    }

    fn write_to_parent(
        &mut self,
        letter: &Letter<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Result<String, Verdict>, PortError> {
        if let Some(parent) = parent(watch) {
            return self.send(&parent, letter, watch);
        }
        let reason = "no agent started this one";
        Ok(Err(Verdict::deny(Code::ChildToolNotGranted, reason)))
    }

    /// Records a message and passes it on; returns its id.
    fn send(
        &mut self,
        peer: &str,
        letter: &Letter<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Result<String, Verdict>, PortError> {
        let Some(state) = watch.state() else {
            return Err(PortError::new(Code::Bug, "a message without a family"));
        };
        let run_id = state.names.run_id.clone();
        let (text, redacted) = self.machine.known.scrub_text(letter.text.to_owned());
        let posting = state.family.post(
            &run_id,
            &MessageDraft {
                peer,
                kind: letter.kind,
                key: letter.key,
                reply_to: letter.reply_to,
                text: &text,
                redacted,
                seconds: letter.seconds,
                now: clock::now_millis(),
            },
        );
        Ok(match posting {
            Err(refusal) => Err(refusal),
            Ok(Posting::Repeated(message)) => Ok(message.id),
            Ok(Posting::New(message)) => {
                watch.note(Fact::ChildMessage(Box::new(message.clone())))?;
                self.runner.send(&run_id, &message);
                Ok(message.id)
            }
        })
    }
}

/// What an agent asks to send.
struct Letter<'a> {
    kind: MessageKind,
    key: &'a str,
    text: &'a str,
    reply_to: Option<&'a str>,
    seconds: u64,
}

impl<'a> Letter<'a> {
    fn of(kind: MessageKind, key: &'a str, text: &'a str) -> Self {
        Self {
            kind,
            key,
            text,
            reply_to: None,
            seconds: 0,
        }
    }

    fn lasting(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }

    fn answering(self, question: &'a str) -> Self {
        Self {
            reply_to: Some(question),
            ..self
        }
    }
}

fn parent(watch: &dyn Watch) -> Option<String> {
    let child = watch.state()?.opened.child.as_ref()?;
    Some(child.run.clone())
}

/// The reply to the question `id` of this run.
pub(super) fn reply_to<'a>(state: &'a State, id: &str) -> Option<(u64, &'a FamilyMessage)> {
    let parent = state.opened.child.as_ref()?;
    let mut all = state.family.received(&parent.run, 0, clock::now_millis());
    all.find(|(_, it)| it.reply_to.as_deref() == Some(id))
}

/// The answer to an agent that waited for the reply to the question `id`.
pub(super) fn reply(id: &str, watch: &dyn Watch) -> BrokerAnswer {
    match watch.state().and_then(|state| reply_to(state, id)) {
        None => BrokerAnswer::Sent {
            message: id.to_owned(),
        },
        Some(found) => BrokerAnswer::Messages {
            messages: vec![row(found)],
        },
    }
}

fn row((number, message): (u64, &FamilyMessage)) -> MessageRow {
    MessageRow {
        number,
        id: message.id.clone(),
        kind: message.kind,
        reply_to: message.reply_to.clone(),
        text: message.text.clone(),
    }
}

fn rows(watch: &dyn Watch, peer: &str, after: u64) -> Vec<MessageRow> {
    let now = clock::now_millis();
    let family = watch.state().map(|state| &state.family);
    let all = family
        .into_iter()
        .flat_map(|it| it.received(peer, after, now));
    all.map(row).collect()
}

/// The questions of `child` without a reply.
pub(super) fn questions(watch: &dyn Watch, child: &str) -> Vec<MessageRow> {
    let now = clock::now_millis();
    let family = watch.state().map(|state| &state.family);
    let open = family
        .into_iter()
        .flat_map(|it| it.open_questions(child, now));
    open.map(row).collect()
}

/// How many messages `child` has sent.
pub(super) fn count(watch: &dyn Watch, child: &str) -> u64 {
    let family = watch.state().map(|state| &state.family);
    let all = family.into_iter().flat_map(|it| it.received(child, 0, 0));
    all.count() as u64
}
