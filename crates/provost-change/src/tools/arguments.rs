//! The arguments of tools, and the requests that they make.
//!
//! A doc comment here is what an agent reads about the tool or the argument.

mod analysis;
mod lookup;

use crate::finish::claims::ClaimText;
use crate::request::{Evidence, FinishRequest, StartRequest, VerifyRequest, Wanted};
use crate::scope::ChangeScope;
use crate::start::decide::{DirtyPolicy, OnConflict};
use provost_lens::structure::blast::Depth;
use provost_lens::structure::budget::Strictness;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::answers::Detail;

pub use analysis::{AnalysisArguments, ChangedPathsArguments, GateArguments};
pub use lookup::{
    BlastArguments, BlastArtifactArguments, ClaimsArguments, CompareArguments, ForgetArguments,
    MakeReceiptArguments, ReceiptArguments, ReceiptFormat, TrailArguments,
};

/// Arguments that a tool cannot use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgumentError(pub String);

/// The longest text that is read, in characters.
const LONGEST: usize = 20_000;

/// The longest review that is stored, in characters.
const LONGEST_REVIEW: usize = 50_000;

/// The longest time that is accepted, in seconds: a year.
const LONGEST_TIME: i64 = 31_536_000;

/// The longest name of a commit, in bytes.
const LONGEST_REV: usize = 1000;

fn wrong<T>(reason: impl Into<String>) -> Result<T, ArgumentError> {
    Err(ArgumentError(reason.into()))
}

/// Refuses a text that is too long; a command line is held to no schema.
fn bounded(name: &str, text: &str, most: usize) -> Result<(), ArgumentError> {
    if text.chars().count() > most {
        return wrong(format!("`{name}` has more than {most} characters"));
    }
    Ok(())
}

/// A number of seconds.
///
/// A value outside the limits of an intent is later clamped to them. A value that is no time is
/// refused, so that an agent does not believe that it got what it asked for.
fn seconds(name: &str, seconds: Option<i64>) -> Result<Option<i64>, ArgumentError> {
    match seconds {
        Some(number) if !(1..=LONGEST_TIME).contains(&number) => wrong(format!(
            "`{name}` is a whole number of seconds, from 1 to {LONGEST_TIME}"
        )),
        seconds => Ok(seconds),
    }
}

/// Files as they are declared.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeArguments {
    /// Every file that will be touched, relative to the root. A directory keeps other agents out,
    /// but a finish accepts only files that are named.
    #[schemars(length(max = 10_000))]
    pub allowed_files: Vec<String>,
    /// Files that may be touched in passing.
    #[schemars(length(max = 10_000))]
    pub allowed_related: Option<Vec<String>>,
    /// Patterns of files that must not be touched; `*` matches `/` too.
    #[schemars(length(max = 10_000))]
    pub forbidden: Option<Vec<String>>,
}

impl ScopeArguments {
    /// The scope, relative to the root `below` the top of the repository.
    fn scope(&self, below: &str) -> Result<ChangeScope, ArgumentError> {
        let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let (related, forbidden) = (list(&self.allowed_related), list(&self.forbidden));
        ChangeScope::parse(&self.allowed_files, &related, &forbidden, below)
            .map_err(|error| ArgumentError(error.to_string()))
    }
}

/// Declares which files will be touched and says whether they may be edited now. Edit only when
/// `edit_allowed` is true.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartArguments {
    /// The analysed directory; the scope is relative to it.
    pub root: String,
    /// The files of the change.
    pub scope: ScopeArguments,
    /// What will be done, in words.
    #[schemars(length(max = 20_000))]
    pub intent: String,
    /// What is expected to change, in words.
    #[schemars(length(max = 10_000))]
    pub expected_effects: Option<Vec<String>>,
    /// What to do when another agent holds the files: refuse (the default), or wait in the queue.
    pub on_conflict: Option<OnConflict>,
    /// How strict the change is judged; a finish may only tighten it. The default is ci.
    pub strictness: Option<Strictness>,
    /// How long the intent lasts, in seconds; the nearest value from 60 to 86400 is taken.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub ttl_seconds: Option<i64>,
    /// How far imports are followed for the blast radius; auto by default.
    pub blast_radius_depth: Option<Depth>,
    /// How much of the blast radius is shown; `get_blast_artifact` has all of it.
    pub blast_radius_detail: Option<Detail>,
    /// What to do about uncommitted changes in the scope: refuse (the default), or take them for
    /// your own unfinished work.
    pub dirty_scope_policy: Option<DirtyPolicy>,
}

