//! `provost agent test`: a small task in a temporary repository, run like any other.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::policy;
use provost_host::git::Git;
use serde::Serialize;
use serde_json::Value;

use super::super::net::Net;
use crate::answer::{Answer, Failure, Outcome};
use crate::places::Places;
use crate::show::{Reader, one_line, print_message};

/// The objective of the trial.
const OBJECTIVE: &str = "Write the word hello, and nothing else, into the new file hello.txt.";
const FILE: &str = "hello.txt";
const ACCEPT: &str = "grep -qx hello hello.txt";

/// Have an agent do a small task in a temporary repository and report what works.
#[derive(Args)]
#[command(
    after_help = "It sends requests to the agent's model, which may cost a little.

Examples:
  provost agent test codex
  provost agent test claude --login
  provost agent test mine --net 127.0.0.1:8080"
)]
pub(in crate::cli) struct Test {
    /// An agent of `provost.toml`, or codex, claude or gemini.
    pub(super) name: String,

    /// Only ask the model for one word, to see whether the login works.
    #[arg(long)]
    pub(super) login: bool,

    #[command(flatten)]
    pub(super) net: Net,
}

pub(super) fn run(trial: &Test, reader: Reader) -> Outcome {
    let bench = Bench::make()?;
    bench.repository()?;
    if reader == Reader::Person {
        print_message(&format!("asking {} to write one word", trial.name));
    }
    let answer = bench.run(trial)?;
    let verdict = &answer["verdict"];
    // A run that could not begin has the refusal as its whole answer.
    let verdict = if verdict.is_null() { &answer } else { verdict };
    let passed = verdict["allow"] == true;
    let words = |value: &Value| value.as_str().map(one_line).unwrap_or_default();
    let mut text = if passed {
        format!("{} works\n", trial.name)
    } else {
        let (code, reason) = (words(&verdict["code"]), words(&verdict["reason"]));
        format!("{} does not work: {code}: {reason}\n", trial.name)
    };
    if let Value::String(hint) = &verdict["details"]["hint"] {
        text += &format!("hint: {}\n", one_line(hint));
    }
    for (gate, said) in answer["gates"].as_object().into_iter().flatten() {
        let mark = if said["allow"] == true { "ok" } else { "NO" };
        text += &format!("  {mark}  {gate:10} {}\n", words(&said["reason"]));
    }
    for line in answer["network"].as_array().into_iter().flatten() {
        let (target, code) = (words(&line["target"]), words(&line["code"]));
        text += &format!("  network  {target}: {code}, {} times\n", line["count"]);
    }
    let exit = if passed { Exit::Yes } else { Exit::No };
    let tried = TriedAgent {
        agent: &trial.name,
        works: passed,
        run: &answer,
    };
    Ok(Answer::new(exit, tried, text))
}

#[derive(Serialize)]
struct TriedAgent<'a> {
    agent: &'a str,
    works: bool,
    /// The answer of the run.
    run: &'a Value,
}

/// The directory of one trial, removed afterwards.
struct Bench(PathBuf);

impl Bench {
    fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("provost-agent-{}", std::process::id()));
        for directory in [path.clone(), path.join("repository")] {
            let made = DirBuilder::new().mode(0o700).create(&directory);
            made.map_err(|error| refused(&directory, &error))?;
        }
        Ok(Self(path))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates a repository with the policy of the current checkout, if there is one.
    fn repository(&self) -> Result<(), Failure> {
        let own = Places::around(Path::new(".")).ok();
        let own = own.and_then(|place| Some(place.repo.checkout()?.join(policy::FILE)));
        let text = own.and_then(|file| fs::read(file).ok()).unwrap_or_default();
        let path = self.at("repository").join(policy::FILE);
        fs::write(&path, text).map_err(|error| refused(&path, &error))?;
        let git = Git::find(&[]).map_err(|error| Failure::of(Code::GitMissing, &error))?;
        for words in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "--all"],
            &["commit", "--quiet", "--message=Before"],
        ] {
            let mut command = Command::new(git.program());
            for role in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{role}_NAME"), "Provost");
                command.env(format!("GIT_{role}_EMAIL"), "provost@localhost");
            }
            command
                .env("HOME", &self.0)
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .args(words);
            let output = self.call(command)?;
            if !output.status.success() {
                let reason = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(Failure::new(Code::GitFailed, reason.trim().to_owned()));
            }
        }
        Ok(())
    }

    /// The answer of `provost run` with the agent under test.
    fn run(&self, test: &Test) -> Result<Value, Failure> {
        let own = std::env::current_exe().map_err(|error| refused(&self.0, &error))?;
        let mut command = Command::new(own);
        command
            .args(["run", OBJECTIVE, "--allow", FILE, "--accept", ACCEPT])
            .args(["--timeout", "5m", "--json", "--agent", &test.name])
            .args(test.net.words())
            .env("XDG_CACHE_HOME", self.at("cache"))
            .env("PROVOST_ROOT", self.at("runtime"))
            .env("PROVOST_KEYS", self.at("keys"));
        let output = self.call(command)?;
        serde_json::from_slice::<Value>(&output.stdout).map_err(|_| {
            let words = String::from_utf8_lossy(&output.stderr);
            let reason = format!("the trial gave no answer: {}", one_line(words.trim()));
            Failure::new(Code::HostFailed, reason)
        })
    }

    fn call(&self, mut command: Command) -> Result<Output, Failure> {
        command
            .current_dir(self.at("repository"))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| refused(&self.0, &error))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Code::HostFailed, format!("`{}`: {error}", path.display()))
}
