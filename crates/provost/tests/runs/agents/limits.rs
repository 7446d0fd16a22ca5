//! Agents that spend too much, or whose model does not answer.

use serde_json::json;

use super::stage::{AgentStage, PROGRAMS, STARTS, Way};

#[test]
fn an_agent_that_spends_too_much_is_refused() {
    for (program, more) in STARTS {
        let turns = json!([
            { "shell": "echo good > src/a.txt" },
            { "shell": "sleep 2; true", "tokens": 250_000 },
            { "text": "done" }
        ]);
        let Some(stage) = AgentStage::new(
            program,
            Way::Plain,
            &turns,
            &format!("max_tokens = 200000\n{more}"),
        ) else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("TOKEN_LIMIT", 1),
            "{outcome:?}"
        );
        let reason = outcome.json.pointer("/verdict/reason").unwrap();
        assert!(
            reason.as_str().unwrap().contains("tokens of 200000"),
            "{reason}"
        );
        let salvaged = outcome.json["salvaged"].as_array().map(Vec::len);
        let captured = outcome.json["tree"].is_string();
        assert!(
            salvaged == Some(1) || captured,
            "the work is kept: {outcome:?}"
        );
    }
}

#[test]
fn an_agent_whose_model_refuses_has_failed_and_says_why() {
    for program in PROGRAMS {
        // Both try again a few times.
        let turns = json!(vec![json!({ "status": 400 }); 40]);
        let Some(stage) = AgentStage::new(program, Way::Plain, &turns, "") else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("AGENT_FAILED", 1),
            "{outcome:?}"
        );
        let reason = outcome.json.pointer("/verdict/reason").unwrap();
        assert!(
            reason.as_str().unwrap().contains("no such model"),
            "{reason}"
        );
    }
}
