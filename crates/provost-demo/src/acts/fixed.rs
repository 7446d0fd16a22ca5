//! The acts of the second task: a reviewer that refuses, an attempt that fixes, a target that
//! moved.

use std::fs;
use std::path::Path;

use provost_core::json;
use provost_core::run::fact::Ending;
use serde_json::Value;

use super::{ComparedFacts, Played, code, text};
use crate::stage::{Stage, Trouble, WORDS};

/// Runs an agent that fixes its work after its reviewer refused the first attempt.
pub(super) fn fixed(stage: &mut Stage) -> Result<Played, Trouble> {
    let reviewer = stage.shell("reviewer.sh", &[]);
    let more = ["--review-cmd", &reviewer, "--retries", "1"];
    let answer = stage.ask(&WORDS, &stage.shell("hasty.sh", &[]), &more)?;
    let first = &answer["refused_before"][0];
    let review = &answer["review"];
    let tests = &answer["tests"]["compared_with_base"];
    let played = Played {
        rows: vec![
            (
                "attempt 1",
                format!("{}: {}", text(&first["code"]), reviewed(first)),
            ),
            (
                "attempt 2",
                format!("{}: {}", text(&review["verdict"]), text(&review["summary"])),
            ),
            ("tests", format!("{}: {}", text(tests), WORDS.accept)),
        ],
        word: "accepted",
        outcome: format!("on the branch {}", text(&answer["branch"])),
        facts: ComparedFacts::default()
            .with("code", "OK", code(&answer))
            .with(
                "attempts",
                2,
                answer["attempts"].as_u64().unwrap_or_default(),
            )
            .with("first", "REVIEW_REFUSED", text(&first["code"]))
            .with("review", "PASS", text(&review["verdict"]))
            .with(
                "reviewed",
                "the tree that was tested",
                which(&review["tree"], &answer["tree"]),
            )
            .with("tests", "red→green", text(tests)),
    };
    stage.fixed = answer;
    Ok(played)
}

/// What a reviewer reported, without the constant beginning of the reason.
fn reviewed(refused: &Value) -> &str {
    let reason = text(&refused["reason"]);
    reason.split_once(": ").map_or(reason, |(_, said)| said)
}

fn which(reviewed: &Value, tested: &Value) -> &'static str {
    if reviewed.is_string() && reviewed == tested {
        "the tree that was tested"
    } else {
        "another tree than was tested"
    }
}

/// Lands the second result on a branch that the first landing has moved.
pub(super) fn moved(stage: &mut Stage) -> Result<Played, Trouble> {
    let run_id = text(&stage.fixed["run_id"]).to_owned();
    let bundle = text(&stage.fixed["bundle"]).to_owned();
    let landed = stage.provost(&["land", &run_id])?;
    let records = records(&Path::new(&bundle).join("after.jsonl"))?;
    let payload = |kind: &str| {
        let found = records.iter().find(|record| record["event_type"] == kind);
        found.map_or(Value::Null, |record| record["payload"].clone())
    };
    let (started, tested) = (payload("TEST_STARTED"), payload("TEST_RESULT"));
    let is_merge = landed["tree"].is_string() && landed["tree"] != stage.fixed["tree"];
    let tested_first = is_merge && started["tree"] == landed["tree"];
    let ending: Option<Ending> = json::from_value(&tested["commands"][0]["ending"]).ok();
    let both = ["src/slug.sh", "src/words.sh"].map(|name| stage.differs(Path::new(name)));
    let [slug, words] = both;
    let again = stage.provost(&["verify", &bundle])?;
    let commit = text(&landed["commit"]);
    let result = if ending == Some(Ending::Exited(0)) {
        "passes"
    } else {
        "does not pass"
    };
    Ok(Played {
        rows: vec![
            (
                "merged",
                if is_merge {
                    "a tree that was never tested"
                } else {
                    "nothing"
                }
                .to_owned(),
            ),
            ("tests", format!("{} {result} on the merge", WORDS.accept)),
        ],
        word: "landed",
        outcome: format!(
            "{} is at {}, with both results",
            text(&landed["target"]).trim_start_matches("refs/heads/"),
            commit.get(..10).unwrap_or(commit)
        ),
        facts: ComparedFacts::default()
            .with("target", "refs/heads/main", text(&landed["target"]))
            .with(
                "parent_moved",
                true,
                landed["parent"] != stage.fixed["base"],
            )
            .with("tested_before_landing", true, tested_first)
            .with("ending", Some(Ending::Exited(0)), ending)
            .with("both_results", [true, true], [slug?, words?])
            .with("verified_after", "OK", text(&again["code"])),
    })
}

/// The JSON values of a file of JSON lines.
fn records(path: &Path) -> Result<Vec<Value>, Trouble> {
    let trouble = |what: &dyn std::fmt::Display| format!("`{}`: {what}", path.display());
    let lines = fs::read_to_string(path).map_err(|error| trouble(&error))?;
    let parse = |line| serde_json::from_str::<Value>(line).map_err(|error| trouble(&error));
    lines.lines().map(parse).collect()
}
