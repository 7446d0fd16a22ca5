//! The public peer `codeclone`, on the same repositories and with one process.
//!
//! It takes minutes and needs the network, so it is measured only on request. It is installed
//! beside other caches, never into the tree; a failed installation is reported.

use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::ground::commit;
use super::sample::{Sample, take_turns};
use super::talk::Server;
use super::{BenchError, Ground, Programs, Report, time};

/// The measured version, which includes the server.
const PEER: &str = "codeclone[mcp]==2.1.0a1";

/// The analysed project.
const DJANGO: &str = "Django==5.2";

/// Time limit of every command of the peer, in seconds.
const PATIENCE: &str = "600";

/// Our analysis of everything, in analyses of the peer.
const COLD: f64 = 0.1;

/// Our analysis after one edit, in such analyses of the peer.
const EDITED: f64 = 0.01;

/// Our start and finish of a change, in those of the peer.
const CHANGE: f64 = 0.02;

/// Files in the repository of changes; every so many of them are dirty.
const FILES: usize = 50_000;
const EVERY: usize = 100;

const NAMES: [&str; 3] = [
    "cold analysis of Django : codeclone",
    "Django after an edit : codeclone",
    "start and finish : codeclone",
];

/// Everything that is compared with the peer, if it is installed.
pub(super) fn measure(
    installed: bool,
    programs: &Programs,
    ground: &Ground,
    report: &mut Report,
) -> Result<(), BenchError> {
    if !installed {
        for name in NAMES {
            report.skip(name, "codeclone cannot be installed");
        }
        return Ok(());
    }
    match django(ground)? {
        Some(place) => analyses(programs, ground, &place, report)?,
        None => {
            for name in &NAMES[..2] {
                report.skip(name, "the source of Django cannot be downloaded");
            }
        }
    }
    report.say(&format!(
        "start and finish in {FILES} files, {} of them dirty",
        FILES / EVERY
    ));
    let (ours, theirs) = (large(ground)?, large(ground)?);
    let mut server = ground.command(&programs.provost(), &ours);
    server.arg("mcp");
    let ours = change(&server, &ours, 5)?;
    let mut server = Command::new(program("codeclone-mcp"));
    server.current_dir(&theirs);
    let theirs = change(&server, &theirs, 2)?;
    report.judge(NAMES[2], ours, theirs, CHANGE);
    Ok(())
}

/// The Python that the peer was installed with, if it was.
pub(super) fn python() -> Option<PathBuf> {
    let python = program("python");
    python.is_file().then_some(python)
}

fn program(name: &str) -> PathBuf {
    home().join("bin").join(name)
}

fn home() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache")));
    let cache = cache.unwrap_or_else(std::env::temp_dir);
    cache.join("provost-bench/peer")
}

/// Whether the peer is installed, or could be installed.
pub(super) fn install() -> bool {
    let mut version = limited(&program("codeclone"));
    if version
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return true;
    }
    let mut make = limited(Path::new("python3"));
    make.args(["-m", "venv"]).arg(home());
    let mut fill = limited(&program("pip"));
    fill.args(["install", "--quiet", "--pre", PEER]);
    time(&mut make).and_then(|_| time(&mut fill)).is_ok()
}

/// A command with a time limit.
fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE).arg(program);
    command
}

/// A repository with the source of Django; `None` if it cannot be downloaded.
fn django(ground: &Ground) -> Result<Option<PathBuf>, BenchError> {
    let place = ground.fresh()?;
    let mut download = limited(&program("pip"));
    download
        .args(["download", "--quiet", "--no-deps", "--no-binary", ":all:"])
        .arg(DJANGO)
        .arg("--dest")
        .arg(&place);
    if time(&mut download).is_err() {
        return Ok(None);
    }
    let archive = fs::read_dir(&place)?.flatten().map(|entry| entry.path());
    let Some(archive) = archive.into_iter().next() else {
        return Ok(None);
    };
    let place = ground.fresh()?;
    let mut unpack = Command::new("tar");
    unpack.args([
        "--extract",
        "--gzip",
        "--no-same-owner",
        "--strip-components=1",
    ]);
    time(
        unpack
            .arg("--file")
            .arg(archive)
            .arg("--directory")
            .arg(&place),
    )?;
    commit(&place)?;
    Ok(Some(place))
}

