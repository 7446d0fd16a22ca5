//! The programs in attempts that fix: they continue their conversation.

use serde_json::json;

use super::offered;
use super::stage::{AgentStage, Program, STARTS, Way};

#[test]
fn a_conversation_continues_where_its_work_was_refused() {
    continues(&STARTS[1..]);
}

#[test]
fn a_conversation_of_codex_exec_continues_too() {
    continues(&STARTS[..1]);
}

fn continues(starts: &[(Program, &str)]) {
    for (program, more) in starts.iter().copied() {
        let turns = json!([
            { "shell": "echo worse > src/a.txt" },
            { "text": "done" },
            { "shell": "echo good > src/a.txt" },
            { "text": "fixed" },
        ]);
        let Some(stage) = AgentStage::new(program, Way::Plain, &turns, more) else {
            return;
        };
        let credential = stage.credential();
        let outcome = stage.run_with(&[
            "make it good",
            "--allow",
            "src",
            "--accept",
            "sh check.sh",
            "--retries",
            "1",
            "--credential",
            &credential,
        ]);
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
        assert_eq!(outcome.json["attempts"], 2);
        // What is continued is started in another way.
        offered::check(&stage, 4);
        let requests = stage.requests();
        let third = requests[2]["request"].to_string();
        assert!(third.contains("echo worse"), "{program:?} forgot: {third}");
        assert!(third.contains("What came of it so far"), "{program:?}");
        assert_eq!(stage.inner.verify(outcome.text("run_id")).exit, 0);
    }
}
