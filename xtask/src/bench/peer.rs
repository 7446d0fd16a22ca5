//! The public peer `codeclone`, on the same repositories and with one process.
//!
//! It takes minutes and needs the network, so it is measured only on request. It is installed
//! beside other caches, never into the tree; a failed installation is reported.

use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ground::commit;
use super::sample::{Sample, micros, take_turns};
use super::{Bench, Ground, time};
use crate::Result;
use crate::mcp_client::Server;
use crate::repository::git;

/// The measured version, which includes the server.
const PEER: &str = "codeclone[mcp]==2.1.0a1";

/// The analysed project.
const DJANGO: &str = "Django==5.2";

/// Time limit of every command of the peer and every answer of a server.
pub(super) const PATIENCE: Duration = Duration::from_mins(10);

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
pub(super) fn measure(bench: &mut Bench, installed: bool) -> Result {
    if !installed {
        for name in NAMES {
            bench.report.skip(name, "codeclone cannot be installed");
        }
        return Ok(());
    }
    match django(&bench.ground)? {
        Some(place) => analyses(bench, &place)?,
        None => {
            for name in &NAMES[..2] {
                bench
                    .report
                    .skip(name, "the source of Django cannot be downloaded");
            }
        }
    }
    bench.report.say(&format!(
        "start and finish in {FILES} files, {} of them dirty",
        FILES / EVERY
    ));
    let (ours, theirs) = (large(&bench.ground)?, large(&bench.ground)?);
    let mut server = bench.ground.command(&bench.programs.provost(), &ours);
    server.arg("mcp");
    let ours = change(&mut server, &ours, 5)?;
    let mut server = Command::new(program("codeclone-mcp"));
    server.current_dir(&theirs);
    let theirs = change(&mut server, &theirs, 2)?;
    bench.report.judge(NAMES[2], ours, theirs, CHANGE);
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
    command.arg(PATIENCE.as_secs().to_string()).arg(program);
    command
}

/// A repository with the source of Django; `None` if it cannot be downloaded.
fn django(ground: &Ground) -> Result<Option<PathBuf>> {
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
fn analyses(bench: &mut Bench, place: &Path) -> Result {
    bench
        .report
        .say("analyses of the source of Django, one process of the peer");
    let caches = Cell::new(0);
    let ours = |cache: &str| {
        let mut command = Command::new(bench.programs.provost());
        let cache = bench.ground.path().join(cache);
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
        time(command.arg(bench.ground.path().join(cache)).arg(place))
    };
    let mut theirs = || {
        caches.set(caches.get() + 1);
        peer(&format!("peer{}.json", caches.get()))
    };
    let [ours_cold, theirs_cold] = take_turns(1, &mut [&mut cold, &mut theirs])?;
    bench.report.judge(NAMES[0], ours_cold, theirs_cold, COLD);

    let edited = place.join("django/db/models/query.py");
    let edit = || -> Result {
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
    bench.report.judge(NAMES[1], ours, theirs, EDITED);
    Ok(())
}

/// A large repository with some source code, and dirty files outside of it.
fn large(ground: &Ground) -> Result<PathBuf> {
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
    git(&place, &["add", "pkg"])?;
    git(&place, &["commit", "--quiet", "--message=source"])?;
    Ok(place)
}

/// Time to start and to finish a change of one file, without the analyses in between.
fn change(command: &mut Command, place: &Path, turns: usize) -> Result<Sample> {
    let mut server = Server::start(command, "bench", PATIENCE)?;
    let mut call = |tool: &str, arguments: &Value| -> Result<(Value, f64)> {
        let begin = Instant::now();
        let result = server.call(tool, arguments)?;
        let elapsed = micros(begin.elapsed());
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        Ok((serde_json::from_str(text).unwrap_or_default(), elapsed))
    };
    let mut times = Vec::new();
    let analyse = json!({ "root": place, "processes": 1 });
    for turn in 0..turns {
        let path = format!("pkg/m{turn}.py");
        call("analyze_repository", &analyse)?;
        let start = json!({
            "root": place, "intent": "measure", "scope": { "allowed_files": [path] },
        });
        let (started, begin) = call("start_controlled_change", &start)?;
        expect(&started, "status", "active")?;
        let text = format!("def one_{turn}():\n    return 1 + {turn}\n");
        fs::write(place.join(&path), text)?;
        let (run, _) = call("analyze_repository", &analyse)?;
        let finish = json!({
            "intent_id": started["intent_id"],
            "after_run_id": run["run_id"],
            "changed_files": [path],
        });
        let (finished, end) = call("finish_controlled_change", &finish)?;
        if !finished["status"].is_string() {
            return Err(format!("a finish without an answer: {finished}").into());
        }
        times.push(begin + end);
    }
    Ok(Sample::of(times))
}

fn expect(answer: &Value, name: &str, wanted: &str) -> Result {
    if answer[name] == wanted {
        return Ok(());
    }
    let words: String = answer.to_string().chars().take(400).collect();
    Err(format!("`{name}` is not `{wanted}`: {words}").into())
}
