//! A repository and a home for one person who tries the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A repository with one commit, a home, and nothing else.
pub(crate) struct Desk {
    scratch: tempfile::TempDir,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) exit: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    pub(crate) fn new() -> Self {
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
    pub(crate) fn with_a_box() -> Option<Self> {
        let desk = Self::new();
        let said = desk.provost(&["box", "--", "true"]);
        if said.exit != 4 {
            return Some(desk);
        }
        provost_testkit::skip(&format!("no sandbox can be made here: {}", said.err.trim()));
        None
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.at("repository").join(name), text).unwrap();
    }

    pub(crate) fn call(&self, program: &str, place: &Path, homeless: bool, words: &[&str]) -> Said {
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

    pub(crate) fn git(&self, words: &[&str]) -> String {
        let mut all = vec!["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
        all.extend(words);
        let said = self.call("git", &self.at("repository"), false, &all);
        assert_eq!(said.exit, 0, "git {words:?}: {said:?}");
        said.out
    }

    pub(crate) fn provost(&self, words: &[&str]) -> Said {
        let place = self.at("repository");
        self.call(env!("CARGO_BIN_EXE_provost"), &place, false, words)
    }

    pub(crate) fn has_runs(&self) -> bool {
        self.at("repository/.provost/runs").exists()
    }
}

/// A run of `agent` that is accepted when `src/greet` says hello.
pub(crate) fn greeting<'a>(objective: &'a str, agent: &'a str) -> [&'a str; 8] {
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

pub(crate) const GOOD: &str = "sed -i s/hi/hello/ src/greet";
