//! What people see of an agent: its claim beside the fact, while it works, and as a transcript.

use std::time::{Duration, Instant};

use provost_testkit::transcript::shown_at_the_end;
use serde_json::json;

use super::stage::{AgentStage, KEY, PROGRAMS, Program, Way};
use crate::stage::{lacks, until};

/// Far into the JSON of the stream.
const CLAIM: &str = "I rewrote the greeting and ran the whole suite twice. All 12 tests pass.";

fn words(stage: &AgentStage) -> Vec<String> {
    let credential = stage.credential();
    let words = [
        "run",
        "make it good",
        "--agent",
        "it",
        "--allow",
        "src",
        "--accept",
        "sh check.sh",
        "--credential",
        &credential,
    ];
    words.map(str::to_owned).to_vec()
}

fn text(outcome: &crate::stage::Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

#[test]
fn the_claim_of_an_agent_stands_beside_the_fact() {
    for program in PROGRAMS {
        for (work, code) in [
            (
                "echo bad > src/a.txt; echo one; echo two",
                "ACCEPTANCE_FAILED",
            ),
            ("true", "EMPTY_DIFF"),
        ] {
            let turns = json!([{ "shell": work }, { "text": CLAIM }]);
            let Some(stage) = AgentStage::new(program, Way::Plain, &turns, "") else {
                return;
            };
            let words = words(&stage);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let outcome = stage.ask(&words);
            let said = text(&outcome);
            // Its first lines, whatever their breaks.
            let lines: Vec<&str> = said.lines().map(str::trim).take(4).collect();
            let first = lines.join(" ");
            assert!(first.contains(&format!("said: \"{CLAIM}\"")), "{said}");
            assert!(first.contains(&format!("refused[{code}]: ")), "{said}");
            assert!(first.contains(" next: provost "), "{said}");
            assert!(
                !said.contains("{\"type\""),
                "the stream is for programs: {said}"
            );
            let log = text(&stage.ask(&["log", "--agent"]));
            assert!(log.contains("tool      shell "), "{program:?}: {log}");
            assert!(log.contains(&format!("agent     {CLAIM}\n")), "{log}");
            assert_eq!(log.matches(CLAIM).count(), 1, "{log}");
            if code == "ACCEPTANCE_FAILED" {
                assert!(log.contains("result    "), "{program:?}: {log}");
            }
        }
    }
}

#[test]
fn a_terminal_shows_an_agent_at_work_and_nothing_of_that_at_the_end() {
    if lacks("script") {
        return;
    }
    let turns = json!([
        { "shell": "echo good > src/a.txt" },
        { "shell": "sleep 3" },
        { "text": "It is good." }
    ]);
    let more = "max_tokens = 1000000";
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, more) else {
        return;
    };
    let program = env!("CARGO_BIN_EXE_provost");
    let quoted = words(&stage).into_iter().map(|word| format!("'{word}'"));
    let line = quoted.collect::<Vec<String>>().join(" ");
    let inner = format!("stty cols 60 rows 24; exec '{program}' {line}");
    let mut command = stage.inner.command("script");
    command.args(["-q", "-e", "-c", &inner, "/dev/null"]);
    let path = format!(
        "{}:/usr/local/bin:/usr/bin:/bin",
        stage.programs().display()
    );
    command.env("PATH", path).env("TERM", "xterm");
    command.env(stage.program.variable(), KEY);
    let running = stage.inner.spawn(command);
    let line = || text(&stage.ask(&["status", "--line"]));
    until("the agent waits", || {
        text(&stage.ask(&["status"])).contains("sleep 3")
    });
    assert_status(&stage);
    let follow = text(&stage.ask(&["log", "--agent", "--follow"]));
    assert!(follow.contains("agent     It is good.\n"), "{follow}");
    let outcome = running.wait();
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    assert_shown(&text(&outcome));
    assert_eq!(line(), "", "nothing is active");
}

/// The status of the run while its agent waits.
fn assert_status(stage: &AgentStage) {
    let began = Instant::now();
    let now = text(&stage.ask(&["status", "--line"]));
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert!(
        now.contains("agent is working") && now.contains(" tokens of 1000000"),
        "{now}"
    );
    assert_eq!(now.lines().count(), 1, "{now}");
    let status = text(&stage.ask(&["status"]));
    for part in [
        "step     agent is working",
        "tool     shell sleep 3",
        "scope    src",
        "spent    ",
    ] {
        assert!(status.contains(part), "{part}: {status}");
    }
}

/// What a terminal of 60 columns showed.
fn assert_shown(seen: &str) {
    for part in [
        "agent is working",
        "  tool     shell sleep 3",
        "  spent    ",
    ] {
        assert!(seen.contains(part), "{part}: {seen:?}");
    }
    for line in seen
        .split(['\r', '\n'])
        .filter(|line| !line.contains("provost"))
    {
        let shown: String = line.chars().filter(|it| !it.is_control()).collect();
        assert!(shown.chars().count() < 70, "{shown:?}");
    }
    let end = shown_at_the_end(seen);
    assert!(
        !end.contains("is working") && !end.contains("sleep 3"),
        "{end}"
    );
    assert!(end.contains("accepted:"), "{end}");
}
