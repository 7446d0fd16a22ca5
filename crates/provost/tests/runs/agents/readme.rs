//! The session that the README begins with, with the real Claude Code.

use provost_testkit::console;
use provost_testkit::stage::program;
use serde_json::json;

use super::stage::{AgentStage, KEY, Program, Way};

const README: &str = include_str!("../../../../../README.md");

const TEST: &str = "from stats import average; import unittest\n\
    class Average(unittest.TestCase):\n    \
    def test_of_nothing(self): self.assertEqual(average([]), 0)\n";

#[test]
fn the_session_of_the_readme_is_what_provost_prints() {
    let fix = "sed -i 's/return sum/return 0 if not values else sum/' stats.py";
    let turns = json!([{ "shell": fix }, { "text": "An empty list has the average 0." }]);
    // As `provost init` writes it, but for the agent, whose model is scripted.
    let run = "[run]\nallow = [\"stats.py\"]\naccept = [\"python3 -m unittest\"]";
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, run) else {
        return;
    };
    stage.inner.commit(&[
        (
            "stats.py",
            "def average(values):\n    return sum(values) / len(values)\n",
        ),
        ("test_stats.py", TEST),
    ]);
    let steps = console::steps(README);
    assert_eq!(steps.len(), 5, "the README lost its session");
    let credential = stage.credential();
    let scripted = format!("--agent it --credential '{credential}'");
    for step in &steps {
        let mut line = step.command.clone();
        if line.starts_with("provost run ") {
            line += &format!(" {scripted}");
        }
        let mut command = stage.inner.command("sh");
        let program = program();
        let path = [
            &program.parent().unwrap().display().to_string(),
            &stage.programs().display().to_string(),
            "/usr/local/bin:/usr/bin:/bin",
        ];
        command.env("PATH", path.join(":"));
        command.env(stage.program.variable(), KEY);
        command.args(["-c", &format!("exec 2>&1\n{line}")]);
        let outcome = stage.inner.spawn(command).wait();
        step.compare(outcome.out());
        assert_eq!(outcome.exit, 0, "{outcome:?}");
    }
}
