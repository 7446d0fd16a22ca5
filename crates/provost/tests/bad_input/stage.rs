//! A repository of its own for each test, and a way to call the program that measures it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use serde_json::Value;

/// The most work a call may be, in hundredths of a second of a processor: how long that takes is
/// up to who else is at work.
const WORK: u64 = 500;

/// When a call is ended that does not end by itself.
const HANGS: Duration = Duration::from_mins(1);

/// The most memory a call may use, in KiB.
const MEMORY: u64 = 300 * 1024;

/// Somebody with no rights.
pub(crate) const NOBODY: u32 = 65534;

/// A small repository, a home and a cache.
pub(crate) struct Stage {
    scratch: tempfile::TempDir,
    program: PathBuf,
}

/// What a call reads from its stdin.
#[derive(Debug, Clone)]
pub(crate) enum Stdin {
    Null,
    Closed,
    File(PathBuf),
}

/// One call of the program.
pub(crate) struct Call<'a> {
    stage: &'a Stage,
    argv: Vec<OsString>,
    stdin: Stdin,
    user: Option<u32>,
    directory: PathBuf,
    variables: BTreeMap<&'static str, OsString>,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        // Nobody has to get at it as well.
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
        let stage = Self {
            program: scratch.path().join("provost"),
            scratch,
        };
        // A build directory need not be open to everybody; the stage is.
        fs::copy(env!("CARGO_BIN_EXE_provost"), &stage.program).unwrap();
        for name in ["repo/src", "home", "cache", "keys"] {
            fs::create_dir_all(stage.at(name)).unwrap();
        }
        fs::set_permissions(stage.at("keys"), Permissions::from_mode(0o700)).unwrap();
        let check = stage.at("repo/check.sh");
        fs::write(&check, "#!/bin/sh\ntest -f src/new\n").unwrap();
        fs::set_permissions(&check, Permissions::from_mode(0o755)).unwrap();
        fs::write(stage.at("repo/src/old"), "old\n").unwrap();
        stage.git(&["init", "--quiet", "--initial-branch=main"]);
        stage.commit("begin");
        stage
    }

    /// A path of the stage.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in("repo", arguments)
    }

    /// Calls git in another directory of the stage.
    pub(crate) fn git_in(&self, directory: &str, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(["-c", "safe.directory=*", "-c", "gc.auto=0"])
            .args(["-c", "protocol.file.allow=always", "-c", "core.editor=true"])
            .args(arguments)
            .current_dir(self.at(directory))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all", "--force"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Gives the whole stage to somebody with no rights, as far as we may.
    pub(crate) fn give_to_nobody(&self) {
        give(self.scratch.path());
    }

    pub(crate) fn call<S: AsRef<OsStr>>(&self, argv: &[S]) -> Call<'_> {
        let variables = [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.at("home").into()),
            ("XDG_CACHE_HOME", self.at("cache").into()),
            ("PROVOST_KEYS", self.at("keys").into()),
        ];
        Call {
            stage: self,
            argv: argv.iter().map(|word| word.as_ref().to_owned()).collect(),
            stdin: Stdin::Null,
            user: None,
            directory: self.at("repo"),
            variables: BTreeMap::from(variables),
        }
    }

    /// Lets a small agent do its work, and says whether the machine has a box to do it in.
    pub(crate) fn has_a_run(&self) -> bool {
        let seen = self.call(&good_run()).run("a good run");
        match seen.exit {
            Some(0) => true,
            Some(4) if seen.stdout.contains("SANDBOX_UNAVAILABLE") => {
                provost_testkit::skip("no sandbox can be made here");
                false
            }
            other => panic!("a good run ended with {other:?}: {seen:?}"),
        }
    }

    /// Everything in the repository at `place` that belongs to its user, and not to runs: the checkout,
    /// and of git all but objects, refs and the one line of ours.
    pub(crate) fn checkout(&self, place: &str) -> BTreeMap<PathBuf, String> {
        let top = self.at(place);
        let mut all = self.listing(place);
        for git in [top.join(".git"), top.clone()] {
            let ours = [
                "objects",
                "refs/provost",
                "refs/heads/provost",
                "logs/refs/heads/provost",
                "info/exclude",
            ];
            all.retain(|path, _| !ours.iter().any(|name| path.starts_with(git.join(name))));
        }
        all.retain(|path, _| !path.starts_with(top.join(".provost")));
        all
    }

    /// What a run that is over must not have left: leases, workspaces, worktrees.
    pub(crate) fn assert_nothing_is_held(&self, place: &str, what: &str) {
        let leases = self.call(&["--json", "lease", "list"]).within(place);
        assert_eq!(leases.run(what).stdout.trim(), "[]", "{what}");
        let trees = self.git_in(place, &["worktree", "list"]);
        assert_eq!(trees.lines().count(), 1, "{what}: {trees}");
        let within = |path: &Path| path.parent().is_some_and(|it| it.ends_with("workspaces"));
        let left: Vec<PathBuf> = self.listing("cache").into_keys().collect();
        let left: Vec<&PathBuf> = left.iter().filter(|path| within(path)).collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    }

    /// The same without what `provost run -f` keeps of a contract that it refuses: the sealed record
    /// of the refusal, the runtime root around it, the key and the empty cache of the repository.
    pub(crate) fn listing_beside_refusals(&self, place: &str) -> BTreeMap<PathBuf, String> {
        let root = self.at("repo/.provost");
        let made = [
            root.clone(),
            root.join("own"),
            root.join("runs"),
            self.at("repo/.git/info/exclude"),
            self.at("keys/signing.key"),
            self.at("keys/signing.pub"),
        ];
        let cache = self.at("cache/provost");
        let mut all = self.listing(place);
        all.retain(|path, _| !made.contains(path) && !path.starts_with(root.join("refused")));
        all.retain(|path, _| *path != cache && path.parent() != Some(&cache));
        all
    }

    /// Everything below `place` that a call could have written: kind, mode, length and bytes.
    pub(crate) fn listing(&self, place: &str) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        list(&self.at(place), &mut found);
        found
    }
}

