//! Tasks of the project: tidy checks, corpora, benches.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use provost_core::protect::page;
use xtask::repository::program;
use xtask::{Result, TaskError};
use xtask::{bench, corpus, dist, escape, fields, lines, schemas, soak, tidy};

const USAGE: &str = "usage: cargo xtask tidy | corpus KIND DIR | fields [--check] | protected \
    | schemas [--check] | escape [--check | --namespaces] | lines [--check | --write] \
    | bench [--quick | --peer | --gateway] | dist | soak hook [LINES] | soak gateway [ROUNDS] \
    | soak children [ROUNDS] | soak replay [ROUNDS] | soak room [RUNS LIVE]";

/// How many lines a comparison with bash takes if no number is given.
const LONG: usize = 100_000;
/// The same for the orders in which requests reserve from a budget.
const ROUNDS: usize = 10_000;

/// The same for replays of each program.
const REPLAYS: usize = 10;
/// How many runs the control room shows, and how many of their ledgers grow.
const RUNS: usize = 10_000;
const LIVE: usize = 200;

/// What is printed, and whether all is well; or why the task could not be done.
type Done = Result<(String, bool)>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok((text, is_well)) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(u8::from(!is_well))
        }
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[&str]) -> Done {
    let root = Path::new(".");
    match words {
        ["tidy"] => tidy::check(root).map(|found| listed("tidy", "findings", &found)),
        ["schemas"] => silent(schemas::write(root)),
        ["schemas", "--check"] => Ok(listed("schemas", "stale", &schemas::stale(root))),
        ["protected"] => silent(std::fs::write("docs/protected.md", page::render())),
        ["fields"] => silent(fields::write(root)),
        ["fields", "--check"] => silent(fields::check(root)),
        ["lines"] => lines::show(root).map(|text| (text, true)),
        ["lines", "--check"] => silent(lines::check(root)),
        ["lines", "--write"] => silent(lines::write(root)),
        ["escape"] => {
            escape::write(root, &program()?)?;
            Ok(("escape: written\n".to_owned(), true))
        }
        ["escape", "--namespaces"] => {
            let words = escape::namespaces(root, &program()?)?;
            Ok((format!("escape: {words}\n"), true))
        }
        ["escape", "--check"] => {
            let words = escape::check(root, &program()?)?;
            Ok((format!("escape: {words}\n"), true))
        }
        ["dist"] => make_dist(root),
        ["bench"] => Ok(judged(&bench::run(bench::Length::Full)?)),
        ["bench", "--quick"] => Ok(judged(&bench::run(bench::Length::Quick)?)),
        ["bench", "--peer"] => Ok(judged(&bench::run_with_peer()?)),
        ["bench", "--gateway"] => Ok(judged(&bench::run_gateway()?)),
        ["soak", "gateway"] => soak::gateway(ROUNDS).map(|text| (text, true)),
        ["soak", "children"] => soak::children(ROUNDS).map(|text| (text, true)),
        ["soak", "children", count] => soak::children(count.parse()?).map(|text| (text, true)),
        ["soak", "gateway", count] => soak::gateway(count.parse()?).map(|text| (text, true)),
        ["soak", "replay"] => soak::replay(REPLAYS).map(|text| (text, true)),
        ["soak", "replay", count] => soak::replay(count.parse()?).map(|text| (text, true)),
        ["soak", "room"] => soak::room(RUNS, LIVE).map(|text| (text, true)),
        ["soak", "room", runs, live] => {
            soak::room(runs.parse()?, live.parse()?).map(|text| (text, true))
        }
        ["soak", "hook"] => run_soak(LONG),
        ["soak", "hook", count] => run_soak(count.parse()?),
        ["corpus", kind, directory] => {
            let report = corpus::run(kind, Path::new(directory), &program()?)?;
            Ok((report.to_string(), report.holds()))
        }
        _ => Err(USAGE.into()),
    }
}

fn silent(done: Result<(), impl Into<TaskError>>) -> Done {
    done.map(|()| (String::new(), true)).map_err(Into::into)
}

/// A line each, and how many there are; well if there are none.
fn listed(task: &str, what: &str, found: &[impl ToString]) -> (String, bool) {
    let mut text = String::new();
    for one in found {
        let _ = writeln!(text, "{}", one.to_string());
    }
    let _ = writeln!(text, "{task}: {} {what}", found.len());
    (text, found.is_empty())
}

/// Compares lines that no earlier run had, and prints the seed that repeats them.
fn run_soak(count: usize) -> Done {
    let seed = std::process::id().into();
    let report = soak::hook(count, seed)?;
    Ok((format!("{report}seed {seed}\n"), report.holds()))
}

/// Builds the program as it is published, unless `$PROVOST` names one, and packs it.
fn make_dist(root: &Path) -> Done {
    let built = match std::env::var_os("PROVOST") {
        Some(program) => Ok(PathBuf::from(program)),
        None => dist::build(),
    };
    let made = built.and_then(|program| dist::make(root, &program, &dist::target()));
    let files = made.map_err(|why| format!("dist: {why}"))?;
    let line = |file: PathBuf| format!("{}\n", file.display());
    Ok((files.into_iter().map(line).collect(), true))
}

fn judged(report: &bench::Report) -> (String, bool) {
    let required = std::env::var_os("PROVOST_TEST_REQUIRE");
    let holds = report.holds(required.is_some_and(|value| value == "all"));
    (report.to_string(), holds)
}
