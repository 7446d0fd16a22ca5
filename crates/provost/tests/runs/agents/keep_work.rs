//! Work of the programs is judged again without a single request to their model.

use serde_json::json;

use super::stage::{AgentStage, PROGRAMS, Way};

#[test]
fn work_that_is_kept_costs_no_request() {
    for program in PROGRAMS {
        let work = "echo good > src/a.txt; echo more > extra.txt";
        let turns = json!([{ "shell": work }, { "text": "done" }]);
        let Some(stage) = AgentStage::new(program, Way::Plain, &turns, "") else {
            return;
        };
        let refused = stage.run();
        assert_eq!(refused.code(), "DIFF_REFUSED", "{program:?} {refused:?}");
        let paid = stage.requests().len();
        assert_eq!(paid, 2, "{program:?}");
        let run = refused.text("run_id");
        // The login is not named again: nothing of it is sent.
        let kept = ["retry", run, "--keep-work", "--allow=extra.txt", "--json"];
        let accepted = stage.ask(&kept);
        assert_eq!(accepted.code(), "OK", "{program:?} {accepted:?}");
        assert_eq!(accepted.json["tree"], refused.json["tree"]);
        assert_eq!(accepted.json["usage"], json!(null));
        assert_eq!(stage.inner.verify(accepted.text("run_id")).exit, 0);
        assert_eq!(stage.requests().len(), paid, "{program:?}");
    }
}
