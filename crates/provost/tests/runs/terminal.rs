//! What a person sees while a run is active: on a terminal, and in a log.

use crate::stage::{Ask, Outcome, Stage, lacks, run_arguments};

/// An agent that tries to speak to the terminal, and takes long enough to be seen.
const LOUD: &str = "printf '\\033[31mred\\033[0m \\033]0;owned\\007line of an agent \
    that goes on and on beyond the end of any terminal\\n'; sleep 1.5; echo good > src/a.txt";

/// Runs `LOUD` on a terminal of 80 columns.
fn on_terminal(stage: &Stage) -> Outcome {
    let agent = stage.agent(LOUD);
    let ask = Ask {
        accept: "sh slow.sh",
        ..Ask::default()
    };
    let mut words = vec![env!("CARGO_BIN_EXE_provost").to_owned()];
    let arguments = run_arguments(&agent, &ask).into_iter();
    words.extend(
        arguments
            .filter(|word| *word != "--json")
            .map(str::to_owned),
    );
    let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let mut command = stage.command("script");
    let inner = format!("stty cols 80; exec {}", line.join(" "));
    command.args(["-q", "-e", "-c", &inner, "/dev/null"]);
    stage.spawn(command).wait()
}

#[test]
fn a_terminal_has_one_line_that_changes_and_stays_within_it() {
    if lacks("script") {
        return;
    }
    let stage = Stage::new();
    stage.commit(&[("slow.sh", "echo testing now >&2; sleep 1.2; sh check.sh\n")]);
    let outcome = on_terminal(&stage);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    let seen = String::from_utf8(outcome.stdout).unwrap();
    let shown: Vec<&str> = seen.split("\r\x1b[J").collect();
    let has = |parts: &[&str]| {
        let all = |line: &&&str| parts.iter().all(|part| line.contains(part));
        shown.iter().any(|line| all(&line))
    };
    assert!(
        has(&["agent is working 1s (in all ", "s) red line of an", "…"]),
        "{seen:?}"
    );
    assert!(
        has(&["commands on the candidate: accept-1 1s", "testing now"]),
        "{seen:?}"
    );
    assert!(
        !seen.contains("\x1b[31m") && !seen.contains("owned"),
        "{seen:?}"
    );
    // A line that changes ends where the next one begins; lasting ones end with a line feed.
    for line in shown.iter().filter(|line| !line.contains('\n')) {
        assert!(line.chars().count() < 80, "{line:?}");
    }
    assert!(seen.contains("accepted: "), "{seen:?}");
}

#[test]
fn a_log_has_one_plain_line_for_each_phase() {
    let stage = Stage::new();
    let agent = stage.agent(LOUD);
    let mut words = run_arguments(&agent, &Ask::default());
    words.retain(|word| *word != "--json");
    let outcome = stage.ask(&words);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    assert!(!outcome.stderr.contains(['\r', '\x1b']), "{outcome:?}");
    for phase in [
        "agent is working …",
        "acceptance commands on the candidate …",
    ] {
        let lines = outcome.stderr.lines().filter(|line| *line == phase);
        assert_eq!(lines.count(), 1, "{phase}: {outcome:?}");
    }
}