impl StartArguments {
    /// The request, for the root `below` the top of the repository.
    pub fn request(&self, below: &str) -> Result<StartRequest, ArgumentError> {
        let scope = self.scope.scope(below)?;
        if self.intent.trim().is_empty() {
            return wrong("`intent` is required");
        }
        bounded("intent", &self.intent, LONGEST)?;
        let effects = self.expected_effects.clone().unwrap_or_default();
        let letters = effects.iter().map(|text| text.chars().count());
        if letters.sum::<usize>() > LONGEST {
            return wrong(format!(
                "`expected_effects` have more than {LONGEST} characters"
            ));
        }
        Ok(StartRequest {
            root: below.to_owned(),
            scope,
            intent: self.intent.trim().to_owned(),
            expected_effects: effects,
            on_conflict: self.on_conflict.unwrap_or_default(),
            policy: self.dirty_scope_policy.unwrap_or_default(),
            strictness: self.strictness.unwrap_or_default(),
            ttl: seconds("ttl_seconds", self.ttl_seconds)?,
            depth: self.blast_radius_depth.unwrap_or_default(),
        })
    }
}

/// The touched paths; an error if both kinds are given, or if the list is empty.
fn evidence(
    files: Option<&Vec<String>>,
    rev: Option<&String>,
) -> Result<Option<Evidence>, ArgumentError> {
    if rev.is_some_and(|rev| rev.len() > LONGEST_REV) {
        return wrong(format!("`diff_ref` has more than {LONGEST_REV} bytes"));
    }
    match (files, rev) {
        (Some(_), Some(_)) => wrong("give `changed_files` or `diff_ref`, not both"),
        (Some(files), None) if files.is_empty() => wrong("`changed_files` names no file"),
        (Some(files), None) => Ok(Some(Evidence::Files(files.clone()))),
        (None, Some(rev)) => Ok(Some(Evidence::DiffRef(rev.clone()))),
        (None, None) => Ok(None),
    }
}

/// Refuses a request that does not say what was touched.
fn needed(evidence: Option<Evidence>) -> Result<Evidence, ArgumentError> {
    match evidence {
        Some(evidence) => Ok(evidence),
        None => wrong("say what was touched, by `changed_files` or by `diff_ref`"),
    }
}

/// Reports the touched files, and returns a verdict and a receipt.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishArguments {
    /// The intent that `start_controlled_change` returned.
    pub intent_id: String,
    /// Every file that was created, changed or deleted, relative to the root.
    #[schemars(length(max = 10_000))]
    pub changed_files: Option<Vec<String>>,
    /// Instead of `changed_files`: all tracked files that differ from this commit.
    pub diff_ref: Option<String>,
    /// The analysis from after the last edit.
    pub after_run_id: Option<String>,
    /// A description of the change, for people.
    #[schemars(length(max = 50_000))]
    pub review_text: Option<String>,
    /// Claims about the change, which are checked against the analyses.
    pub claims_text: Option<String>,
    /// Whether a receipt is made; true by default.
    pub create_receipt: Option<bool>,
    /// Whether an accepted intent is given back; true by default.
    pub auto_clear: Option<bool>,
    /// A stricter judgement than the start asked for; a looser one has no effect.
    pub strictness: Option<Strictness>,
    /// Has no effect: Provost stores nothing beyond the evidence.
    pub propose_memory: Option<bool>,
    /// How much is shown of the uncommitted files; normal is the same as summary.
    pub detail_level: Option<Detail>,
    /// How much is shown of the patch trail; `get_patch_trail` has all of it.
    pub patch_trail_detail: Option<Detail>,
}

