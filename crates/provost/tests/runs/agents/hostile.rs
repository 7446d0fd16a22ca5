//! Agents whose model asks for what the contract forbids.

use serde_json::json;

use super::stage::{AgentStage, PROGRAMS, Program, Way, traffic};

/// Writes the main checkout, reads a secret, calls out, fakes the check; and the work.
const MISCHIEF: &str = "echo owned > @REPO@/src/a.txt; echo owned > @OUTSIDE@/canary; \
    cat @OUTSIDE@/secret @HOME@/.codex/auth.json; curl -s -m 5 https://evil.example.com/; \
    echo exit 0 > check.sh; mv check.sh gone.sh; echo 'true' > check.sh; \
    echo owned > docs/readme.md; echo good > src/a.txt";

#[test]
fn mischief_is_refused_and_reaches_nothing() {
    for program in PROGRAMS {
        let turns = json!([{ "shell": MISCHIEF }, { "text": "All tests pass." }]);
        let Some(stage) = AgentStage::prepared(program, &turns) else {
            return;
        };
        let before = stage.inner.surroundings();
        let outcome = stage.run();
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("DIFF_REFUSED", 1),
            "{outcome:?}"
        );
        assert_eq!(before.differences(&stage.inner.surroundings()), [""; 0]);
        let paths: Vec<String> = outcome.findings().into_iter().map(|it| it.1).collect();
        for path in ["check.sh", "docs/readme.md"] {
            assert!(paths.iter().any(|it| it == path), "{path}: {paths:?}");
        }
        let run = outcome.text("run_id");
        assert!(
            !stage.inner.printed_in(run).contains("xyzzy"),
            "{program:?}"
        );
        let refused = json!(["CONNECT", "evil.example.com:443", "NETWORK_REFUSED"]);
        assert!(traffic(&outcome).contains(&refused), "{outcome:?}");
        assert_eq!(stage.inner.verify(run).exit, 0);
    }
}

#[test]
fn a_policy_alone_sends_no_key_anywhere() {
    let turns = json!([]);
    let Some(stage) = AgentStage::new(Program::Codex, Way::Plain, &turns, "") else {
        return;
    };
    let outcome = stage.run_with(&["it", "--allow", "src", "--accept", "sh check.sh"]);
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("USAGE_ERROR", 2),
        "{outcome:?}"
    );
    let reason = outcome.text("reason");
    assert!(reason.contains(&stage.credential()), "{reason}");
    assert!(stage.inner.runs().is_empty() && stage.requests().is_empty());
}
