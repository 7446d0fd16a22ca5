//! Types what the pages for new users say into a shell, so that they stay true.

#[cfg(test)]
mod tests {
    use provost_core::code::Code;
    use provost_testkit::console;
    use provost_testkit::stage::{PATH, Stage, only_home, program};

    const FIRST_RUN: &str = include_str!("../../../docs/first-run.md");
    const REFERENCE: &str = include_str!("../../../docs/reference.md");
    const AGENTS: &str = include_str!("../../../docs/agents.md");

    #[test]
    fn the_first_run_does_what_its_page_shows() {
        let Some(stage) = stage() else {
            return;
        };
        let steps = console::steps(FIRST_RUN);
        assert!(steps.len() >= 8, "the page lost its commands");
        for step in &steps {
            let (exit, output) = type_in(&stage, &step.command);
            step.compare(&output);
            let code = step.code().map(|code| Code::parse(code).unwrap());
            let wanted = code.map_or(0, |code| i32::from(u8::from(code.exit())));
            assert_eq!(exit, wanted, "$ {}\n{output}", step.command);
        }
    }

    #[test]
    fn the_whole_agent_is_accepted_with_its_result() {
        let Some(stage) = stage() else {
            return;
        };
        let mut blocks = AGENTS.split("\n```sh\n").skip(1);
        let agent = blocks.find(|block| block.starts_with("#!/bin/sh")).unwrap();
        stage.script("home/agent", agent.split("```").next().unwrap());
        let (exit, output) = type_in(
            &stage,
            "provost run 'Say hello' --allow HELLO.md --accept 'grep -q Hello HELLO.md' \
             --agent-cmd \"$HOME/agent\"",
        );
        assert_eq!(exit, 0, "{output}");
        assert!(
            output.contains("the agent's result fits its schema"),
            "{output}"
        );
    }

    #[test]
    fn every_exit_and_every_command_is_mentioned() {
        for code in Code::ALL {
            let row = format!("| {} |", u8::from(code.exit()));
            assert!(REFERENCE.contains(&row), "{code}: no row `{row}`");
        }
        let help = Stage::empty().ask(&["help", "--all"]);
        let list = help.out().split("\nOptions:\n").next().unwrap();
        let commands: Vec<&str> = list
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
            .collect();
        assert!(commands.len() >= 19, "{commands:?}");
        for name in commands {
            let plain = REFERENCE.contains(&format!("`{name}`"));
            let with_more = REFERENCE.contains(&format!("`{name} "));
            assert!(plain || with_more, "`{name}` is not in the reference");
        }
    }

    /// A small project with a mistake, where a sandbox can be made.
    fn stage() -> Option<Stage> {
        let test = "import unittest\nfrom add import add\n\n\nclass Add(unittest.TestCase):\n    \
                    def test_add(self):\n        self.assertEqual(add(2, 2), 4)\n";
        let files = [
            ("add.py", "def add(a, b):\n    return a - b\n"),
            ("test_add.py", test),
        ];
        Some(Stage::with(&files)).filter(Stage::has_sandbox)
    }

    /// What the shell answers to `line`: the status, and both streams as a person sees them.
    fn type_in(stage: &Stage, line: &str) -> (i32, String) {
        let mut command = stage.command("sh");
        only_home(&mut command, Some(&stage.path("home")));
        let program = program();
        let own = program.parent().unwrap().display();
        command.env("PATH", format!("{own}:{PATH}"));
        command.args(["-c", &format!("exec 2>&1\n{line}")]);
        let outcome = stage.spawn(command).wait();
        (outcome.exit, outcome.out().to_owned())
    }
}
