//! One user with secrets, and a workspace with the hostile programs in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::list::{Attack, Counts, Who};

/// User id of `nobody`: the unprivileged user for attacks that root makes.
const UNPRIVILEGED: u32 = 65534;
/// An attack that every program must answer with 0; otherwise its results mean nothing.
const CONTROL: &str = "control";
/// How long a process may take to show that it is still alive.
const AFTERWARDS: Duration = Duration::from_secs(3);
const FILES: [&str; 6] = [
    "batch.sh",
    "files.sh",
    "memory.py",
    "processes.sh",
    "sockets.py",
    "targets.py",
];

pub(super) struct Stage {
    who: Who,
    directory: TempDir,
    canary: String,
    targets: Child,
}

impl Stage {
    pub(super) fn new(
        programs: &Path,
        provost: &Path,
        attacks: &[Attack],
        who: Who,
    ) -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("provost-escape-")
            .tempdir()
            .map_err(words("a directory"))?;
        let place = directory.path();
        let random = place.file_name().unwrap_or_default().to_string_lossy();
        let canary = format!("canary-of-{random}");
        let fill = || -> std::io::Result<()> {
            fs::set_permissions(place, fs::Permissions::from_mode(0o755))?;
            for name in ["host", "home", "work"] {
                fs::create_dir(place.join(name))?;
            }
            for name in FILES {
                fs::copy(programs.join(name), place.join("work").join(name))?;
            }
            fs::copy(provost, place.join("provost"))?;
            fs::write(place.join("work/attacks"), batch(attacks))?;
            if who == Who::User && rustix::process::geteuid().is_root() {
                for name in ["host", "home", "work"] {
                    chown(place.join(name), Some(UNPRIVILEGED), Some(UNPRIVILEGED))?;
                }
            }
            Ok(())
        };
        fill().map_err(words("the stage"))?;
        compile(&programs.join("kernel.c"), &place.join("work/kernel"))?;
        let targets = put_up(place, who, &random, &canary)?;
        Ok(Self {
            who,
            directory,
            canary,
            targets,
        })
    }

    fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// State outside the sandbox: names, modes, times and sizes of all files there.
    pub(super) fn outside(&self) -> Result<BTreeMap<PathBuf, (u32, i64, u64)>, String> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.directory.path().join("host")];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).map_err(words("the outside"))? {
                let entry = entry.map_err(words("the outside"))?;
                let about = entry.metadata().map_err(words("the outside"))?;
                if about.is_dir() {
                    left.push(entry.path());
                }
                let facts = (about.mode(), about.mtime_nsec(), about.size());
                found.insert(entry.path(), facts);
            }
        }
        Ok(found)
    }

    /// Which attacks escape from a sandbox with the options `words`.
    pub(super) fn sandboxed(
        &self,
        words: &[&str],
        attacks: &[Attack],
    ) -> Result<BTreeMap<String, bool>, String> {
        let provost = self.directory.path().join("provost");
        let work = self.work();
        let mut argv = vec![provost.to_string_lossy().into_owned(), "sandbox".to_owned()];
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        argv.extend(["--timeout", "3m", "--allow"].map(str::to_owned));
        argv.extend([work.to_string_lossy().into_owned(), "--".to_owned()]);
        self.run(argv, attacks)
    }

    /// Which attacks work without a sandbox.
    pub(super) fn bare(&self, attacks: &[Attack]) -> Result<BTreeMap<String, bool>, String> {
        self.run(Vec::new(), attacks)
    }

    fn run(
        &self,
        mut argv: Vec<String>,
        attacks: &[Attack],
    ) -> Result<BTreeMap<String, bool>, String> {
        let work = self.work();
        let outlived = work.join("outlived");
        let _ = fs::remove_file(&outlived);
        argv.extend([
            "bash".to_owned(),
            work.join("batch.sh").to_string_lossy().into(),
        ]);
        // A variable and a descriptor that an attacker could inherit.
        let mut command = Command::new("bash");
        command
            .args(["-c", "exec 9< \"$0\"; exec \"$@\""])
            .arg(self.directory.path().join("host/secret"))
            .args(&argv)
            .env("INHERITED", &self.canary);
        as_user(&mut command, self.directory.path(), self.who);
        let output = command.output().map_err(words("bash"))?;
        let results = results(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        for (name, (status, said)) in &results {
            let control = name.ends_with(CONTROL);
            if matches!(status, 126 | 127) || (control && *status != 0) {
                return Err(format!("{name} did not run: {said}{complaint}"));
            }
        }
        let mut column = BTreeMap::new();
        for attack in attacks {
            let (status, said) = results
                .get(&attack.name)
                .ok_or_else(|| format!("{} has no result: {complaint}", attack.name))?;
            let out = match attack.counts {
                Counts::Reads => said.contains(&self.canary),
                Counts::Does => *status == 0,
                Counts::Lasts => appears(&outlived),
            };
            column.insert(attack.name.clone(), out);
        }
        Ok(column)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.targets.stdin.take());
        let _ = self.targets.wait();
    }
}

