//! A scratch directory, a user, and a driver process to try a sandbox with.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use provost_core::tier::Tier;
use provost_sandbox::{Ended, How, Mount, Profile};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The ordinary user as whom root repeats every test.
const UNPRIVILEGED: u32 = 65534;
/// Where the workspace is inside.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Runs `scene` for each user there is.
pub(crate) fn for_each_user(scene: impl Fn(&Stage)) {
    scene(&Stage::new(None));
    if rustix::process::geteuid().is_root() {
        scene(&Stage::new(Some(UNPRIVILEGED)));
    }
}

/// Runs `scene` for each user and each tier there is.
pub(crate) fn for_each_sandbox(scene: impl Fn(&Stage, Profile)) {
    for tier in Tier::ALL {
        for_each_user(|stage| {
            let mut profile = stage.profile();
            profile.tier = tier;
            profile.network = Profile::of_tier(tier).network;
            scene(stage, profile);
        });
    }
}

pub(crate) struct Stage {
    pub(crate) user: Option<u32>,
    directory: TempDir,
}

/// The request to a driver, beside the profile.
#[derive(Default)]
pub(crate) struct Request<'a> {
    pub(crate) argv: &'a [&'a str],
    pub(crate) stdin: Option<String>,
    pub(crate) cancel_after: Option<Duration>,
    pub(crate) refuse_birth: bool,
    pub(crate) selftest: bool,
}

/// The driver's answer, with the payload's output.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) value: Value,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn ended(&self) -> Ended {
        let ended = self
            .value
            .get("ended")
            .unwrap_or_else(|| panic!("{self:?}"));
        serde_json::from_value(ended.clone()).unwrap()
    }

    pub(crate) fn how(&self) -> How {
        self.ended().how
    }
}

impl Stage {
    fn new(user: Option<u32>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let stage = Self { user, directory };
        fs::set_permissions(stage.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_sandbox-fixture"), stage.fixture()).unwrap();
        fs::set_permissions(stage.fixture(), fs::Permissions::from_mode(0o755)).unwrap();
        for path in [stage.workspace(), stage.output()] {
            fs::create_dir(&path).unwrap();
            chown(&path, user, user).unwrap();
        }
        stage
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The program that drives, and launches, the sandboxes.
    pub(crate) fn fixture(&self) -> PathBuf {
        self.path().join("fixture")
    }

    /// The workspace, on the host.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.path().join("workspace")
    }

    fn output(&self) -> PathBuf {
        self.path().join("output")
    }

    /// A file in the workspace that belongs to this stage's user.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.workspace().join(name);
        let directory = path.parent().unwrap();
        fs::create_dir_all(directory).unwrap();
        fs::write(&path, text).unwrap();
        for path in [directory, &path] {
            chown(path, self.user, self.user).unwrap();
        }
    }

    /// A minimal sandbox with the workspace in it.
    pub(crate) fn profile(&self) -> Profile {
        let mut profile = Profile::minimal();
        profile.add(Mount::Writable {
            source: self.workspace(),
            target: WORKSPACE.into(),
        });
        profile.workdir = WORKSPACE.into();
        profile.limits.wall_seconds = 20;
        profile
    }

    /// Runs a shell script in the sandbox.
    pub(crate) fn shell(&self, profile: &Profile, script: &str) -> Answer {
        self.run(profile, &["/bin/sh", "-c", script])
    }

    pub(crate) fn run(&self, profile: &Profile, argv: &[&str]) -> Answer {
        let request = Request {
            argv,
            ..Request::default()
        };
        self.ask(profile, &request)
    }

    pub(crate) fn ask(&self, profile: &Profile, request: &Request<'_>) -> Answer {
        self.answer(self.drive(profile, request))
    }

    /// The driver's answer at its end.
    pub(crate) fn answer(&self, driver: Child) -> Answer {
        let output = driver.wait_with_output().unwrap();
        let read = |name: &str| {
            let bytes = fs::read(self.output().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Answer {
            value: serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")),
            stdout: read("stdout"),
            stderr: read("stderr"),
        }
    }

    /// Starts a driver.
    pub(crate) fn drive(&self, profile: &Profile, request: &Request<'_>) -> Child {
        let request = json!({
            "profile": profile,
            "argv": request.argv,
            "stdin": request.stdin,
            "directory": self.output(),
            "cancel_after": request.cancel_after,
            "refuse_birth": request.refuse_birth,
            "selftest": request.selftest,
        });
        let mut command = Command::new(self.fixture());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let mut child = command
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(request.to_string().as_bytes()).unwrap();
        child
    }

    /// The init of the sandbox that the driver recorded.
    pub(crate) fn init(&self) -> Option<i32> {
        let text = fs::read(self.output().join("born")).ok()?;
        let birth: Value = serde_json::from_slice(&text).ok()?;
        i32::try_from(birth["pid"].as_i64()?).ok()
    }
}
