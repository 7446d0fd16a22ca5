//! One contract for several agents.

use crate::stage::Stage;

const POLICY: &str = "[agents.good]\ncommand = \"sh good.sh\"\n\
    [agents.bad]\ncommand = \"sh bad.sh\"\n";

#[test]
fn several_agents_are_compared_and_one_lands() {
    let stage = Stage::new();
    stage.commit(&[
        ("good.sh", "echo good > src/a.txt; echo more > src/new.txt"),
        ("bad.sh", "echo bad > src/a.txt"),
        ("provost.toml", POLICY),
    ]);
    let words = [
        "run",
        "make it good",
        "--allow",
        "src",
        "--accept",
        "sh check.sh",
        "--agent",
        "bad",
        "--agent=good",
    ];
    let outcome = stage.ask(&words);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0][..4], ["RUN", "AGENT", "OUTCOME", "DIFF"], "{text}");
    assert_eq!(
        lines[1][1..7],
        ["bad", "ACCEPTANCE_FAILED", "1", "file", "+1", "-1"],
        "{text}"
    );
    assert_eq!(
        lines[2][1..7],
        ["good", "ACCEPTED", "2", "files", "+2", "-1"],
        "{text}"
    );
    let winner = lines[2][0];
    assert!(text.contains(&format!("provost land {winner}\n")), "{text}");
    assert!(outcome.stderr.contains("agent bad (1 of 2)"), "{outcome:?}");
    let landed = stage.ask(&["land", winner]);
    assert_eq!(landed.exit, 0, "{landed:?}");

    let both = [&words[..], &["--json"]].concat();
    let outcome = stage.ask(&both);
    let runs = outcome.json["runs"].as_array().unwrap();
    let agents: Vec<_> = runs
        .iter()
        .map(|run| run["agent"].as_str().unwrap())
        .collect();
    assert_eq!(agents, ["bad", "good"], "{outcome:?}");
    assert!(
        runs[0]["run_id"].as_str().unwrap().starts_with("run_"),
        "{outcome:?}"
    );

    // An agent that does not exist has a row, and the others still run.
    let missing = [&words[..6], &["--agent", "nemo", "--agent", "bad"]].concat();
    let outcome = stage.ask(&missing);
    assert_eq!(outcome.exit, 1, "{outcome:?}");
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(text.contains("nemo   NOT_BEGUN"), "{text}");
    let detached = stage.ask(&[&words[..], &["--detach"]].concat());
    assert_eq!(detached.exit, 2, "{detached:?}");
}
