//! What agents spend is kept by day for the user, and bounds the next agent.

use serde_json::json;

use super::stage::{AgentStage, PROGRAMS, Program, Way};

fn stage(program: Program, more: &str) -> Option<AgentStage> {
    let turns = json!([
        { "shell": "echo good > src/a.txt", "tokens": 1000 },
        { "text": "done" },
    ]);
    AgentStage::new(program, Way::Plain, &turns, more)
}

#[test]
fn the_day_of_a_user_is_added_up_and_its_limit_refuses_the_next_run() {
    let Some(stage) = stage(Program::Claude, "") else {
        return;
    };
    let outcome = stage.run();
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let tokens = |by: &str| {
        let spent = stage.inner.ask(&["spend", "--by", by, "--json"]);
        let rows = spent.json.as_array().unwrap().clone();
        assert_eq!(rows.len(), 1, "{spent:?}");
        assert_eq!(rows[0]["estimated"], 0, "{rows:?}");
        rows[0]["tokens"].as_u64().unwrap()
    };
    let [read, cached, written] = stage.served();
    for by in ["day", "agent", "model"] {
        assert_eq!(tokens(by), read - cached + written, "{by}");
    }
    // More than was spent, and less than one request may cost.
    let limit = "[budget]\nday_tokens = 2000\n";
    stage.inner.write("config/provost/config.toml", limit);
    let before = stage.requests().len();
    let refused = stage.run();
    assert_eq!(refused.code(), "TOKEN_LIMIT", "{refused:?}");
    assert_eq!(stage.requests().len(), before, "no request was forwarded");
    stage
        .inner
        .write("config/provost/config.toml", "[budget]\nweek = 1\n");
    let wrong = stage.run();
    assert!(wrong.code() != "OK", "{wrong:?}");
    assert!(format!("{wrong:?}").contains("config.toml"), "{wrong:?}");
}

#[test]
fn a_model_that_is_not_listed_is_refused_and_the_line_that_grants_it_is_shown() {
    for program in PROGRAMS {
        let Some(stage) = stage(program, "models = [\"none-of-these\"]") else {
            return;
        };
        let outcome = stage.run();
        assert!(outcome.code() != "OK", "{program:?} {outcome:?}");
        assert!(stage.requests().is_empty(), "{program:?}");
        let shown = stage.inner.ask(&["show", outcome.text("run_id")]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(
            shown.contains("MODEL_REQUEST_REFUSED"),
            "{program:?} {shown}"
        );
        assert!(shown.contains("models = ["), "{program:?} {shown}");
    }
}

#[test]
fn the_known_tools_of_every_program_are_all_that_it_offers() {
    for program in PROGRAMS {
        let Some(stage) = stage(program, "model_tools = [\"known\"]") else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
    }
}