/// Analyses of everything, and after an edit of one file.
fn analyses(
    programs: &Programs,
    ground: &Ground,
    place: &Path,
    report: &mut Report,
) -> Result<(), BenchError> {
    report.say("analyses of the source of Django, one process of the peer");
    let caches = Cell::new(0);
    let ours = |cache: &str| {
        let mut command = Command::new(programs.provost());
        let cache = ground.path().join(cache);
        time(
            command
                .arg("analyze")
                .arg(place)
                .env("XDG_CACHE_HOME", cache),
        )
    };
    let mut cold = || {
        caches.set(caches.get() + 1);
        ours(&format!("cold{}", caches.get()))
    };
    let peer = |cache: &str| {
        let mut command = limited(&program("codeclone"));
        command.args(["--processes", "1", "--quiet", "--no-color", "--cache-path"]);
        time(command.arg(ground.path().join(cache)).arg(place))
    };
    let mut theirs = || {
        caches.set(caches.get() + 1);
        peer(&format!("peer{}.json", caches.get()))
    };
    let [ours_cold, theirs_cold] = take_turns(1, &mut [&mut cold, &mut theirs])?;
    report.judge(NAMES[0], ours_cold, theirs_cold, COLD);

    let edited = place.join("django/db/models/query.py");
    let edit = || -> Result<(), BenchError> {
        caches.set(caches.get() + 1);
        let mut file = fs::File::options().append(true).open(&edited)?;
        writeln!(file, "\n\ndef edit_{0}():\n    return {0}", caches.get())?;
        Ok(())
    };
    ours("warm")?;
    peer("warm.json")?;
    let mut one = || {
        edit()?;
        ours("warm")
    };
    let mut other = || {
        edit()?;
        peer("warm.json")
    };
    let [ours, theirs] = take_turns(5, &mut [&mut one, &mut other])?;
    report.judge(NAMES[1], ours, theirs, EDITED);
    Ok(())
}

/// A large repository with some source code, and dirty files outside of it.
fn large(ground: &Ground) -> Result<PathBuf, BenchError> {
    let place = PathBuf::from(ground.checkout_of(FILES)?);
    for number in (EVERY..FILES).step_by(EVERY) {
        let path = format!("d{}/e{}/f{number}.txt", number / 400, number / 20 % 20);
        fs::write(place.join(path), "changed\n")?;
    }
    fs::create_dir(place.join("pkg"))?;
    for number in 0..10 {
        let text = format!("def one_{number}():\n    return {number}\n");
        fs::write(place.join(format!("pkg/m{number}.py")), text)?;
    }
    let mut git = Command::new("git");
    git.args([
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "gc.auto=0",
    ]);
    time(git.args(["add", "pkg"]).current_dir(&place))?;
    let mut git = Command::new("git");
    git.args([
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "gc.auto=0",
    ]);
    time(
        git.args(["commit", "--quiet", "--message=source"])
            .current_dir(&place),
    )?;
    Ok(place)
}

/// Time to start and to finish a change of one file, without the analyses in between.
fn change(command: &Command, place: &Path, turns: usize) -> Result<Sample, BenchError> {
    let mut server = Server::start(command)?;
    let mut times = Vec::new();
    let analyse = json!({ "root": place, "processes": 1 });
    for turn in 0..turns {
        let path = format!("pkg/m{turn}.py");
        server.call("analyze_repository", &analyse)?;
        let start = json!({
            "root": place, "intent": "measure", "scope": { "allowed_files": [path] },
        });
        let (started, begin) = server.call("start_controlled_change", &start)?;
        expect(&started, "status", "active")?;
        let text = format!("def one_{turn}():\n    return 1 + {turn}\n");
        fs::write(place.join(&path), text)?;
        let (run, _) = server.call("analyze_repository", &analyse)?;
        let finish = json!({
            "intent_id": started["intent_id"],
            "after_run_id": run["run_id"],
            "changed_files": [path],
        });
        let (finished, end) = server.call("finish_controlled_change", &finish)?;
        if !finished["status"].is_string() {
            return Err(BenchError(format!(
                "a finish without an answer: {finished}"
            )));
        }
        times.push(begin + end);
    }
    Ok(Sample::of(times))
}

fn expect(answer: &Value, name: &str, wanted: &str) -> Result<(), BenchError> {
    if answer[name] == wanted {
        return Ok(());
    }
    let words: String = answer.to_string().chars().take(400).collect();
    Err(BenchError(format!("`{name}` is not `{wanted}`: {words}")))
}
