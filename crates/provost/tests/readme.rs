//! Types what the README says into a shell, so that the README stays true.
//!
//! In a `console` block a line with `$ ` is a command, run in a fresh repository. The lines below it
//! must appear in its output, in that order; `…` stands for anything. A command ends with 0, or
//! where the README shows a refusal with the exit of that code.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    use provost_core::code::Code;

    const README: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"));

    /// The longest one command may take, in seconds.
    const SLOWEST: &str = "120";

    #[test]
    fn the_console_blocks_do_what_they_show() {
        let Some(desk) = Desk::with_a_box() else {
            return;
        };
        let steps = steps(README);
        assert!(steps.len() >= 8, "the README lost its first run");
        for step in &steps {
            let (exit, output) = desk.type_in(&step.command);
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
        let Some(desk) = Desk::with_a_box() else {
            return;
        };
        let agent = desk.home().join("agent");
        fs::write(&agent, block("sh", "#!/bin/sh")).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let (exit, output) = desk.type_in(
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
        let help = Command::new(env!("CARGO_BIN_EXE_provost"))
            .arg("--help")
            .output()
            .unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let list = help.split("\nOptions:\n").next().unwrap();
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

    /// A repository with one commit, and the program in PATH.
    struct Desk {
        scratch: tempfile::TempDir,
    }

    impl Desk {
        /// A desk on a machine that can make a box; elsewhere nothing can be shown.
        fn with_a_box() -> Option<Self> {
            let desk = Self::new();
            let (exit, output) = desk.type_in("provost box -- true");
            if exit != 4 {
                return Some(desk);
            }
            provost_testkit::skip(&format!("no sandbox can be made here: {output}"));
            None
        }

        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            for name in ["bin", "home", "repository"] {
                fs::create_dir(scratch.path().join(name)).unwrap();
            }
            let program = env!("CARGO_BIN_EXE_provost");
            symlink(program, scratch.path().join("bin/provost")).unwrap();
            let desk = Self { scratch };
            let (exit, output) = desk.type_in(
                "git init -q -b main && git config user.name Ada && \
                 git config user.email ada@example.org && \
                 echo '# A project' > README.md && git add . && git commit -qm Begin",
            );
            assert_eq!(exit, 0, "{output}");
            desk
        }

        fn home(&self) -> PathBuf {
            self.scratch.path().join("home")
        }

        /// What the shell answers to `line`: the status, and both streams as a person sees them.
        fn type_in(&self, line: &str) -> (i32, String) {
            let path = std::env::var("PATH").unwrap();
            let own = self.scratch.path().join("bin");
            let output = Command::new("timeout")
                .args([SLOWEST, "sh", "-c", &format!("exec 2>&1\n{line}")])
                .current_dir(self.scratch.path().join("repository"))
                .env_clear()
                .env("HOME", self.home())
                .env("PATH", search_path(&own, &path))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.code().unwrap_or(-1), text)
        }
    }

    fn search_path(own: &Path, rest: &str) -> String {
        format!("{}:{rest}", own.display())
    }
}
