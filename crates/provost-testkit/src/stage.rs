//! A temporary repository with everything around it that a run could damage.
//!
//! # Invariants
//!
//! - A stage shares nothing with the user's own home, caches, keys or git configuration.
//! - Every command has a time limit; a stage leaves no process behind.
//! - A test that needs something this machine lacks is skipped by one rule; see [`crate::lacks`].

mod bundle_files;
mod command;
mod measured;
mod surroundings;
mod traces;

pub use command::{Outcome, Running, only_home, program};
pub use surroundings::Surroundings;
pub use traces::until;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

/// User id of `nobody`: the unprivileged user for tests that root runs.
pub const NOBODY: u32 = 65534;

/// Search path of programs, on the host and hence in a sandbox.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Time limit of one command, on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Files of every base; `@OUTSIDE@` is a directory of the host.
const BASE: &[(&str, &str)] = &[
    ("src/a.txt", "base\n"),
    ("src/b.txt", "keep\nthese\nlines\nas\nthey\nare\n"),
    ("src/pytest.ini", "[pytest]\n"),
    ("docs/readme.md", "read me\n"),
    ("check.sh", "grep -q good src/a.txt\n"),
    ("CLAUDE.md", "be good\n"),
    (".gitignore", "/target/\n"),
];

pub struct Stage {
    directory: TempDir,
    user: Option<u32>,
}

/// The arguments of a run, apart from its agent.
pub struct Ask<'a> {
    /// Each one a `--allow`.
    pub allow: &'a [&'a str],
    /// The `--accept`.
    pub accept: &'a str,
    /// Further arguments.
    pub more: &'a [&'a str],
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Self {
            allow: &["src"],
            accept: "sh check.sh",
            more: &[],
        }
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Default for Stage {
    fn default() -> Self {
        Self::new()
    }
}

impl Stage {
    /// A stage of the user who runs the tests.
    pub fn new() -> Self {
        Self::of(None)
    }

    /// A stage of an unprivileged user; only root can make one.
    pub fn of_nobody() -> Self {
        Self::of(Some(NOBODY))
    }

    /// A stage where sandboxes can be made; `None` if this machine cannot make one.
    pub fn with_sandbox() -> Option<Self> {
        Some(Self::new()).filter(Self::has_sandbox)
    }

    /// A user with a home, and an empty directory for a repository.
    pub fn empty() -> Self {
        Self::made(None)
    }

