//! Reads the arguments of tools.

mod analysis;

use std::collections::BTreeSet;

use provost_core::intent::claims::ClaimText;
use provost_core::intent::request::{Evidence, FinishRequest, StartRequest, VerifyRequest, Wanted};
use provost_core::intent::scope::{ChangeScope, MOST};
use provost_core::intent::start::{DirtyPolicy, OnConflict};
use provost_core::structure::blast::Depth;
use provost_core::structure::budget::Strictness;
use provost_core::structure::health::Points;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::Detail;

pub use analysis::{Analysis, analysis, gates};

/// Arguments that a tool cannot use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgumentError(pub String);

/// The longest text that is read, in characters.
const LONGEST: usize = 20_000;

/// The longest name of a commit, in bytes.
const LONGEST_REV: usize = 1000;

/// The longest time that is accepted, in seconds: a year.
const LONGEST_TIME: i64 = 31_536_000;

/// The longest review that is stored, in characters.
const LONGEST_REVIEW: usize = 50_000;

fn wrong<T>(reason: impl Into<String>) -> Result<T, ArgumentError> {
    Err(ArgumentError(reason.into()))
}

/// Arguments by name; `null` counts as absent.
pub struct Arguments<'a> {
    given: &'a Map<String, Value>,
    known: BTreeSet<&'static str>,
}

impl<'a> Arguments<'a> {
    pub fn new(given: &'a Map<String, Value>) -> Self {
        Self {
            given,
            known: BTreeSet::new(),
        }
    }

    fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.insert(name);
        self.given.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&mut self, name: &'static str) -> Result<Option<&'a str>, ArgumentError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => wrong(format!("`{name}` is a text")),
        }
    }

    /// A text that is required.
    pub fn needed(&mut self, name: &'static str) -> Result<&'a str, ArgumentError> {
        match self.text(name)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            _ => wrong(format!("`{name}` is required")),
        }
    }

    pub fn list(&mut self, name: &'static str) -> Result<Option<Vec<String>>, ArgumentError> {
        match self.value(name) {
            None => Ok(None),
            Some(value) => texts(name, value).map(Some),
        }
    }

    pub fn flag(&mut self, name: &'static str, usual: bool) -> Result<bool, ArgumentError> {
        match self.value(name) {
            None => Ok(usual),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => wrong(format!("`{name}` is true or false")),
        }
    }

    /// A number of points.
    pub fn points(&mut self, name: &'static str) -> Result<Option<Points>, ArgumentError> {
        let points = self.value(name).map(Points::deserialize).transpose();
        points.or_else(|_| wrong(format!("`{name}` is a number of points")))
    }

    /// The format of a document.
    pub fn format(&mut self, usual: &'static str) -> Result<&'static str, ArgumentError> {
        match self.text("format")? {
            None => Ok(usual),
            Some("markdown") => Ok("markdown"),
            Some("structured" | "json") => Ok("structured"),
            Some(_) => wrong("`format` is markdown or structured"),
        }
    }

    /// A number of seconds.
    ///
    /// A value outside the limits of an intent is later clamped to them. A value that is no time is
    /// refused, so that an agent does not believe that it got what it asked for.
    pub fn seconds(&mut self, name: &'static str) -> Result<Option<i64>, ArgumentError> {
        match self.value(name) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(seconds) if (1..=LONGEST_TIME).contains(&seconds) => Ok(Some(seconds)),
                _ => wrong(format!(
                    "`{name}` is a whole number of seconds, from 1 to {LONGEST_TIME}"
                )),
            },
        }
    }

    /// Refuses arguments that were not read.
    pub fn end(self) -> Result<(), ArgumentError> {
        match self.rest().first() {
            None => Ok(()),
            Some(name) => wrong(format!("`{}` is no argument of this tool", shown(name))),
        }
    }

    /// The arguments that were not read.
    pub fn rest(&self) -> Vec<&'a str> {
        let names = self.given.keys().map(String::as_str);
        names.filter(|name| !self.known.contains(name)).collect()
    }

    pub fn strictness(&mut self) -> Result<Option<Strictness>, ArgumentError> {
        match self.text("strictness")? {
            None => Ok(None),
            Some(word) => match Strictness::parse(word) {
                Some(strictness) => Ok(Some(strictness)),
                None => wrong("`strictness` is ci, strict or relaxed"),
            },
        }
    }

    /// The touched paths; an error if both kinds are given, or if the list is empty.
    pub fn evidence(&mut self) -> Result<Option<Evidence>, ArgumentError> {
        let files = self.list("changed_files")?;
        let rev = self.text("diff_ref")?;
        if rev.is_some_and(|rev| rev.len() > LONGEST_REV) {
            return wrong(format!("`diff_ref` has more than {LONGEST_REV} bytes"));
        }
        match (files, rev) {
            (Some(_), Some(_)) => wrong("give `changed_files` or `diff_ref`, not both"),
            (Some(files), None) if files.is_empty() => wrong("`changed_files` names no file"),
            (Some(files), None) => Ok(Some(Evidence::Files(files))),
            (None, Some(rev)) => Ok(Some(Evidence::DiffRef(rev.to_owned()))),
            (None, None) => Ok(None),
        }
    }

    /// The touched paths, which are required.
    pub fn needed_evidence(&mut self) -> Result<Evidence, ArgumentError> {
        match self.evidence()? {
            Some(evidence) => Ok(evidence),
            None => wrong("say what was touched, by `changed_files` or by `diff_ref`"),
        }
    }
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

