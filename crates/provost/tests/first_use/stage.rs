//! What a person has who tries the program: a repository with one commit, and a home.

use std::process::Command;

use provost_testkit::stage::{Outcome, Stage, only_home};

pub(crate) fn stage() -> Stage {
    Stage::with(&[("src/greet", "hi\n")])
}

/// The same on a machine that can make a sandbox; elsewhere nothing can be shown.
pub(crate) fn with_sandbox() -> Option<Stage> {
    Some(stage()).filter(Stage::has_sandbox)
}

/// A person who set nothing but a home.
pub(crate) trait Person {
    /// A call of the program.
    fn call(&self, words: &[&str]) -> Command;

    /// What the program answers.
    fn typed(&self, words: &[&str]) -> Outcome;
}

impl Person for Stage {
    fn call(&self, words: &[&str]) -> Command {
        let mut command = self.provost(words);
        only_home(&mut command, Some(&self.path("home")));
        command
    }

    fn typed(&self, words: &[&str]) -> Outcome {
        self.spawn(self.call(words)).wait()
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
