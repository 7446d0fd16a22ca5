//! Messages between a parent and its children: what is recorded, and who may read what.
//!
//! # Invariants
//!
//! - A message goes from a parent to its child or back; there is no other way.
//! - Each message has an id of its own, and the same key sends one message.
//! - A message that expired before it was read is read by no agent.
//! - What a family writes is bounded, however long it runs.

use serde::{Deserialize, Serialize};

use super::family::{Family, FamilyMember};
use super::tools::MessageTool;
use crate::code::Code;
use crate::verdict::Verdict;
use crate::words;

/// The most messages that one run sends and receives.
pub const MOST_MESSAGES: usize = 1_000;

/// The most bytes of all of them.
pub const MOST_MESSAGE_BYTES: usize = 1 << 20;

/// The longest text of one message, in bytes.
const LONGEST_TEXT: usize = 48 << 10;

/// How long a message can be read, in seconds, if its sender does not say.
const USUAL_SECONDS: u64 = 3_600;

words! {
    /// Whether a run wrote a message or got it.
    #[derive(Deserialize)]
    pub enum MessageWay {
        Sent = "sent",
        Received = "received",
    }
}

words! {
    /// What a message is.
    #[derive(Deserialize)]
    pub enum MessageKind {
        Message = "message",
        Question = "question",
        Reply = "reply",
    }
}

/// The event of a message; the ledgers of both ends have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyMessage {
    /// Unique in the family: the run of the sender and a number.
    pub id: String,
    pub way: MessageWay,
    /// The run at the other end.
    pub peer: String,
    pub kind: MessageKind,
    /// The key of the request; a request with the same key sends no second message.
    pub key: String,
    /// The question that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Without the secrets that were found in it.
    pub text: String,
    /// How many those were.
    pub redacted: u64,
    /// When it expires, in milliseconds since 1970.
    pub until: i64,
}

/// A message that an agent asks to send.
#[derive(Debug, Clone)]
pub struct MessageDraft<'a> {
    pub peer: &'a str,
    pub kind: MessageKind,
    pub key: &'a str,
    pub reply_to: Option<&'a str>,
    pub text: &'a str,
    pub redacted: u64,
    /// How long it can be read; 0 is an hour.
    pub seconds: u64,
    /// Milliseconds since 1970.
    pub now: i64,
}

/// What becomes of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posting {
    New(FamilyMessage),
    /// The same key sent the same message before.
    Repeated(FamilyMessage),
}

impl Family {
    /// The message of `draft`, which the run `run_id` sends, or why it may not.
    pub fn post(&self, run_id: &str, draft: &MessageDraft<'_>) -> Result<Posting, Verdict> {
        let refuse = |code: Code, reason: String| Err(Verdict::deny(code, reason));
        check_draft(draft)?;
        let sent = self
            .messages
            .iter()
            .find(|it| it.way == MessageWay::Sent && it.peer == draft.peer && it.key == draft.key);
        if let Some(sent) = sent {
            if sent.text == draft.text && sent.reply_to.as_deref() == draft.reply_to {
                return Ok(Posting::Repeated(sent.clone()));
            }
            let reason = format!("the key `{}` sent another message: {}", draft.key, sent.id);
            return refuse(Code::ChildKeyReused, reason);
        }
        self.has_room(draft.text.len())?;
        let seconds = if draft.seconds == 0 {
            USUAL_SECONDS
        } else {
            draft.seconds
        };
        let millis = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        Ok(Posting::New(FamilyMessage {
            id: format!("{run_id}.{}", self.messages.len() + 1),
            way: MessageWay::Sent,
            peer: draft.peer.to_owned(),
            kind: draft.kind,
            key: draft.key.to_owned(),
            reply_to: draft.reply_to.map(str::to_owned),
            text: draft.text.to_owned(),
            redacted: draft.redacted,
            until: draft.now.saturating_add(millis),
        }))
    }