fn texts(name: &str, value: &Value) -> Result<Vec<String>, ArgumentError> {
    let Value::Array(list) = value else {
        return wrong(format!("`{name}` is a list of texts"));
    };
    if list.len() > MOST {
        return wrong(format!("`{name}` has more than {MOST} entries"));
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts: Option<Vec<String>> = list.iter().map(text).collect();
    texts.ok_or_else(|| ArgumentError(format!("`{name}` is a list of texts")))
}

/// Reads a scope, relative to the root `below` the top of the repository.
pub fn scope(value: &Value, below: &str) -> Result<ChangeScope, ArgumentError> {
    let Value::Object(fields) = value else {
        return wrong("`scope` is an object with `allowed_files`");
    };
    let mut list = Arguments::new(fields);
    let allowed = list.list("allowed_files")?;
    let related = list.list("allowed_related")?.unwrap_or_default();
    let forbidden = list.list("forbidden")?.unwrap_or_default();
    list.end()?;
    let Some(allowed) = allowed else {
        return wrong("`scope` needs `allowed_files`");
    };
    ChangeScope::parse(&allowed, &related, &forbidden, below)
        .map_err(|error| ArgumentError(error.to_string()))
}

/// Reads a request to start, for the root `below` the top of the repository.
pub fn start(
    given: &Map<String, Value>,
    below: &str,
) -> Result<(StartRequest, Detail), ArgumentError> {
    let mut arguments = Arguments::new(given);
    arguments.needed("root")?;
    let Some(value) = arguments.value("scope") else {
        return wrong("`scope` is required");
    };
    let scope = scope(value, below)?;
    let intent = arguments.needed("intent")?;
    if intent.chars().count() > LONGEST {
        return wrong(format!("`intent` has more than {LONGEST} characters"));
    }
    let on_conflict = match arguments.text("on_conflict")? {
        None | Some("block") => OnConflict::Block,
        Some("queue") => OnConflict::Queue,
        Some(_) => return wrong("`on_conflict` is block or queue"),
    };
    let policy = match arguments.text("dirty_scope_policy")? {
        None | Some("block") => DirtyPolicy::Block,
        Some("continue_own_wip") => DirtyPolicy::ContinueOwnWip,
        Some(_) => return wrong("`dirty_scope_policy` is block or continue_own_wip"),
    };
    let depth = depth(arguments.text("blast_radius_depth")?, Depth::Auto)?;
    let blast_detail = Detail::of(arguments.text("blast_radius_detail")?);
    let effects = arguments.list("expected_effects")?.unwrap_or_default();
    if effects
        .iter()
        .map(|text| text.chars().count())
        .sum::<usize>()
        > LONGEST
    {
        return wrong(format!(
            "`expected_effects` have more than {LONGEST} characters"
        ));
    }
    let request = StartRequest {
        root: below.to_owned(),
        scope,
        intent: intent.trim().to_owned(),
        expected_effects: effects,
        on_conflict,
        policy,
        strictness: arguments.strictness()?.unwrap_or_default(),
        ttl: arguments.seconds("ttl_seconds")?,
        depth,
    };
    arguments.end()?;
    Ok((request, blast_detail))
}

/// How far imports are followed.
pub fn depth(word: Option<&str>, usual: Depth) -> Result<Depth, ArgumentError> {
    match word.map(Depth::parse) {
        None => Ok(usual),
        Some(Some(depth)) => Ok(depth),
        Some(None) => wrong("the depth is direct, transitive or auto"),
    }
}

/// How a finish is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// The dirty files.
    pub hygiene: Detail,
    pub trail: Detail,
}

fn claim_text(text: Option<&str>) -> Result<Option<ClaimText>, ArgumentError> {
    match text.map(ClaimText::try_from).transpose() {
        Ok(text) => Ok(text),
        Err(error) => wrong(error.to_string()),
    }
}

