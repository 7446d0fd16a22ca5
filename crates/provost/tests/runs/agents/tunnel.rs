//! Models that are encrypted from end to end: the proxy passes a tunnel, and sees nothing.

use serde_json::json;

use super::stage::{AgentStage, PROGRAMS, Way, traffic};

#[test]
fn a_model_behind_tls_is_reached_by_a_tunnel() {
    for program in PROGRAMS {
        let turns = json!([{ "shell": "echo good > src/a.txt" }, { "text": "done" }]);
        let Some(stage) = AgentStage::new(program, Way::Tunnel, &turns, "") else {
            return;
        };
        let outcome = stage.run();
        assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
        let lines = traffic(&outcome);
        let tunnel = json!(["CONNECT", stage.place, "OK"]);
        assert!(lines.contains(&tunnel), "{lines:?}");
        let others = |line: &&serde_json::Value| line[1] != stage.place.as_str();
        let mut others = lines.iter().filter(others);
        assert!(others.all(|line| line[2] == "NETWORK_REFUSED"), "{lines:?}");
        for request in stage.requests() {
            let key = request["key"].as_str().unwrap();
            assert!(key.ends_with("kept-outside-the-box"), "{key}");
        }
    }
}
