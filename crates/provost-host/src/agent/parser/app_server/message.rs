//! The messages to `codex app-server`, as types. It calls its protocol JSON-RPC and leaves the
//! version out.

use provost_core::contract::document::Shell;
use serde::Serialize;
use serde_json::Value;

/// A request, or a notification if it has no id.
#[derive(Debug, Serialize)]
pub(super) struct ClientMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    #[serde(flatten)]
    pub(super) call: ClientCall<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "method", content = "params")]
pub(super) enum ClientCall<'a> {
    #[serde(rename = "initialize")]
    Initialize(Introduction),
    #[serde(rename = "initialized")]
    Initialized(Nothing),
    #[serde(rename = "thread/start")]
    StartThread(ThreadRules<'a>),
    #[serde(rename = "thread/resume")]
    ResumeThread(ThreadRules<'a>),
    #[serde(rename = "turn/start")]
    StartTurn(TurnStart<'a>),
    #[serde(rename = "turn/steer")]
    SteerTurn(TurnRemark<'a>),
}

/// Parameters without fields.
#[derive(Debug, Serialize)]
pub(super) struct Nothing {}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Introduction {
    pub(super) client_info: ClientInfo,
    pub(super) capabilities: ClientCapabilities,
}

#[derive(Debug, Serialize)]
pub(super) struct ClientInfo {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientCapabilities {
    pub(super) experimental_api: bool,
    pub(super) request_attestation: bool,
    pub(super) opt_out_notification_methods: &'static [&'static str],
}

/// Opens a thread. The sandbox mode is not among the fields: with it, Codex trusts the project.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadRules<'a> {
    /// The thread to resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exclude_turns: Option<bool>,
    pub(super) approval_policy: ApprovalRule,
    pub(super) approvals_reviewer: ApprovalsReviewer,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnStart<'a> {
    pub(super) thread_id: &'a str,
    pub(super) input: [UserText<'a>; 1],
    pub(super) approval_policy: ApprovalRule,
    pub(super) approvals_reviewer: ApprovalsReviewer,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_schema: Option<&'a Value>,
}

/// Words to the model while it works.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnRemark<'a> {
    pub(super) thread_id: &'a str,
    pub(super) expected_turn_id: &'a str,
    pub(super) input: [UserText<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "text")]
pub(super) struct UserText<'a> {
    pub(super) text: &'a str,
}

/// When Codex asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ApprovalRule {
    Untrusted,
    OnRequest,
    Never,
}

impl ApprovalRule {
    pub(super) fn of(shell: Shell) -> Self {
        match shell {
            Shell::Untrusted => Self::Untrusted,
            Shell::OnRequest => Self::OnRequest,
            // Without a shell there is nothing to ask about.
            Shell::Deny | Shell::Never => Self::Never,
        }
    }
}

/// Who answers: the user, and never another model.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ApprovalsReviewer {
    User,
}

/// The answer to a request of the program.
#[derive(Debug, Serialize)]
pub(super) struct ClientReply<'a> {
    pub(super) id: &'a Value,
    #[serde(flatten)]
    pub(super) outcome: ReplyOutcome,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReplyOutcome {
    Result(ApprovalReply),
    Error(NotOffered),
}

#[derive(Debug, Serialize)]
pub(super) struct ApprovalReply {
    pub(super) decision: ApprovalDecision,
}

/// For this once: Codex offers answers for later too, which are not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ApprovalDecision {
    Accept,
    Decline,
}

#[derive(Debug, Serialize)]
pub(super) struct NotOffered {
    pub(super) code: i64,
    pub(super) message: &'static str,
}
