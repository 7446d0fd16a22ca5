//! What a person sees who uses the program for the first time, and what is said before a run begins.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    /// A repository with one commit, a home, and nothing else.
    struct Desk {
        scratch: tempfile::TempDir,
    }

    /// What a command said.
    #[derive(Debug)]
    struct Said {
        exit: i32,
        out: String,
        err: String,
    }

    impl Desk {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let desk = Self { scratch };
            for name in ["home", "repository/src"] {
                fs::create_dir_all(desk.at(name)).unwrap();
            }
            desk.write("src/greet", "hi\n");
            desk.git(&["init", "--quiet", "--initial-branch=main"]);
            desk.git(&["add", "."]);
            desk.git(&["commit", "--quiet", "--message=Begin"]);
            desk
        }

        /// The same on a machine that can make a box; elsewhere nothing can be shown.
        fn with_a_box() -> Option<Self> {
            let desk = Self::new();
            let said = desk.provost(&["box", "--", "true"]);
            if said.exit != 4 {
                return Some(desk);
            }
            let required = std::env::var("PROVOST_TEST_REQUIRE").is_ok_and(|what| what == "all");
            assert!(!required, "there is no box here: {said:?}");
            eprintln!("SKIPPED: there is no box here: {said:?}");
            None
        }

        fn at(&self, name: &str) -> PathBuf {
            self.scratch.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.at("repository").join(name), text).unwrap();
        }

        fn call(&self, program: &str, place: &Path, homeless: bool, words: &[&str]) -> Said {
            let mut command = Command::new("timeout");
            command
                .args(["120", program])
                .args(words)
                .current_dir(place)
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap_or_default())
                .stdin(Stdio::null());
            if !homeless {
                command.env("HOME", self.at("home"));
            }
            let output = command.output().unwrap();
            Said {
                exit: output.status.code().unwrap_or(-1),
                out: String::from_utf8(output.stdout).unwrap(),
                err: String::from_utf8(output.stderr).unwrap(),
            }
        }

        fn git(&self, words: &[&str]) -> String {
            let mut all = vec!["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
            all.extend(words);
            let said = self.call("git", &self.at("repository"), false, &all);
            assert_eq!(said.exit, 0, "git {words:?}: {said:?}");
            said.out
        }

        fn provost(&self, words: &[&str]) -> Said {
            let place = self.at("repository");
            self.call(env!("CARGO_BIN_EXE_provost"), &place, false, words)
        }

        fn has_runs(&self) -> bool {
            self.at("repository/.provost/runs").exists()
        }
    }

    /// A run of `agent` that is accepted when `src/greet` says hello.
    fn greeting<'a>(objective: &'a str, agent: &'a str) -> [&'a str; 8] {
        let accept = "grep -q hello src/greet";
        [
            "run",
            objective,
            "--allow",
            "src",
            "--accept",
            accept,
            "--agent-cmd",
            agent,
        ]
    }

    const GOOD: &str = "sed -i s/hi/hello/ src/greet";

    #[test]
    fn what_cannot_become_a_run_is_refused_before_one_is_opened() {
        let desk = Desk::new();
        let run = |more: &[&str]| {
            let mut words = greeting("Greet", "true").to_vec();
            words.extend(more);
            desk.provost(&words)
        };
        let cases = [
            (desk.provost(&["run", "Greet"]), "--allow <PATH>"),
            (
                desk.provost(&["run", "Greet", "--allow", "src"]),
                "--accept <CMD>",
            ),
            (
                desk.provost(&greeting(" ", "true")),
                "say what is to be done",
            ),
            (run(&["--target", "mian"]), "there is no branch `mian`"),
            (run(&["--target", "../x y"]), "there is no branch `../x y`"),
        ];
        for (said, want) in cases {
            assert_eq!(said.exit, 2, "{want}: {said:?}");
            assert_eq!(said.err.matches("error").count(), 1, "{said:?}");
            assert!(said.err.contains(want), "{want}: {said:?}");
        }
        desk.git(&["checkout", "--quiet", "--detach"]);
        let said = run(&[]);
        assert_eq!(said.exit, 2, "{said:?}");
        assert!(said.err.contains("--target"), "{said:?}");
        assert!(!desk.has_runs());
    }

    #[test]
    fn a_contract_that_does_not_parse_is_named_with_file_field_and_page() {
        let desk = Desk::new();
        let cases = [
            (
                "[]",
                "`c.json`: the document: must be an object, not a list",
            ),
            ("{}", "`c.json`: the document: missing field `task_id`"),
            (
                "{\"task_id\": 7}",
                "`c.json`: `task_id`: must be a text, not the number `7`",
            ),
            ("{", "`c.json`: line 1, column 1: "),
        ];
        for (text, want) in cases {
            desk.write("c.json", text);
            let said = desk.provost(&["run", "-f", "c.json", "--agent-cmd", "true"]);
            assert_eq!(said.exit, 2, "{said:?}");
            assert!(said.err.contains(want), "{want}: {said:?}");
            let hint = "hint: `provost explain contract`";
            assert!(said.err.contains(hint), "{said:?}");
        }
        let page = desk.provost(&["explain", "contract"]);
        assert!(
            page.out.contains("\"allowed_paths\": [\"src\"]"),
            "{page:?}"
        );
    }

    #[test]
    fn the_minimal_example_of_the_page_is_a_contract_that_runs() {
        let Some(desk) = Desk::with_a_box() else {
            return;
        };
        let example = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/examples/contract-minimal.json"
        ));
        fs::create_dir(desk.at("repository/tests")).unwrap();
        desk.write("tests/test_greet.py", "import unittest\n");
        desk.git(&["add", "."]);
        desk.git(&["commit", "--quiet", "--message=Test"]);
        // What is JSON is YAML too.
        for name in ["home/contract.json", "home/contract.yaml"] {
            let file = desk.at(name);
            fs::write(&file, example).unwrap();
            let file = file.to_str().unwrap();
            let said = desk.provost(&["run", "-f", file, "--agent-cmd", "true"]);
            assert!(said.out.contains("refused[EMPTY_DIFF]"), "{said:?}");
            let ending = file.rsplit('.').next().unwrap();
            what_was_written_is_sealed(&desk, &format!("contract.source.{ending}"), example);
        }
        let toml = desk.at("home/contract.toml");
        fs::write(&toml, example).unwrap();
        let said = desk.provost(&["run", "-f", toml.to_str().unwrap(), "--agent-cmd", "true"]);
        assert!(said.err.contains("contract.toml"), "{said:?}");
    }

    /// The bundle that has the file `name` is whole with it, and not with another.
    fn what_was_written_is_sealed(desk: &Desk, name: &str, text: &str) {
        let runs = fs::read_dir(desk.at("repository/.provost/runs")).unwrap();
        let mut runs = runs.map(|entry| entry.unwrap().path());
        let run = runs.find(|run| run.join(name).exists()).unwrap();
        assert_eq!(fs::read_to_string(run.join(name)).unwrap(), text);
        let verify = ["verify", run.to_str().unwrap()];
        let said = desk.provost(&verify);
        assert_eq!(said.exit, 0, "{said:?}");
        fs::write(run.join(name), "{}").unwrap();
        let said = desk.provost(&verify);
        assert_eq!(said.exit, 5, "{said:?}");
        let problem = "is not what the contract was read from";
        assert!(format!("{said:?}").contains(problem), "{said:?}");
        fs::remove_file(run.join(name)).unwrap();
        assert_eq!(desk.provost(&verify).exit, 5);
    }

    #[test]
    fn a_failure_shows_the_end_of_its_output() {
        let Some(desk) = Desk::with_a_box() else {
            return;
        };
        let cases = [
            (
                "nosuch --flag",
                "the agent `nosuch --flag` cannot be started",
                "| cannot start `nosuch`: No such file",
            ),
            (
                "sh -c 'echo one; echo two >&2; exit 3'",
                "the agent ended with status 3",
                "| two",
            ),
            (
                "sh -c 'echo bye > src/greet'",
                "`grep -q hello src/greet` failed with status 1",
                "still red",
            ),
            ("sh -c 'seq 100'", "the agent changed nothing", "| 91\n"),
        ];
        for (agent, reason, line) in cases {
            let said = desk.provost(&greeting("Greet", agent));
            assert_eq!(said.exit, 1, "{agent}: {said:?}");
            assert!(said.out.contains(reason), "{agent}: {said:?}");
            assert!(said.out.contains(line), "{agent}: {said:?}");
            assert!(!said.out.contains("| 90\n"), "{agent}: {said:?}");
        }
        let shown = desk.provost(&["show"]);
        assert!(shown.out.contains("| 100\n"), "{shown:?}");
    }

    #[test]
    fn a_landed_run_says_so_and_leaves_nothing_to_clean_up() {
        let Some(desk) = Desk::with_a_box() else {
            return;
        };
        let said = desk.provost(&greeting("Greet\n\nAs one does.", GOOD));
        assert_eq!(said.exit, 0, "{said:?}");
        assert!(
            desk.provost(&["runs"])
                .out
                .ends_with("ACCEPTED            Greet\n")
        );
        assert_eq!(desk.provost(&["salvage", "list"]).out.lines().count(), 2);
        assert_eq!(
            desk.git(&["branch", "--list", "provost/*"]).lines().count(),
            1
        );

        assert_eq!(desk.provost(&["land", "last"]).exit, 0);
        let shown = desk.provost(&["show"]);
        assert!(shown.out.contains("  landed   main, commit "), "{shown:?}");
        assert!(!shown.out.contains("next:"), "{shown:?}");
        assert!(
            desk.provost(&["runs"])
                .out
                .ends_with("LANDED              Greet\n")
        );
        assert_eq!(desk.provost(&["salvage", "list"]).out, "nothing is kept\n");
        assert_eq!(desk.git(&["branch", "--list", "provost/*"]), "");
        let message = desk.git(&["log", "-1", "--format=%B"]);
        assert_eq!(message.matches("Greet").count(), 1, "{message}");
        assert!(
            message.contains("\n\nAs one does.\n\nProvost-Run: "),
            "{message}"
        );
        let again = desk.provost(&["land", "last"]);
        assert_eq!(again.exit, 0, "{again:?}");
        assert_eq!(desk.provost(&["verify"]).exit, 0);
        let restored = desk.provost(&["salvage", "restore", "last"]);
        assert_eq!(restored.exit, 0, "{restored:?}");
    }

    #[test]
    fn a_branch_that_somebody_went_on_with_stays() {
        let Some(desk) = Desk::with_a_box() else {
            return;
        };
        assert_eq!(desk.provost(&greeting("Greet", GOOD)).exit, 0);
        let branch = desk.git(&["branch", "--list", "--format=%(refname)", "provost/*"]);
        let tree = desk.git(&["rev-parse", "main^{tree}"]);
        let more = desk.git(&[
            "commit-tree",
            "-m",
            "More",
            "-p",
            branch.trim(),
            tree.trim(),
        ]);
        desk.git(&["update-ref", branch.trim(), more.trim()]);
        assert_eq!(desk.provost(&["land", "last"]).exit, 0);
        assert_eq!(desk.git(&["rev-parse", branch.trim()]), more);
    }

    #[test]
    fn who_only_reads_needs_no_home() {
        let Some(desk) = Desk::with_a_box() else {
            return;
        };
        assert_eq!(desk.provost(&greeting("Greet", GOOD)).exit, 0);
        let reading = [
            "runs",
            "show",
            "log",
            "diff",
            "status",
            "salvage list",
            "lease list",
            "explain",
        ];
        for line in reading {
            let words: Vec<&str> = line.split(' ').collect();
            let place = desk.at("repository");
            let said = desk.call(env!("CARGO_BIN_EXE_provost"), &place, true, &words);
            assert_eq!((said.exit, said.err.as_str()), (0, ""), "{line}: {said:?}");
        }
    }

    #[test]
    fn what_the_agent_will_not_see_is_said_at_the_start() {
        let Some(desk) = Desk::with_a_box() else {
            return;
        };
        let clean = desk.provost(&greeting("Greet", GOOD));
        assert!(!clean.err.contains("note:"), "{clean:?}");
        desk.write("provost.toml", "");
        desk.write("src/greet", "hi there\n");
        let place = desk.at("repository/src");
        let mut words = greeting("Greet", GOOD).to_vec();
        words.extend(["--allow", "greet"]);
        let said = desk.call(env!("CARGO_BIN_EXE_provost"), &place, false, &words);
        for note in [
            "`src/greet`?",
            "1 uncommitted path;",
            "provost.toml is not committed",
        ] {
            assert!(said.err.contains(note), "{note}: {said:?}");
        }
        let status = desk.git(&["status", "--porcelain"]);
        assert_eq!(status, " M src/greet\n?? provost.toml\n");
    }
}
