//! Tasks of the project: tidy checks, corpora, benches.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use provost_core::protect::page;
use xtask::{bench, corpus, dist, escape, fields, schemas, soak, tidy};

const USAGE: &str = "usage: cargo xtask tidy | corpus KIND DIR | fields [--check] | protected \
    | schemas [--check] | escape [--check] | bench [--quick | --peer] | dist \
    | soak hook [LINES]\n";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => run_tidy(),
        ["schemas"] => match schemas::write(Path::new(".")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => complain(&format!("{why}\n")),
        },
        ["schemas", "--check"] => check_schemas(),
        ["protected"] => match std::fs::write("docs/protected.md", page::render()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => complain(&format!("docs/protected.md: {why}\n")),
        },
        ["fields"] => match fields::write(Path::new(".")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => complain(&format!("{why}\n")),
        },
        ["fields", "--check"] => match fields::stale(Path::new(".")) {
            None => ExitCode::SUCCESS,
            Some(why) => complain(&format!("{why}\n")),
        },
        ["escape"] => run_escape(|program| {
            escape::write(Path::new("."), program).map(|()| "written".to_owned())
        }),
        ["escape", "--check"] => run_escape(|program| escape::check(Path::new("."), program)),
        ["dist"] => make_dist(),
        ["bench"] => show_bench(bench::run(bench::Length::Full)),
        ["bench", "--quick"] => show_bench(bench::run(bench::Length::Quick)),
        ["bench", "--peer"] => show_bench(bench::run_with_peer()),
        ["soak", "hook"] => run_soak(LONG),
        ["soak", "hook", count] => match count.parse() {
            Ok(count) => run_soak(count),
            Err(_) => complain(USAGE),
        },
        ["corpus", kind, directory] => match run_corpus(kind, Path::new(directory)) {
            Ok(code) => code,
            Err(why) => complain(&format!("{why}\n")),
        },
        _ => complain(USAGE),
    }
}

/// How many lines a comparison with bash takes if no number is given.
const LONG: usize = 100_000;

/// Compares lines that no earlier run had, and prints the seed that repeats them.
fn run_soak(count: usize) -> ExitCode {
    let seed = std::process::id().into();
    match soak::hook(count, seed) {
        Err(why) => complain(&format!("{why}\n")),
        Ok(report) => {
            let _ = writeln!(std::io::stdout().lock(), "{report}seed {seed}");
            ExitCode::from(u8::from(!report.holds()))
        }
    }
}

fn complain(words: &str) -> ExitCode {
    let _ = std::io::stderr().write_all(words.as_bytes());
    ExitCode::from(2)
}

fn run_corpus(kind: &str, directory: &Path) -> Result<ExitCode, corpus::CorpusError> {
    let program = program()?;
    let report = corpus::run(kind, directory, &program)?;
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{report}");
    Ok(if report.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The program to test: `$PROVOST`, or the one that cargo builds beside this one.
fn program() -> Result<PathBuf, corpus::CorpusError> {
    if let Some(program) = std::env::var_os("PROVOST") {
        return Ok(program.into());
    }
    let own = std::env::current_exe().map_err(|_| corpus::CorpusError::NotBuilt)?;
    // Beside this one, wherever that is: a second target directory would build everything anew.
    let target = own
        .ancestors()
        .nth(2)
        .ok_or(corpus::CorpusError::NotBuilt)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "provost", "--target-dir"])
        .arg(target)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(corpus::CorpusError::NotBuilt);
    }
    Ok(own.with_file_name("provost"))
}

fn run_escape(run: impl Fn(&Path) -> Result<String, String>) -> ExitCode {
    let program = program().map_err(|why| why.to_string());
    match program.and_then(|program| run(&program)) {
        Ok(words) => {
            let _ = writeln!(std::io::stdout().lock(), "escape: {words}");
            ExitCode::SUCCESS
        }
        Err(why) => complain(&format!("{why}\n")),
    }
}

/// Builds the program as it is published, unless `$PROVOST` names one, and packs it.
fn make_dist() -> ExitCode {
    let built = match std::env::var_os("PROVOST") {
        Some(program) => Ok(PathBuf::from(program)),
        None => dist::build(),
    };
    let made = built.and_then(|program| dist::make(Path::new("."), &program, &dist::target()));
    match made {
        Err(why) => complain(&format!("dist: {why}\n")),
        Ok(files) => {
            let mut out = std::io::stdout().lock();
            for file in files {
                let _ = writeln!(out, "{}", file.display());
            }
            ExitCode::SUCCESS
        }
    }
}

fn show_bench(measured: Result<bench::Report, bench::BenchError>) -> ExitCode {
    match measured {
        Err(why) => complain(&format!("{why}\n")),
        Ok(report) => {
            let _ = write!(std::io::stdout().lock(), "{report}");
            let required = std::env::var_os("PROVOST_TEST_REQUIRE");
            let holds = report.holds(required.is_some_and(|value| value == "all"));
            ExitCode::from(u8::from(!holds))
        }
    }
}

fn check_schemas() -> ExitCode {
    let stale = schemas::stale(Path::new("."));
    let mut out = std::io::stdout().lock();
    for path in &stale {
        let _ = writeln!(
            out,
            "{path}: is not what the types say; run `cargo xtask schemas`"
        );
    }
    let _ = writeln!(out, "schemas: {} stale", stale.len());
    ExitCode::from(u8::from(!stale.is_empty()))
}

fn run_tidy() -> ExitCode {
    match tidy::check(Path::new(".")) {
        Err(why) => complain(&format!("{why}\n")),
        Ok(findings) => {
            let mut out = std::io::stdout().lock();
            for finding in &findings {
                let _ = writeln!(out, "{finding}");
            }
            let _ = writeln!(out, "tidy: {} findings", findings.len());
            ExitCode::from(u8::from(!findings.is_empty()))
        }
    }
}