impl FinishArguments {
    pub fn request(&self) -> Result<FinishRequest, ArgumentError> {
        let wanted = |flag: Option<bool>| match flag {
            Some(false) => Wanted::No,
            Some(true) | None => Wanted::Yes,
        };
        let claims = self.claims_text.as_deref().map(ClaimText::try_from);
        let claims = claims.transpose();
        let review = self.review_text.as_deref().unwrap_or_default();
        bounded("review_text", review, LONGEST_REVIEW)?;
        Ok(FinishRequest {
            intent_id: self.intent_id.clone(),
            evidence: needed(evidence(
                self.changed_files.as_ref(),
                self.diff_ref.as_ref(),
            )?)?,
            after_run: self.after_run_id.clone(),
            review: self.review_text.clone(),
            claims: claims.map_err(|error| ArgumentError(error.to_string()))?,
            receipt: wanted(self.create_receipt),
            clear: wanted(self.auto_clear),
            strictness: self.strictness,
        })
    }

    pub fn shown(&self) -> Shown {
        Shown {
            hygiene: self.detail_level.unwrap_or_default(),
            trail: self.patch_trail_detail.unwrap_or_default(),
        }
    }
}

/// How a finish is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// The dirty files.
    pub hygiene: Detail,
    pub trail: Detail,
}

/// What to do with an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Declare,
    Check,
    Get,
    Clear,
    Promote,
    Renew,
    Recover,
    ListWorkspace,
    GcWorkspace,
    ResetWorkspace,
}

/// Manages intents: shows, checks, clears, promotes, renews and recovers them, and lists or cleans
/// up those of the repository.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManageArguments {
    /// What to do.
    pub action: Action,
    /// The directory whose repository is meant.
    pub root: Option<String>,
    /// The intent; clear without one gives back all of yours.
    pub intent_id: Option<String>,
    /// For recover: an analysis of this session.
    pub run_id: Option<String>,
    /// For declare: the files of the change.
    pub scope: Option<ScopeArguments>,
    /// For declare: what will be done, in words.
    #[schemars(length(max = 20_000))]
    pub intent: Option<String>,
    /// For declare: what is expected to change, in words.
    #[schemars(length(max = 10_000))]
    pub expected_effects: Option<Vec<String>>,
    /// For check: the touched files, relative to the root.
    #[schemars(length(max = 10_000))]
    pub changed_files: Option<Vec<String>>,
    /// For check, instead of `changed_files`: all tracked files that differ from this commit.
    pub diff_ref: Option<String>,
    /// For declare, renew and `reset_workspace`: how long the intent lasts, in seconds.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub ttl_seconds: Option<i64>,
    /// For renew: how long the lease lasts, in seconds.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub lease_seconds: Option<i64>,
    /// For declare: what to do when another agent holds the files.
    pub on_conflict: Option<OnConflict>,
}

impl ManageArguments {
    /// A request without any other argument.
    pub fn new(action: Action) -> Self {
        Self {
            action,
            root: None,
            intent_id: None,
            run_id: None,
            scope: None,
            intent: None,
            expected_effects: None,
            changed_files: None,
            diff_ref: None,
            ttl_seconds: None,
            lease_seconds: None,
            on_conflict: None,
        }
    }

    /// The same request under the name of a start.
    pub fn start(&self) -> Result<StartArguments, ArgumentError> {
        let Some(scope) = self.scope.clone() else {
            return wrong("`scope` is required");
        };
        Ok(StartArguments {
            root: self.root.clone().unwrap_or_else(|| ".".to_owned()),
            scope,
            intent: self.intent.clone().unwrap_or_default(),
            expected_effects: self.expected_effects.clone(),
            on_conflict: self.on_conflict,
            ttl_seconds: self.ttl_seconds,
            ..StartArguments::default()
        })
    }

    /// How long the lease and the intent last.
    pub fn times(&self) -> Result<(Option<i64>, Option<i64>), ArgumentError> {
        let lease = seconds("lease_seconds", self.lease_seconds)?;
        Ok((lease, seconds("ttl_seconds", self.ttl_seconds)?))
    }

    pub fn evidence(&self) -> Result<Evidence, ArgumentError> {
        needed(self.touched()?)
    }

