//! What every gate says when it refuses, and what `why` proposes.

use crate::{run, stage};

/// A script that leaves `report` where a result is expected.
fn leaves(report: &str) -> String {
    format!("echo good > src/a.txt; cat > $PROVOST_RESULT <<'END'\n{report}\nEND\n")
}

/// Runs `script` under contract, which a gate must refuse, and says all that is said about it.
fn refusal(script: &str, more: &[&str]) -> Option<String> {
    let stage = stage()?;
    let agent = stage.agent(script);
    let mut transcript = stage.transcript();
    let words = run(&agent, more);
    let outcome = transcript.plain(&words);
    assert_eq!(outcome.exit, 1, "{outcome:?}");
    transcript.both(&["why"]);
    transcript.plain(&["show"]);
    transcript.json(&words);
    Some(transcript.text())
}

/// One test for each refusal.
macro_rules! refusals {
    ($($name:ident: $script:expr, $more:expr;)*) => {$(
        #[test]
        fn $name() {
            let Some(text) = refusal($script, $more) else { return };
            insta::assert_snapshot!(text);
        }
    )*};
}

refusals! {
    nothing_changed_is_refused: "true", &[];
    a_path_out_of_scope_is_refused: "echo x > docs/readme.md; echo good > src/a.txt", &[];
    an_oracle_file_is_refused: "echo x > src/tox.ini; echo good > src/a.txt", &[];
    a_governing_file_is_refused: "echo x > src/AGENTS.md; echo good > src/a.txt", &[];
    binary_content_is_refused: "printf 'a\\0b' > src/a.txt", &[];
    a_symbolic_link_is_refused: "ln -s /etc/passwd src/link; echo good > src/a.txt", &[];
    red_tests_is_refused: "echo bad > src/a.txt", &[];
    an_agent_that_fails_is_refused: "echo broken >&2; exit 3", &[];
    an_agent_that_is_late_is_refused: "sleep 20", &["--timeout", "1s"];
    a_secret_in_the_patch_is_refused: "echo key=AKIAIOSFODNN7EXAMPLF > src/a.txt", &["--accept", "true"];
    a_command_that_does_not_exist_is_refused: "echo good > src/a.txt", &["--accept", "no-such-program"];
    a_failure_that_the_agent_reports_is_refused: &leaves(concat!(
        r#"{"task_id":"run","status":"FAILED","summary":"no luck","evidence_refs":{},"#,
        r#""failure":{"message":"the model gave up"}}"#
    )), &[];
    a_result_that_is_none_is_refused: &leaves("{}"), &[];
}

#[test]
fn a_reviewer_refuses_or_is_not_believed() {
    let Some(stage) = stage() else { return };
    let report = concat!(
        r#"{"verdict":"FAIL","summary":"I looked.","violations":[],"#,
        r#""findings":[{"path":"src/a.txt","problem":"it is short"}]}"#
    );
    let mut transcript = stage.transcript();
    for script in [
        format!("cat > $PROVOST_RESULT <<'END'\n{report}\nEND\n"),
        "echo looks good to me".to_owned(),
    ] {
        stage.write("agent/reviewer.sh", &script);
        let reviewer = format!("sh {}", stage.path("agent/reviewer.sh").display());
        let agent = stage.agent("echo good > src/a.txt");
        transcript.plain(&run(&agent, &["--review-cmd", &reviewer]));
        transcript.both(&["why"]);
        transcript.both(&["show"]);
    }
    insta::assert_snapshot!(transcript.text());
}

/// Command lines that cannot be served; `AGENT` stands for one that does nothing.
#[cfg(feature = "formats")]
const WRONG: &[&str] = &[
    "",
    "rnu",
    "run",
    "run x --allow src --accept true",
    "run x --allow ../src --accept true --agent-cmd AGENT",
    "run x --allow src --accept true --agent nemo",
    "run x --allow src --accept 'b --agent-cmd AGENT",
    "run x --allow src --accept true --agent-cmd AGENT --base nowhere",
    "run x --allow src --accept true --agent-cmd AGENT --timeout soon",
    "run -f nowhere.json --agent-cmd AGENT",
    "show run_nothing",
    "show",
    "why",
    "diff",
    "log",
    "land",
    "land last",
    "retry",
    "cancel last",
    "approve last",
    "verify nowhere",
    "replay",
    "export --as junit",
    "salvage restore last",
    "lease release last",
    "chain -f nowhere.json --agent-cmd AGENT",
    "shell",
    "check contract nowhere.json",
    "convert nowhere.json",
    "package derive nowhere.json",
];

#[cfg(feature = "formats")]
#[test]
fn a_wrong_request_is_answered_with_what_helps() {
    let Some(stage) = stage() else { return };
    let mut transcript = stage.transcript();
    let agent = stage.agent("true");
    for line in WRONG {
        let words = line.split_whitespace();
        let words = words.map(|word| if word == "AGENT" { &agent } else { word });
        transcript.plain(&words.collect::<Vec<&str>>());
    }
    for words in [
        &["rnu"][..],
        &["show", "run_nothing"],
        &["verify", "nowhere"],
    ] {
        transcript.json(words);
    }
    insta::assert_snapshot!(transcript.text());
}