    /// Whether one more message of `bytes` can be recorded.
    pub fn has_room(&self, bytes: usize) -> Result<(), Verdict> {
        let written: usize = self.messages.iter().map(|it| it.text.len()).sum();
        if self.messages.len() < MOST_MESSAGES && written + bytes <= MOST_MESSAGE_BYTES {
            return Ok(());
        }
        let reason = format!(
            "a run sends and receives at most {MOST_MESSAGES} messages of {MOST_MESSAGE_BYTES} \
             bytes together"
        );
        Err(Verdict::deny(Code::ChildMailboxFull, reason))
    }

    /// The messages from `peer`, each with its number, after number `after`, that have not expired.
    pub fn received<'a>(
        &'a self,
        peer: &'a str,
        after: u64,
        now: i64,
    ) -> impl Iterator<Item = (u64, &'a FamilyMessage)> {
        let from = move |it: &&FamilyMessage| it.way == MessageWay::Received && it.peer == peer;
        let all = (1..).zip(self.messages.iter().filter(from));
        all.filter(move |(number, it)| *number > after && it.until > now)
    }

    /// Refuses a reply to something that `child` did not ask.
    pub fn asked_question(&self, child: &str, id: &str, now: i64) -> Result<(), Verdict> {
        let asked = self.received(child, 0, now);
        let mut asked = asked.filter(|(_, it)| it.kind == MessageKind::Question);
        if !asked.any(|(_, it)| it.id == id) {
            let shown: String = id.chars().take(128).collect();
            let shown = shown.escape_debug();
            let reason = format!("the child {child} has asked no question `{shown}`");
            return Err(Verdict::deny(Code::ChildRequestInvalid, reason));
        }
        Ok(())
    }

    /// The questions of `child` without a reply.
    pub fn open_questions<'a>(
        &'a self,
        child: &'a str,
        now: i64,
    ) -> impl Iterator<Item = (u64, &'a FamilyMessage)> {
        let replied = |id: &str| {
            let mut sent = self.messages.iter();
            sent.any(|it| it.way == MessageWay::Sent && it.reply_to.as_deref() == Some(id))
        };
        let asked = self.received(child, 0, now);
        asked.filter(move |(_, it)| it.kind == MessageKind::Question && !replied(&it.id))
    }

    /// Records a message; false if its peer is none of the family, or it is there already.
    pub fn record_message(&mut self, message: FamilyMessage, parent: Option<&str>) -> bool {
        let of_child = self
            .members
            .iter()
            .any(|it| it.start.run_id == message.peer);
        let known = of_child || parent == Some(message.peer.as_str());
        let twice = self
            .messages
            .iter()
            .any(|it| it.id == message.id && it.way == message.way);
        if !known || twice || self.has_room(message.text.len()).is_err() {
            return false;
        }
        self.messages.push(message);
        true
    }
}

impl FamilyMember {
    /// Refuses a message to a child that has ended.
    pub fn is_reached(&self) -> Result<(), Verdict> {
        if self.is_running() {
            return Ok(());
        }
        let reason = format!("the child {} has ended", self.start.run_id);
        Err(Verdict::deny(Code::ChildOver, reason))
    }

    /// Refuses a message to a child that cannot read it.
    pub fn reads_messages(&self) -> Result<(), Verdict> {
        self.is_reached()?;
        let child = &self.start.run_id;
        if self
            .start
            .messages
            .contains(&MessageTool::ReadParentMessages)
        {
            return Ok(());
        }
        let tool = MessageTool::ReadParentMessages;
        let reason = format!("the package of the child {child} does not keep `{tool}`");
        Err(Verdict::deny(Code::ChildToolNotGranted, reason))
    }
}

fn check_draft(draft: &MessageDraft<'_>) -> Result<(), Verdict> {
    let invalid = |reason: String| Err(Verdict::deny(Code::ChildRequestInvalid, reason));
    if !super::admit::is_key(draft.key) {
        return invalid("`key` has 1 to 128 letters, digits or characters of `._:-`".to_owned());
    }
    if draft.text.trim().is_empty() || draft.text.len() > LONGEST_TEXT {
        return invalid(format!("a message has 1 to {LONGEST_TEXT} bytes of text"));
    }
    Ok(())
}