    /// The touched paths, if the request has some.
    pub fn touched(&self) -> Result<Option<Evidence>, ArgumentError> {
        evidence(self.changed_files.as_ref(), self.diff_ref.as_ref())
    }
}

/// Whether a limit or a verdict is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Budget,
    Verify,
}

/// What may become worse (mode budget), and what became worse (mode verify), without finishing
/// anything.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractArguments {
    /// budget for the limits, verify for the verdict.
    pub mode: Mode,
    /// The analysis that the budget is for, or another name for `before_run_id`.
    pub run_id: Option<String>,
    /// The analysis from before, where there is no intent.
    pub before_run_id: Option<String>,
    /// The analysis from after.
    pub after_run_id: Option<String>,
    /// An intent of this session.
    pub intent_id: Option<String>,
    /// How strict the judgement is; that of the start, or ci, by default.
    pub strictness: Option<Strictness>,
    /// Instead of `changed_files`: all tracked files that differ from this commit.
    pub diff_ref: Option<String>,
    /// The touched files, relative to the root.
    #[schemars(length(max = 10_000))]
    pub changed_files: Option<Vec<String>>,
}

impl ContractArguments {
    /// The run whose budget is asked for.
    pub fn budget_run(&self) -> Option<&str> {
        self.run_id.as_deref().or(self.before_run_id.as_deref())
    }

    pub fn verify(&self) -> Result<VerifyRequest, ArgumentError> {
        Ok(VerifyRequest {
            intent_id: self.intent_id.clone(),
            before_run: self.before_run_id.clone().or_else(|| self.run_id.clone()),
            after_run: self.after_run_id.clone(),
            evidence: evidence(self.changed_files.as_ref(), self.diff_ref.as_ref())?,
            strictness: self.strictness,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::tools::Request;

    fn refused(given: &Value) -> String {
        let tool = if given["root"].is_string() {
            "start_controlled_change"
        } else {
            "finish_controlled_change"
        };
        let read = Request::read(tool, given.as_object().unwrap());
        let answer = read.and_then(|read| match read {
            Request::Start(start) => start.request("").map(|_| ()),
            Request::Finish(finish) => finish.request().map(|_| ()),
            _ => Ok(()),
        });
        answer.map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused_with_a_reason() {
        let scope = json!({ "allowed_files": ["a"] });
        let start = |more: Value| {
            let mut given = json!({ "root": ".", "intent": "x", "scope": scope });
            let more = more.as_object().unwrap().clone();
            given.as_object_mut().unwrap().extend(more);
            given
        };
        let cases = [
            (start(json!({})), "fine"),
            (
                json!({ "root": ".", "scope": scope }),
                "`intent` is required",
            ),
            (start(json!({ "intent": " " })), "`intent` is required"),
            (json!({ "root": ".", "intent": "x" }), "`scope` is required"),
            (
                start(json!({ "scope": { "allowed_files": [], "files": [] } })),
                "`scope/files` is an unknown field",
            ),
            (
                start(json!({ "scope": { "allowed_files": [1] } })),
                "`scope/allowed_files/0` is a number; string is asked for",
            ),
            (
                start(json!({ "on_conflict": "fight" })),
                "`on_conflict` is none of block, queue, null",
            ),
            (
                start(json!({ "ttl_seconds": "soon" })),
                "`ttl_seconds` is a string; integer or null is asked for",
            ),
            (json!({ "intent_id": "i", "changed_files": ["a"] }), "fine"),
            (
                json!({ "intent_id": "i", "changed_files": ["a"], "diff_ref": "HEAD" }),
                "give `changed_files` or `diff_ref`, not both",
            ),
            (
                json!({ "intent_id": "i" }),
                "say what was touched, by `changed_files` or by `diff_ref`",
            ),
            (
                json!({ "intent_id": "i", "changed_files": [] }),
                "`changed_files` names no file",
            ),
            (
                json!({ "intent_id": "i", "changed_files": ["a"], "claims_text": " " }),
                "the text of claims is empty",
            ),
        ];
        for (given, want) in cases {
            assert_eq!(refused(&given), want, "{given}");
        }
    }
}