/// The list for `batch.sh`: first whether the programs run at all.
fn batch(attacks: &[Attack]) -> String {
    let mut programs: Vec<&str> = attacks
        .iter()
        .filter_map(|attack| Some(attack.name.split_once('/')?.0))
        .collect();
    programs.sort_unstable();
    programs.dedup();
    let controls = programs
        .iter()
        .map(|program| format!("{program}/{CONTROL}"));
    let names = attacks.iter().map(|attack| attack.name.clone());
    controls
        .chain(names)
        .fold(String::new(), |text, name| text + &name + "\n")
}

fn compile(source: &Path, program: &Path) -> Result<(), String> {
    let status = Command::new("cc")
        .args(["-O1", "-o"])
        .args([program, source])
        .status()
        .map_err(words("cc"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} does not compile", source.display()))
    }
}

/// Starts the targets of the attacks, and waits until all of them exist.
fn put_up(place: &Path, who: Who, name: &str, canary: &str) -> Result<Child, String> {
    let mut command = Command::new("python3");
    command
        .arg(place.join("work/targets.py"))
        .args([place.join("host"), place.join("work/targets")])
        .args([name, canary])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    as_user(&mut command, place, who);
    let mut child = command.spawn().map_err(words("python3"))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout.take(64))
            .read_line(&mut line)
            .map_err(words("the targets"))?;
    }
    if line == "ready\n" {
        return Ok(child);
    }
    let _ = child.kill();
    let _ = child.wait();
    Err("the targets could not be put up".to_owned())
}

fn as_user(command: &mut Command, place: &Path, who: Who) {
    command
        .env_remove("PROVOST_ROOT")
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", place.join("home"))
        .current_dir(place.join("work"));
    if who == Who::User && rustix::process::geteuid().is_root() {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
}

/// Exit status and output of each attack.
fn results(bytes: &[u8]) -> BTreeMap<String, (i32, String)> {
    let text = String::from_utf8_lossy(bytes);
    let parts = text.split("\n--- ").skip(1);
    let one = |part: &str| {
        let (name, rest) = part.split_once('\n')?;
        let (said, status) = rest.rsplit_once("\n=== ")?;
        let status = status.trim().parse().ok()?;
        Some((name.to_owned(), (status, said.to_owned())))
    };
    parts.filter_map(one).collect()
}

/// Whether a file appears in time.
fn appears(path: &Path) -> bool {
    let end = Instant::now() + AFTERWARDS;
    while !path.exists() && Instant::now() < end {
        thread::sleep(Duration::from_millis(50));
    }
    path.exists()
}

fn words(what: &str) -> impl Fn(std::io::Error) -> String {
    let what = what.to_owned();
    move |why| format!("{what}: {why}")
}
