//! Models that refuse the key, or that are not there: it is said at once, and ends the attempt.

use std::time::{Duration, Instant};

use serde_json::json;

use super::review;
use super::stage::{APP_SERVER, AgentStage, Program, STARTS, Way};

#[test]
fn a_refused_key_is_said_at_once_and_ends_the_attempt() {
    refused_keys(&[(Program::Claude, "", 401), (Program::Claude, "", 403)]);
}

#[test]
fn a_refused_key_ends_the_attempt_of_other_programs_too() {
    refused_keys(&[
        (Program::Codex, "", 401),
        (Program::Codex, APP_SERVER, 401),
        (Program::Gemini, "", 403),
    ]);
}

fn refused_keys(cases: &[(Program, &str, u16)]) {
    for (program, more, status) in cases.iter().copied() {
        let turns = json!(vec![json!({ "status": status }); 40]);
        let Some(stage) = AgentStage::new(program, Way::Plain, &turns, more) else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(
            outcome.code(),
            "MODEL_UNAUTHORIZED",
            "{program:?} {outcome:?}"
        );
        let reason = outcome.json.pointer("/verdict/reason").unwrap();
        let reason = reason.as_str().unwrap();
        let key = format!("${}", program.variable());
        for words in [&status.to_string(), "no such model", &key, &stage.place] {
            assert!(reason.contains(words), "{words}: {reason}");
        }
        // From the answer of the model to the end of the agent.
        let asked = stage.answered().expect("the model was asked");
        let took = stage.agent_ended(outcome.text("run_id")) - asked;
        assert!(took < 2.0, "{program:?}: {took} s");
        let why = stage.inner.ask(&["why", outcome.text("run_id")]);
        let why = String::from_utf8_lossy(&why.stdout);
        assert!(!why.contains("timeout"), "{}", why);
        assert!(why.contains("key"), "{}", why);
    }
}

#[test]
fn a_reviewer_whose_key_is_refused_is_ended_and_the_cause_is_said() {
    let turns = json!(vec![json!({ "status": 401 }); 40]);
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, "") else {
        return;
    };
    let outcome = review::review(&stage);
    assert_eq!(outcome.code(), "MODEL_UNAUTHORIZED", "{outcome:?}");
    let reason = outcome.json.pointer("/verdict/reason").unwrap();
    assert!(reason.as_str().unwrap().contains("reviewer"), "{reason}");
}

#[test]
fn a_model_that_is_not_there_ends_the_attempt_and_says_so() {
    absent_models(&STARTS[2..]);
}

#[test]
fn a_model_of_codex_that_is_not_there_ends_the_attempt_too() {
    absent_models(&STARTS[..2]);
}

fn absent_models(starts: &[(Program, &str)]) {
    for (program, more) in starts.iter().copied() {
        let Some(mut stage) = AgentStage::new(program, Way::Plain, &json!([]), more) else {
            return;
        };
        stage.stop_model();
        let began = Instant::now();
        let outcome = stage.run();
        assert_eq!(
            outcome.code(),
            "MODEL_UNREACHABLE",
            "{program:?} {outcome:?}"
        );
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
        let reason = outcome.json.pointer("/verdict/reason").unwrap();
        let reason = reason.as_str().unwrap();
        assert!(reason.contains("refused the connection"), "{reason}");
        assert!(reason.contains(&stage.place), "{reason}");
    }
}

#[test]
fn a_model_that_is_busy_is_asked_again() {
    // Gemini CLI waits for long before it asks again.
    for (program, more, status) in [
        (Program::Codex, "", 503),
        (Program::Codex, APP_SERVER, 503),
        (Program::Claude, "", 529),
    ] {
        let turns = json!([{ "status": status },
            { "shell": "echo good > src/a.txt" }, { "text": "done" }]);
        let Some(stage) = AgentStage::new(program, Way::Plain, &turns, more) else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
    }
}

#[test]
fn what_a_program_says_of_a_model_behind_tls_ends_the_attempt_too() {
    for (program, more) in &STARTS[..3] {
        let (program, more) = (*program, *more);
        let turns = json!(vec![json!({ "status": 401 }); 40]);
        let Some(stage) = AgentStage::new(program, Way::Tunnel, &turns, more) else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(
            outcome.code(),
            "MODEL_UNAUTHORIZED",
            "{program:?} {outcome:?}"
        );
        assert_eq!(outcome.json["usage"]["counted"], false, "{outcome:?}");
        let Some(mut stage) = AgentStage::new(program, Way::Tunnel, &turns, more) else {
            return;
        };
        stage.stop_model();
        let outcome = stage.run();
        assert_eq!(
            outcome.code(),
            "MODEL_UNREACHABLE",
            "{program:?} {outcome:?}"
        );
    }
}
