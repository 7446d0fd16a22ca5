//! Latency for agents: from the start of a server to its list of tools, and the decision of a hook
//! before each edit.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use super::sample::{micros, take_turns};
use super::{Bench, Ground, has, peer, time};
use crate::Result;
use crate::mcp_client::Server;

/// The start of our server, in starts of one in Python.
const SERVER: f64 = 1.0 / 40.0;

/// A decision of a hook, in starts of a program that does nothing.
const HOOK: f64 = 5.0;

/// How much the git hooks may slow an operation on an unbound branch, in microseconds.
const SLOWED: f64 = 5000.0;

/// The smallest server that the Python library can make.
const MINIMAL: &str = "
from mcp.server.fastmcp import FastMCP
server = FastMCP('minimal')
@server.tool()
def echo(text: str) -> str:
    return text
server.run()
";

/// From the start of a server to its list of tools.
pub(super) fn server(bench: &mut Bench) -> Result {
    let name = "start of provost mcp : Python";
    let Some(python) = python() else {
        bench
            .report
            .skip(name, "there is no python3 with the package mcp");
        return Ok(());
    };
    let repository = bench.ground.repository()?;
    let mut ours = bench.ground.command(&bench.programs.provost(), &repository);
    ours.arg("mcp");
    let mut theirs = Command::new(python);
    theirs.args(["-c", MINIMAL]);
    let mut one = || listed(&mut ours);
    let mut other = || listed(&mut theirs);
    let [ours, theirs] = take_turns(bench.length.pick(5, 15), &mut [&mut one, &mut other])?;
    bench.report.judge(name, ours, theirs, SERVER);
    Ok(())
}

fn listed(command: &mut Command) -> Result<f64> {
    let begin = Instant::now();
    let mut server = Server::start(command, "bench", peer::PATIENCE)?;
    let answer = server.ask("tools/list", &json!({}))?;
    let took = micros(begin.elapsed());
    if answer["tools"].as_array().is_none_or(Vec::is_empty) {
        return Err("a server without tools".into());
    }
    Ok(took)
}

/// A Python that has the library: the machine's, or the one beside the peer.
fn python() -> Option<PathBuf> {
    let known = [Some(PathBuf::from("python3")), peer::python()];
    let works = |python: &PathBuf| {
        let name = python.to_str().unwrap_or_default();
        has(name, &["-c", "import mcp.server.fastmcp"])
    };
    known.into_iter().flatten().find(works)
}

/// A decision about an edit inside of an active change, from start to exit.
pub(super) fn hook(bench: &mut Bench) -> Result {
    let repository = bench.ground.repository()?.canonicalize()?;
    let change = |words: &[&str]| {
        let mut command = bench.ground.command(&bench.programs.provost(), &repository);
        time(command.args(["change", "--agent", "bench"]).args(words))
    };
    change(&["analyze"])?;
    change(&["start", "an edit", "--file", "src/old"])?;
    let edit = asked(&repository, "src/old", &bench.ground)?;
    let other = asked(&repository, "check.sh", &bench.ground)?;
    let ask = |question: &Path| -> Result<Command> {
        let mut command = bench.ground.command(&bench.programs.provost(), &repository);
        command
            .args(["hook", "claude"])
            .stdin(File::open(question)?);
        Ok(command)
    };
    // A hook that allows everything decides nothing.
    if ask(&other)?.output()?.status.success() {
        return Err("the hook allows an edit outside every declared scope".into());
    }
    let mut decision = || time(&mut ask(&edit)?);
    let mut bare = || time(&mut Command::new("/bin/true"));
    let [decision, bare] = take_turns(bench.length.pick(40, 200), &mut [&mut decision, &mut bare])?;
    bench
        .report
        .judge("decision of a hook : true", decision, bare, HOOK);
    Ok(())
}

/// Operations on an unbound branch, in a repository with all git hooks and a bound checkout.
pub(super) fn unbound_ref(bench: &mut Bench) -> Result {
    let repository = bench.ground.repository()?.canonicalize()?;
    // Bindings count only in a runtime root that a run of this user made.
    bench.ground.run(&bench.programs.provost(), &repository)?;
    let mut install = bench.ground.command(&bench.programs.provost(), &repository);
    time(install.args(["hook", "install"]))?;
    let bindings = json!({ "bindings": [{
        "to": { "checkout": repository }, "contract": "/nowhere", "sha256": "", "base": "",
    }] });
    fs::create_dir_all(repository.join(".provost"))?;
    fs::write(
        repository.join(".provost/hooks.json"),
        format!("{bindings:#}\n"),
    )?;
    let git = |settings: &[&str], words: &[&str]| {
        let mut command = bench.ground.command(Path::new("git"), &repository);
        time(command.args(settings).args(words))
    };
    let unhooked = ["-c", "core.hooksPath=/dev/null"];
    let cases: [(&str, &[&str], usize); 3] = [
        (
            "move of an unbound ref, hooks : none",
            &["update-ref", "refs/remotes/r/x", "HEAD"],
            bench.length.pick(20, 100),
        ),
        (
            "fetch of a new ref, hooks : none",
            &["fetch", "-q", ".", "+HEAD:refs/remotes/r/y"],
            bench.length.pick(10, 40),
        ),
        ("gc, hooks : none", &["gc", "-q"], bench.length.pick(5, 15)),
    ];
    for (name, words, turns) in cases {
        let away = ["update-ref", "-d", "refs/remotes/r/y"];
        let mut hooked = || git(&unhooked, &away).and_then(|_| git(&[], words));
        let mut bare = || git(&unhooked, &away).and_then(|_| git(&unhooked, words));
        let [hooked, bare] = take_turns(turns, &mut [&mut hooked, &mut bare])?;
        let limit = (bare.median + SLOWED) / bare.median;
        bench.report.judge(name, hooked, bare, limit);
    }
    Ok(())
}

/// The question of an agent before it edits `path`, as a file.
fn asked(repository: &Path, path: &str, ground: &Ground) -> Result<PathBuf> {
    let event = json!({
        "session_id": "bench",
        "transcript_path": "/dev/null",
        "cwd": repository,
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "tool_input": {
            "file_path": repository.join(path), "old_string": "old", "new_string": "new",
        },
    });
    let place = ground
        .path()
        .join(format!("{}.json", path.replace('/', "-")));
    fs::write(&place, event.to_string())?;
    Ok(place)
}
