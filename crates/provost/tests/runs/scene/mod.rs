//! A temporary repository with everything around it that a run could damage.
//!
//! # Invariants
//!
//! - A scene shares nothing with the user's own home, caches, keys or git configuration.
//! - Every command has a time limit; a scene leaves no process behind.
//! - A test that needs something this machine lacks is left out by the one rule; see [`lacks`].

mod command;
mod surroundings;
mod traces;

pub(crate) use command::{Outcome, Running};
pub(crate) use surroundings::Surroundings;
pub(crate) use traces::until;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

/// The ordinary user that root also tries things as.
pub(crate) const NOBODY: u32 = 65534;

/// Where programs are looked for, on the host and hence in a box.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long one command may take, on a machine with much else to do.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// What every base holds; `@OUTSIDE@` is a directory of the host.
const BASE: &[(&str, &str)] = &[
    ("src/a.txt", "base\n"),
    ("src/b.txt", "keep\nthese\nlines\nas\nthey\nare\n"),
    ("src/pytest.ini", "[pytest]\n"),
    ("docs/readme.md", "read me\n"),
    ("check.sh", "grep -q good src/a.txt\n"),
    ("CLAUDE.md", "be good\n"),
    (".gitignore", "/target/\n"),
];

/// One user with one repository.
pub(crate) struct Scene {
    directory: TempDir,
    user: Option<u32>,
}

/// What a run is asked, beside its agent.
pub(crate) struct Ask<'a> {
    pub(crate) allow: &'a [&'a str],
    pub(crate) accept: &'a str,
    pub(crate) more: &'a [&'a str],
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

/// Whether this machine lacks `program`; the test is then left out.
pub(crate) fn lacks(program: &str) -> bool {
    provost_testkit::lacks(&[program])
}

/// Whether the tests run as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Scene {
    /// A scene of the user who runs the tests.
    pub(crate) fn new() -> Self {
        Self::of(None)
    }

    /// A scene of an ordinary user; only root can make one.
    pub(crate) fn of_nobody() -> Self {
        Self::of(Some(NOBODY))
    }

    fn of(user: Option<u32>) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("provost-scene-")
            .tempdir()
            .unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let scene = Self { directory, user };
        for name in ["repo", "home", "cache", "config", "outside", "agent"] {
            fs::create_dir(scene.path(name)).unwrap();
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
            scene.write(name, text);
        }
        scene.own();
        scene.git(&["init", "-q", "-b", "main"]);
        scene.git(&["config", "user.name", "somebody"]);
        scene.git(&["config", "user.email", "somebody@localhost"]);
        // The first run would add this line; so nothing at all may change in a run.
        scene.write("repo/.git/info/exclude", "/.provost/\n");
        std::os::unix::fs::symlink(scene.path("outside"), scene.path("repo/exit")).unwrap();
        scene.commit(BASE);
        scene
    }

    /// Adds files to the base.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            self.write(&format!("repo/{name}"), text);
        }
        self.own();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "base"]);
    }

    /// A path of the scene.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The scene's own directory, which no process outside it has in its arguments.
    fn mark(&self) -> String {
        self.directory.path().display().to_string()
    }

    /// Writes a file of the scene.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Gives everything to the scene's user.
    fn own(&self) {
        let Some(user) = self.user else { return };
        let owner = format!("{user}:{user}");
        let done = Command::new("chown")
            .args(["-Rh", &owner])
            .arg(self.directory.path())
            .status();
        assert!(done.unwrap().success());
    }

    /// The agent that runs the script `text`, as `--agent-cmd` wants it.
    pub(crate) fn agent(&self, text: &str) -> String {
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

    /// Puts the places of this scene into a script.
    pub(crate) fn fill(&self, text: &str) -> String {
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
    pub(crate) fn run(&self, script: &str, ask: &Ask<'_>) -> Outcome {
        self.start(script, ask).wait()
    }

    /// Starts a run without waiting for it.
    pub(crate) fn start(&self, script: &str, ask: &Ask<'_>) -> Running {
        let agent = self.agent(script);
        self.start_agent(&agent, ask)
    }

    /// Starts a run of an agent that is there already.
    pub(crate) fn start_agent(&self, agent: &str, ask: &Ask<'_>) -> Running {
        self.spawn(self.provost(&run_arguments(agent, ask)))
    }

    /// Agrees to what the steps of the committed policy reach, as a refusal says.
    pub(crate) fn agree(&self) {
        let refused = self.ask(&["prepare", "--json"]);
        let hint = refused.json["details"]["hint"].as_str();
        let Some(digest) = hint.and_then(|hint| hint.strip_prefix("provost init --trust ")) else {
            return;
        };
        let agreed = self.ask(&["init", "--trust", digest]);
        assert_eq!(agreed.exit, 0, "{agreed:?}");
    }

    /// The ids of all runs.
    pub(crate) fn runs(&self) -> BTreeSet<String> {
        let runs = fs::read_dir(self.path("repo/.provost/runs"));
        runs.into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// The run of a scene that has had one; two of the same second are in no order.
    pub(crate) fn last_run(&self) -> Option<String> {
        self.runs().pop_last()
    }

    /// A file of a run's bundle.
    pub(crate) fn evidence(&self, run: &str, name: &str) -> PathBuf {
        self.path("repo/.provost/runs").join(run).join(name)
    }

    /// What the agent of the last run printed.
    pub(crate) fn printed(&self) -> String {
        self.printed_in(&self.last_run().unwrap())
    }

    /// What the agent of `run` printed.
    pub(crate) fn printed_in(&self, run: &str) -> String {
        let mut text = String::new();
        for task in fs::read_dir(self.evidence(run, "agent"))
            .into_iter()
            .flatten()
        {
            for log in fs::read_dir(task.unwrap().path()).unwrap() {
                text += &String::from_utf8_lossy(&fs::read(log.unwrap().path()).unwrap());
            }
        }
        text
    }
}

/// The words of `provost run`.
pub(crate) fn run_arguments<'a>(agent: &'a str, ask: &Ask<'a>) -> Vec<&'a str> {
    let mut words = vec!["run", "make it good", "--json", "--agent-cmd", agent];
    for path in ask.allow {
        words.extend(["--allow", path]);
    }
    words.extend(["--accept", ask.accept]);
    words.extend(ask.more);
    words
}

#[test]
fn a_scene_notices_what_it_is_there_for() {
    let scene = Scene::new();
    let before = scene.surroundings();
    assert_eq!(before.differences(&scene.surroundings()), [""; 0]);
    assert_eq!(scene.traces(), [""; 0]);

    scene.write("outside/canary", "owned\n");
    scene.write("repo/.git/refs/heads/planted", "0\n");
    assert_eq!(
        before.differences(&scene.surroundings()),
        ["outside/canary", "repo/.git/refs/heads/planted"]
    );

    let mut sleeper = Command::new("sleep")
        .arg0(scene.mark())
        .arg("60")
        .spawn()
        .unwrap();
    assert_eq!(scene.traces().len(), 1);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}