pub fn finish(given: &Map<String, Value>) -> Result<(FinishRequest, Shown), ArgumentError> {
    let mut arguments = Arguments::new(given);
    let wanted = |flag| if flag { Wanted::Yes } else { Wanted::No };
    let request = FinishRequest {
        intent_id: arguments.needed("intent_id")?.to_owned(),
        evidence: arguments.needed_evidence()?,
        after_run: arguments.text("after_run_id")?.map(str::to_owned),
        review: arguments.text("review_text")?.map(str::to_owned),
        claims: claim_text(arguments.text("claims_text")?)?,
        receipt: wanted(arguments.flag("create_receipt", true)?),
        clear: wanted(arguments.flag("auto_clear", true)?),
        strictness: arguments.strictness()?,
    };
    let review = request.review.as_deref().unwrap_or_default();
    if review.chars().count() > LONGEST_REVIEW {
        return wrong(format!(
            "`review_text` has more than {LONGEST_REVIEW} characters"
        ));
    }
    // Provost stores nothing beyond the evidence, so the flag has no effect.
    arguments.flag("propose_memory", false)?;
    let shown = Shown {
        hygiene: Detail::of(arguments.text("detail_level")?),
        trail: Detail::of(arguments.text("patch_trail_detail")?),
    };
    arguments.end()?;
    Ok((request, shown))
}

/// A request about a patch contract.
#[derive(Debug, Clone)]
pub enum Contract {
    /// What may become worse.
    Budget {
        run: Option<String>,
        /// The intent that the budget is for.
        intent_id: Option<String>,
        strictness: Strictness,
    },
    /// What became worse.
    Verify(VerifyRequest),
}

pub fn contract(given: &Map<String, Value>) -> Result<Contract, ArgumentError> {
    let mut arguments = Arguments::new(given);
    let mode = arguments.needed("mode")?;
    let run = arguments.text("run_id")?.map(str::to_owned);
    let before_run = arguments.text("before_run_id")?.map(str::to_owned);
    let after_run = arguments.text("after_run_id")?.map(str::to_owned);
    let intent_id = arguments.text("intent_id")?.map(str::to_owned);
    let strictness = arguments.strictness()?;
    let evidence = arguments.evidence()?;
    arguments.end()?;
    match mode {
        "budget" => Ok(Contract::Budget {
            run: run.or(before_run),
            intent_id,
            strictness: strictness.unwrap_or_default(),
        }),
        "verify" => Ok(Contract::Verify(VerifyRequest {
            intent_id,
            before_run: before_run.or(run),
            after_run,
            evidence,
            strictness,
        })),
        _ => wrong("`mode` is budget or verify"),
    }
}

/// A request about claims.
#[derive(Debug, Clone, Copy)]
pub struct Claims<'a> {
    /// The text with the claims.
    pub text: &'a str,
    /// The run that the text is about.
    pub run: Option<&'a str>,
    /// Whether a text without a citation gets a warning.
    pub wants_citations: bool,
    /// By how much the health changed, if the caller says so.
    pub health_delta: Option<Points>,
}

pub fn claims(given: &Map<String, Value>) -> Result<Claims<'_>, ArgumentError> {
    let mut arguments = Arguments::new(given);
    let claims = Claims {
        text: arguments.text("text")?.unwrap_or_default(),
        run: arguments.text("run_id")?,
        wants_citations: arguments.flag("require_citations", true)?,
        health_delta: arguments.points("patch_health_delta")?,
    };
    arguments.end()?;
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(value: Value) -> String {
        let Value::Object(given) = value else {
            return "no object".to_owned();
        };
        let answer = if given.contains_key("root") {
            start(&given, "").map(|_| ())
        } else {
            finish(&given).map(|_| ())
        };
        answer.map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn a_time_is_a_whole_number_of_seconds() {
        let mut given = Map::new();
        for (value, want) in [
            (json!(null), Some(None)),
            (json!(1), Some(Some(1))),
            (json!(86_400), Some(Some(86_400))),
            (json!(100_000), Some(Some(100_000))),
            (json!(0), None),
            (json!(-60), None),
            (json!(60.5), None),
            (json!(60.0), None),
            (json!(1_000_000_000_000_i64), None),
            (json!(u64::MAX), None),
            (json!("60"), None),
            (json!(true), None),
        ] {
            given.insert("ttl_seconds".to_owned(), value.clone());
            let read = Arguments::new(&given).seconds("ttl_seconds");
            assert_eq!(read.ok(), want, "{value}");
        }
    }

    #[test]
    fn arguments_that_make_no_sense_are_refused_with_a_reason() {
        let scope = json!({ "allowed_files": ["a"] });
        let cases = [
            (
                json!({ "root": ".", "scope": scope, "intent": "x" }),
                "fine",
            ),
            (
                json!({ "root": ".", "scope": scope }),
                "`intent` is required",
            ),
            (json!({ "root": ".", "intent": "x" }), "`scope` is required"),
            (
                json!({ "root": ".", "intent": "x", "scope": { "files": [] } }),
                "`files` is no argument of this tool",
            ),
            (
                json!({ "root": ".", "intent": "x", "scope": { "allowed_files": [1] } }),
                "`allowed_files` is a list of texts",
            ),
            (
                json!({ "root": ".", "intent": "x", "scope": scope, "on_conflict": "fight" }),
                "`on_conflict` is block or queue",
            ),
            (
                json!({ "root": ".", "intent": "x", "scope": scope, "ttl_seconds": "soon" }),
                "`ttl_seconds` is a whole number of seconds, from 1 to 31536000",
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
            assert_eq!(refused(given.clone()), want, "{given}");
        }
    }
}
