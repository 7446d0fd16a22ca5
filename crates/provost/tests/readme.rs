//! Types what the README says into a shell, so that the README stays true.
//!
//! In a `console` block a line with `$ ` is a command, run in a fresh repository. The lines below it
//! must appear in its output, in that order; `…` stands for anything. A command ends with 0, or
//! where the README shows a refusal with the exit of that code.

#[cfg(test)]
mod tests {
    use provost_core::code::Code;
    use provost_testkit::stage::{PATH, Stage, only_home, program};

    const README: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"));

    #[test]
    fn the_console_blocks_do_what_they_show() {
        let Some(stage) = stage() else {
            return;
        };
        let steps = steps(README);
        assert!(steps.len() >= 8, "the README lost its first run");
        for step in &steps {
            let (exit, output) = type_in(&stage, &step.command);
            let context = format!("$ {}\n{output}", step.command);
            assert_eq!(exit, step.exit(), "{context}");
            let mut lines = output.lines();
            for wanted in &step.shown {
                assert!(
                    lines.any(|line| fits(line.trim_end(), wanted)),
                    "`{wanted}` is not shown by {context}"
                );
            }
        }
    }

    #[test]
    fn the_whole_agent_is_accepted_with_its_result() {
        let Some(stage) = stage() else {
            return;
        };
        stage.script("home/agent", block("sh", "#!/bin/sh"));
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
            assert!(README.contains(&row), "{code}: no row `{row}`");
        }
        let help = Stage::empty().ask(&["--help"]);
        let list = help.out().split("\nOptions:\n").next().unwrap();
        let commands: Vec<&str> = list
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
            .collect();
        assert!(commands.len() >= 19, "{commands:?}");
        for name in commands {
            let plain = README.contains(&format!("`{name}`"));
            let with_more = README.contains(&format!("`{name} "));
            assert!(plain || with_more, "`{name}` is not in the README");
        }
    }

    /// One command of a console block.
    #[derive(Debug)]
    struct Step {
        command: String,
        shown: Vec<String>,
    }

    impl Step {
        fn exit(&self) -> i32 {
            let code = self.shown.iter().find_map(|line| {
                let rest = line.strip_prefix("refused[");
                let rest = rest.or_else(|| line.strip_prefix("error["))?;
                Some(Code::parse(rest.split(']').next()?).unwrap())
            });
            code.map_or(0, |code| i32::from(u8::from(code.exit())))
        }
    }

    fn steps(text: &str) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for block in text.split("\n```console\n").skip(1) {
            for line in block.split("\n```").next().unwrap().lines() {
                match (line.strip_prefix("$ "), steps.last_mut()) {
                    (Some(command), _) => steps.push(Step {
                        command: command.to_owned(),
                        shown: Vec::new(),
                    }),
                    (None, Some(step)) => step.shown.push(line.to_owned()),
                    (None, None) => panic!("`{line}` belongs to no command"),
                }
            }
        }
        steps
    }

    /// The block of this language that begins with `beginning`.
    fn block(language: &str, beginning: &str) -> &'static str {
        let fence = format!("\n```{language}\n");
        let blocks = README.split(fence.as_str()).skip(1);
        let mut bodies = blocks.map(|block| block.split("```").next().unwrap());
        bodies.find(|body| body.starts_with(beginning)).unwrap()
    }

    /// Whether `line` is `wanted`, where `…` stands for anything.
    fn fits(line: &str, wanted: &str) -> bool {
        let Some((beginning, rest)) = wanted.split_once('…') else {
            return line == wanted;
        };
        let Some(mut left) = line.strip_prefix(beginning) else {
            return false;
        };
        let mut parts: Vec<&str> = rest.split('…').collect();
        let end = parts.pop().unwrap_or_default();
        for part in parts {
            let Some(at) = left.find(part) else {
                return false;
            };
            left = &left[at + part.len()..];
        }
        left.ends_with(end)
    }

    #[test]
    fn an_ellipsis_stands_for_anything() {
        let cases = [
            ("landed: main is at 1a (r)", "landed: … is at … (r)", true),
            ("landed: main", "landed: … is at … (r)", false),
            ("accepted: run_1", "accepted: run_…", true),
            ("not accepted: run_1", "accepted: run_…", false),
            ("a", "a", true),
            ("ab", "a", false),
        ];
        for (line, wanted, want) in cases {
            assert_eq!(fits(line, wanted), want, "{line} / {wanted}");
        }
    }

    /// A repository with one commit, where a sandbox can be made.
    fn stage() -> Option<Stage> {
        Some(Stage::with(&[("README.md", "# A project\n")])).filter(Stage::has_sandbox)
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