    /// The same with a repository of these files.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let stage = Self::empty();
        stage.repository("repo", files);
        stage
    }

    fn made(user: Option<u32>) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("provost-stage-")
            .tempdir()
            .unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let stage = Self { directory, user };
        for name in ["repo", "home"] {
            fs::create_dir(stage.path(name)).unwrap();
        }
        stage
    }

    fn of(user: Option<u32>) -> Self {
        let stage = Self::made(user);
        for name in ["cache", "config", "outside", "agent"] {
            fs::create_dir(stage.path(name)).unwrap();
        }
        for (name, text) in [
            ("outside/canary", "untouched\n"),
            ("outside/secret", "xyzzy-secret\n"),
            ("home/.profile", "untouched\n"),
            (
                "cache/provost/other/ws/run_other/1/tree/canary",
                "untouched\n",
            ),
            ("repo/.provost/canary", "untouched\n"),
        ] {
            stage.write(name, text);
        }
        stage.own();
        stage.repository("repo", &[]);
        // The first run would add this line; with it, a run must change nothing at all.
        stage.write("repo/.git/info/exclude", "/.provost/\n");
        std::os::unix::fs::symlink(stage.path("outside"), stage.path("repo/exit")).unwrap();
        stage.commit(BASE);
        stage
    }

    /// Makes a repository at `at` and commits these files, if there are any.
    pub fn repository(&self, at: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(self.path(at)).unwrap();
        self.git_in(at, &["init", "-q", "-b", "main"]);
        self.identify(at);
        if !files.is_empty() {
            self.commit_in(at, files);
        }
    }

    /// Configures an author for commits in the repository at `at`.
    fn identify(&self, at: &str) {
        self.git_in(at, &["config", "user.name", "author"]);
        self.git_in(at, &["config", "user.email", "author@localhost"]);
    }

    /// Commits files to the base.
    pub fn commit(&self, files: &[(&str, &str)]) {
        self.commit_in("repo", files);
    }

    /// Commits files to the repository at `at`, with everything else that changed there.
    pub fn commit_in(&self, at: &str, files: &[(&str, &str)]) {
        for (name, text) in files {
            self.write(&format!("{at}/{name}"), text);
        }
        self.own();
        self.git_in(at, &["add", "-A"]);
        self.git_in(at, &["commit", "-q", "-m", "base"]);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The stage's own directory, which no process outside it has in its arguments.
    fn mark(&self) -> String {
        self.directory.path().display().to_string()
    }

    pub fn write(&self, name: &str, text: &str) {
        self.put(name, text.as_bytes());
    }

    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Writes an executable file of the stage.
    pub fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Gives the stage to an unprivileged user, as whom all later commands run; only root can.
    pub fn give_to_nobody(&mut self) {
        self.user = Some(NOBODY);
        self.copy_binary();
    }

    fn own(&self) {
        let Some(user) = self.user else { return };
        let owner = format!("{user}:{user}");
        let done = Command::new("chown")
            .args(["-Rh", &owner])
            .arg(self.directory.path())
            .status();
        assert!(done.unwrap().success());
    }

    /// The agent that runs the script `text`, as an argument of `--agent-cmd`.
    pub fn agent(&self, text: &str) -> String {
        let (program, name) = if text.starts_with("#!python") {
            ("python3", "agent.py")
        } else {
            ("sh", "agent.sh")
        };
        self.write(&format!("agent/{name}"), &self.fill(text));
        format!(
            "{program} {}",
            self.path(&format!("agent/{name}")).display()
        )
    }

    /// Replaces the placeholders of a script by the paths of this stage.
    pub fn fill(&self, text: &str) -> String {
        [
            ("@OUTSIDE@", "outside"),
            ("@HOME@", "home"),
            ("@REPO@", "repo"),
            ("@CACHE@", "cache"),
            ("@PROVOST@", "provost"),
        ]
        .iter()
        .fold(text.to_owned(), |text, (token, name)| {
            text.replace(token, &self.path(name).display().to_string())
        })
    }

    /// Runs `script` as an agent under contract.
    pub fn run(&self, script: &str, ask: &Ask<'_>) -> Outcome {
        self.start(script, ask).wait()
    }

    /// Starts a run without waiting for it.
    pub fn start(&self, script: &str, ask: &Ask<'_>) -> Running {
        let agent = self.agent(script);
        self.start_agent(&agent, ask)
    }

    /// Starts a run of an agent that exists already.
    pub fn start_agent(&self, agent: &str, ask: &Ask<'_>) -> Running {
        self.spawn(self.provost(&run_arguments(agent, ask)))
    }

    /// Agrees to the steps of the committed policy, with the command that the refusal suggests.
    pub fn agree(&self) {
        let refused = self.ask(&["prepare", "--json"]);
        let hint = refused.json["details"]["hint"].as_str();
        let Some(digest) = hint.and_then(|hint| hint.strip_prefix("provost init --trust ")) else {
            return;
        };
        let agreed = self.ask(&["init", "--trust", digest]);
        assert_eq!(agreed.exit, 0, "{agreed:?}");
    }

    pub fn runs(&self) -> BTreeSet<String> {
        self.runs_in("repo")
    }

    pub fn runs_in(&self, at: &str) -> BTreeSet<String> {
        let runs = fs::read_dir(self.path(at).join(".provost/runs"));
        runs.into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// The run of a stage that had exactly one; two of the same second have no order.
    pub fn last_run(&self) -> Option<String> {
        self.runs().pop_last()
    }

    pub fn evidence(&self, run: &str, name: &str) -> PathBuf {
        self.path("repo/.provost/runs").join(run).join(name)
    }

    /// What the agent of the last run printed.
    pub fn printed(&self) -> String {
        self.printed_in(&self.last_run().unwrap())
    }

    pub fn printed_in(&self, run: &str) -> String {
        let mut text = String::new();
        for task in fs::read_dir(self.evidence(run, "agent"))
            .into_iter()
            .flatten()
        {
            for log in fs::read_dir(task.unwrap().path()).unwrap() {
                let log = log.unwrap().path();
                // The transcript repeats what was printed.
                if log.extension().is_some_and(|kind| kind != "md") {
                    text += &String::from_utf8_lossy(&fs::read(log).unwrap());
                }
            }
        }
        text
    }
}

/// The arguments of `provost run`.
pub fn run_arguments<'a>(agent: &'a str, ask: &Ask<'a>) -> Vec<&'a str> {
    let mut words = vec!["run", "make it good", "--json", "--agent-cmd", agent];
    for path in ask.allow {
        words.extend(["--allow", path]);
    }
    words.extend(["--accept", ask.accept]);
    words.extend(ask.more);
    words
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn a_stage_notices_what_it_is_there_for() {
        let stage = Stage::new();
        let before = stage.surroundings();
        assert_eq!(before.differences(&stage.surroundings()), [""; 0]);
        assert_eq!(stage.traces(), [""; 0]);

        stage.write("outside/canary", "owned\n");
        stage.write("repo/.git/refs/heads/planted", "0\n");
        assert_eq!(
            before.differences(&stage.surroundings()),
            ["outside/canary", "repo/.git/refs/heads/planted"]
        );

        let mut sleeper = Command::new("sleep")
            .arg0(stage.mark())
            .arg("60")
            .spawn()
            .unwrap();
        assert_eq!(stage.traces().len(), 1);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
