//! What an agent can do next: one value, worded for callers of tools and for the command line.

use crate::finish::decide::StopReason;
use crate::hygiene::Block;
use provost_core::path::RawPath;

/// Where a message is read, which decides how it names tools, arguments and commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    Tool,
    CommandLine,
}

/// The names of tools and arguments, or of commands and flags.
struct Spellings {
    analyse: &'static str,
    queue: &'static str,
    own_work: &'static str,
    promote: &'static str,
    recover: &'static str,
    renew: &'static str,
    by_files: &'static str,
    by_after: &'static str,
    before: &'static str,
}

impl Audience {
    const fn terms(self) -> Spellings {
        match self {
            Self::Tool => Spellings {
                analyse: "analyze_repository",
                queue: "on_conflict=\"queue\"",
                own_work: "dirty_scope_policy=\"continue_own_wip\"",
                promote: "manage_change_intent, action=\"promote\"",
                recover: "manage_change_intent(action=\"recover\")",
                renew: "manage_change_intent, action=\"renew\"",
                by_files: "in changed_files",
                by_after: "as after_run_id",
                before: "before_run_id",
            },
            Self::CommandLine => Spellings {
                analyse: "provost change analyze",
                queue: "provost change queue",
                own_work: "--continue-own-wip",
                promote: "provost change promote",
                recover: "provost change recover",
                renew: "provost change renew",
                by_files: "with --file",
                by_after: "with --after",
                before: "--before",
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    Analyse,
    /// The checkout moved on since the last analysis.
    AnalyseAgain,
    /// The intent is queued.
    Wait,
    /// Git cannot read the checkout, for this reason.
    CheckoutUnknown(String),
    /// Other agents hold the files.
    AwaitOthers,
    /// Other agents hold the files, and some of the files are dirty.
    AwaitOthersOfDirty,
    /// Another agent declared dirty files of the scope.
    AskOwnerOfDirty,
    /// Files of the scope are dirty, at a start.
    CommitOrClaim,
    /// Files of the scope are dirty, at a promotion, which has no argument for them.
    CommitOrClear,
    /// The time of a queued intent is over.
    StartAgain,
    /// A run of the caller is needed to take over an intent: whether there is one.
    Recover(bool),
    /// Uncommitted changes block a finish; the paths whose staged content was not judged.
    Unblock(Block, Vec<RawPath>),
    /// A finish stopped for this reason.
    After(StopReason),
}

impl NextStep {
    pub fn text(&self, to: Audience) -> String {
        let terms = to.terms();
        match self {
            Self::Analyse => format!(
                "analyse the repository ({}), then start again",
                terms.analyse
            ),
            Self::AnalyseAgain => format!(
                "the checkout moved on since the last analysis: analyse the repository again ({}), \
                 then start",
                terms.analyse
            ),
            Self::Wait => format!(
                "wait, then promote the intent ({}); do not edit before",
                terms.promote
            ),
            Self::CheckoutUnknown(why) => {
                format!("the state of the checkout is not known, so no agent may edit: {why}")
            }
            Self::AwaitOthers => format!(
                "another agent works on these files: wait for it ({}), agree with it, or choose \
                 other files",
                terms.queue
            ),
            Self::AwaitOthersOfDirty => format!(
                "another agent works on these files, and some of them have uncommitted changes: \
                 wait for it ({}) or choose other files",
                terms.queue
            ),
            Self::AskOwnerOfDirty => "uncommitted changes in the scope belong to another live \
                                      agent: agree with it first"
                .to_owned(),
            Self::CommitOrClaim => format!(
                "files of the scope have uncommitted changes: commit or stash them, or say that \
                 they are yours ({})",
                terms.own_work
            ),
            Self::CommitOrClear => format!(
                "files of the scope have uncommitted changes: commit or stash them and promote \
                 again, or, if they are yours, clear this intent and start again with {}",
                terms.own_work
            ),
            Self::StartAgain => "the intent expired; start again".to_owned(),
            Self::Recover(true) => format!("{} with a run of this session", terms.recover),
            Self::Recover(false) => format!("analyse the repository, then {}", terms.recover),
            Self::Unblock(block, staged) => unblock(*block, staged, &terms),
            Self::After(reason) => after(*reason, &terms),
        }
    }
}

fn unblock(block: Block, staged: &[RawPath], terms: &Spellings) -> String {
    match block {
        Block::MissingEvidence => format!(
            "name every file of the scope that is changed {}, or undo the change",
            terms.by_files
        ),
        Block::ForeignDirtyOverlap => {
            "agree with the other agent whose intent covers these files, then finish again"
                .to_owned()
        }
        Block::OwnUnscopedDirty => {
            "commit, undo or declare what changed outside of the scope, then finish again"
                .to_owned()
        }
        Block::StagedNotJudged => {
            let names = staged.iter().take(3).map(|path| format!("'{path}'"));
            let names = names.collect::<Vec<_>>().join(" ");
            format!(
                "the staged content of {names} is not what is on disk, so a commit would take what \
                 was not judged: `git add {names}` or `git restore --staged {names}`, then finish \
                 again"
            )
        }
    }
}

fn after(reason: StopReason, terms: &Spellings) -> String {
    let by_after = terms.by_after;
    match reason {
        StopReason::IntentNotActive => "promote the intent first, and edit only then".to_owned(),
        StopReason::EditNotAllowed => {
            "this intent may not edit: undo what was edited under it, and start again when the \
             files are free"
                .to_owned()
        }
        StopReason::TtlExpired => format!(
            "the time of this intent is over: renew it ({}), or analyse the repository and start \
             again with {}; both compare the work with its first analysis",
            terms.renew, terms.own_work
        ),
        StopReason::GitUnavailable => {
            "make the checkout readable for git, then finish again".to_owned()
        }
        StopReason::WorkspaceHygiene => "clean up what is listed, then finish again".to_owned(),
        StopReason::ReportDigestMismatch => {
            "analyse the repository and start again: the analysis this intent began from is not \
             what it was"
                .to_owned()
        }
        StopReason::NoBeforeRun => {
            format!(
                "name an intent or the analysis from before ({})",
                terms.before
            )
        }
        StopReason::NoAfterRun
        | StopReason::AfterRunRequiredForGovernance
        | StopReason::AfterRunNotNew => {
            format!("analyse the repository after the last edit and name that run {by_after}")
        }
        StopReason::AfterRunStale => format!(
            "files of this change were edited after that analysis: analyse again and name the new \
             run {by_after}"
        ),
        StopReason::IncomparableRuns => {
            "analyse with the settings and the root of the first analysis".to_owned()
        }
        StopReason::StructuralRegressions => format!(
            "fix the new findings of this change (intent_regressions), then analyse again and name \
             the new run {by_after}"
        ),
        StopReason::GateFailures => format!(
            "bring what this change made worse back below its limits (gate_preview), then analyse \
             again and name the new run {by_after}"
        ),
        StopReason::BaselineAbuse => format!(
            "restore the baseline from before the change, then analyse again and name the new run \
             {by_after}; only a person accepts findings, in a separate commit"
        ),
        StopReason::ScopeViolation => format!(
            "undo what was not declared, or start again with a wider scope and {}; the analysis \
             from after the edits still counts",
            terms.own_work
        ),
        StopReason::StateArtifactMutation => {
            "undo the changes of files of Provost, then try again".to_owned()
        }
    }
}