/// The command line of a run that is accepted.
pub(crate) fn good_run() -> [&'static str; 9] {
    [
        "--json",
        "run",
        "write a file",
        "--allow",
        "src",
        "--accept",
        "./check.sh",
        "--agent-cmd",
        "sh -c 'echo new > src/new'",
    ]
}

/// Shows that two pictures are the same, or what differs.
pub(crate) fn assert_same(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
    what: &str,
) {
    let mut paths: Vec<&PathBuf> = before.keys().chain(after.keys()).collect();
    paths.retain(|path| before.get(*path) != after.get(*path));
    paths.dedup();
    assert!(paths.is_empty(), "{what}: differs: {paths:?}");
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

fn list(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let Ok(facts) = path.symlink_metadata() else {
        return;
    };
    let mut line = format!("{:o}", facts.permissions().mode());
    if facts.is_file() {
        line += &match fs::read(path) {
            Ok(bytes) => format!(" {} {}", bytes.len(), provost_core::object::sha256(&bytes)),
            Err(error) => error.to_string(),
        };
    }
    found.insert(path.to_owned(), line);
    if facts.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten() {
            list(&entry.unwrap().path(), found);
        }
    }
}

impl Call<'_> {
    pub(crate) fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    pub(crate) fn by_nobody(mut self) -> Self {
        self.user = Some(NOBODY);
        self
    }

    /// Makes the call in another directory of the stage.
    pub(crate) fn within(mut self, directory: &str) -> Self {
        self.directory = self.stage.at(directory);
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.insert(name, value.into());
        self
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.variables.remove(name);
        self
    }

    /// Calls the program; it must end by itself, in time, within its memory, and not as a bug.
    pub(crate) fn run(self, what: &str) -> Seen {
        let out = tempfile::tempfile().unwrap();
        let err = tempfile::tempfile().unwrap();
        let mut child = self.start(&out, &err);
        let (status, work, peak) = follow(&mut child, what);
        let seen = Seen {
            exit: status.code(),
            stdout: read_back(out),
            stderr: read_back(err),
        };
        assert!(
            seen.exit.is_some_and(|exit| exit != 70),
            "{what}: {status}, {seen:?}"
        );
        assert!(work < WORK, "{what}: took {work} ticks");
        assert!(peak < MEMORY, "{what}: used {peak} KiB");
        seen
    }

    fn start(&self, out: &File, err: &File) -> Child {
        let mut command = match self.stdin {
            Stdin::Closed => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", "exec \"$0\" \"$@\" <&-"]);
                shell.arg(&self.stage.program);
                shell
            }
            Stdin::Null | Stdin::File(_) => Command::new(&self.stage.program),
        };
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let stdin = match &self.stdin {
            Stdin::Null | Stdin::Closed => Stdio::null(),
            Stdin::File(path) => File::open(path).unwrap().into(),
        };
        command
            .args(&self.argv)
            .current_dir(&self.directory)
            .env_clear()
            .envs(&self.variables)
            .stdin(stdin)
            .stdout(out.try_clone().unwrap())
            .stderr(err.try_clone().unwrap())
            .spawn()
            .unwrap()
    }
}

impl Seen {
    /// The answer as the one verdict object it must be: not an allow, by a code that has a page.
    pub(crate) fn verdict(&self, what: &str) -> (i32, Code) {
        let text = self.stdout.trim_end();
        assert_eq!(
            text.lines().count(),
            1,
            "{what}: {text:.200} {:.400}",
            self.stderr
        );
        let value: Value = serde_json::from_str(text).unwrap_or_else(|error| {
            panic!("{what}: {error}: {text:.200}");
        });
        assert_eq!(value["allow"], false, "{what}: {text:.200}");
        let reason = value["reason"].as_str().unwrap_or_default();
        assert!(!reason.is_empty(), "{what}: {text:.200}");
        let code = value["code"].as_str().and_then(Code::parse);
        let code = code.unwrap_or_else(|| panic!("{what}: {text:.200}"));
        (self.exit.unwrap_or(-1), code)
    }
}

/// Waits for the end; gives the status, the work in ticks and the most memory it had, in KiB.
fn follow(child: &mut Child, what: &str) -> (ExitStatus, u64, u64) {
    let begin = Instant::now();
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let (mut work, mut peak) = (0, 0);
    loop {
        // Both only grow, so no more than the last moment can be missed.
        work = work.max(ticks(&process));
        peak = peak.max(high_water(&process));
        if let Some(status) = child.try_wait().unwrap() {
            return (status, work, peak);
        }
        if begin.elapsed() > HANGS {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{what}: hangs");
        }
        sleep(Duration::from_millis(1));
    }
}

/// What a process and the children it waited for have worked.
fn ticks(process: &Path) -> u64 {
    let text = fs::read_to_string(process.join("stat")).unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default();
    let fields = fields.split_whitespace().skip(11).take(4);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// The most memory a process had so far.
fn high_water(process: &Path) -> u64 {
    let text = fs::read_to_string(process.join("status")).unwrap_or_default();
    let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let mark = mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok());
    mark.unwrap_or(0)
}

fn read_back(mut file: File) -> String {
    use std::io::{Read as _, Seek as _};
    file.rewind().unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
