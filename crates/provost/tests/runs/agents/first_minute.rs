//! The first minute of a user: a fresh clone, `provost init && provost run 'Fix add'`, nothing else.
//!
//! The program talks to the address of its own vendor. In a network namespace of the test that
//! address is a scripted model, so neither the policy nor a flag says anything about it.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use super::stage::{KEY, Program, certificate, programs};
use crate::defaults::{Sample, cargo, make, npm, python};
use crate::stage::{Outcome, Stage, lacks};

/// An address that is public to the proxy; it exists in the namespace alone.
const ADDRESS: &str = "198.41.0.4";

const HOSTS: &str = "127.0.0.1 localhost\n198.41.0.4 api.anthropic.com api.openai.com\n";

/// Gives the loopback device of the namespace the address.
const DEVICE: &str = "import fcntl, socket, struct, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def ask(device, what, value): fcntl.ioctl(link, what, struct.pack('16s24s', device, value))
ask(b'lo', 0x8914, struct.pack('H', 0x41))
ask(b'lo:1', 0x8916, struct.pack('HH', socket.AF_INET, 0) + socket.inet_aton(sys.argv[1]))
";

/// What the test does around the two commands of the user.
const SCRIPT: &str = "set -e
mount --bind ../hosts /etc/hosts
python3 ../device.py ADDRESS
python3 ../model.py ../turns.json ../log ../certificate ../key ADDRESS 443 > ../port &
model=$!
until [ -s ../port ]; do sleep 0.05; done
set +e
provost init >&2 && provost run 'Fix add' --json
status=$?
kill $model
exit $status
";

/// How a namespace is made here; nothing if it cannot be.
fn namespace() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["-n", "-m"], &["-r", "-n", "-m"]];
    let works = |way: &&&[&str]| {
        let trial = Command::new("unshare").args(**way).arg("true").output();
        trial.is_ok_and(|it| it.status.success())
    };
    let found = ways.iter().find(works).copied();
    if found.is_none() {
        provost_testkit::skip("no network namespace can be made here");
    }
    found
}

/// The answer to the two commands, for a user who has this program and its key.
fn first_minute(program: Program, sample: &Sample, turns: &Value) -> Option<(Stage, Outcome)> {
    let (programs, way) = (programs()?, namespace()?);
    if sample.is_skipped() || ["python3", "openssl"].iter().any(|it| lacks(it)) {
        return None;
    }
    let stage = Stage::empty();
    stage.repository("origin", sample.files);
    let [from, to] = ["origin", "repo"].map(|it| stage.path(it).display().to_string());
    stage.git_in("home", &["clone", "-q", &from, &to]);
    for (name, text) in [
        ("model.py", include_str!("model.py")),
        ("device.py", DEVICE),
        ("turns.json", &turns.to_string()),
        ("hosts", HOSTS),
    ] {
        stage.write(name, text);
    }
    certificate(&stage, "DNS:api.anthropic.com,DNS:api.openai.com");
    fs::create_dir(stage.path("bin")).unwrap();
    let own = stage.path("bin").join(program.name());
    symlink(programs.join(program.name()), own).unwrap();
    symlink(provost_testkit::stage::program(), stage.path("bin/provost")).unwrap();
    let mut command = stage.command("unshare");
    command
        .args(way)
        .args(["sh", "-c", &SCRIPT.replace("ADDRESS", ADDRESS)]);
    command.envs(sample.variables.iter().map(|(name, value)| (*name, value)));
    let path = sample.variables.iter().find(|(name, _)| *name == "PATH");
    let path = path.map_or(provost_testkit::stage::PATH, |(_, path)| path);
    command.env("PATH", format!("{}:{path}", stage.path("bin").display()));
    command.env("SSL_CERT_FILE", stage.path("certificate"));
    command.env(program.variable(), KEY);
    let outcome = stage.spawn(command).wait();
    Some((stage, outcome))
}

/// Both programs repair the project, and the user typed nothing but the objective.
fn is_accepted(sample: &Sample) {
    for program in [Program::Claude, Program::Codex] {
        let fix = format!("sed -i 's/a - b/a + b/' {}", sample.wrong);
        let turns = json!([{ "shell": fix }, { "text": "add adds now." }]);
        let Some((stage, done)) = first_minute(program, sample, &turns) else {
            return;
        };
        assert_eq!((done.code(), done.exit), ("OK", 0), "{program:?} {done:?}");
        assert_eq!(
            done.json["changed_files"],
            json!([sample.wrong]),
            "{done:?}"
        );
        let run = done.text("run_id");
        let file = stage.evidence(run, "contract.json");
        let contract: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(contract["allowed_paths"], sample.allow);
        let tests = contract["acceptance_tests"].as_array().unwrap().iter();
        let tests: Vec<&Value> = tests.map(|test| &test["cmd"]).collect();
        assert_eq!(tests, sample.accept);
        assert_eq!(stage.verify(run).exit, 0);
    }
}

#[test]
fn a_clone_of_a_python_project_needs_two_commands() {
    is_accepted(&python());
}

#[test]
fn a_clone_of_an_npm_project_needs_two_commands() {
    is_accepted(&npm());
}

#[test]
fn a_clone_of_a_make_project_needs_two_commands() {
    is_accepted(&make());
}

#[test]
fn a_clone_of_a_cargo_project_needs_two_commands() {
    if let Some(sample) = cargo() {
        is_accepted(&sample);
    }
}

/// An agent that only says so, and one that repairs the test instead.
#[test]
fn two_commands_do_not_believe_a_lie() {
    let sample = python();
    for program in [Program::Claude, Program::Codex] {
        for (work, code) in [
            ("sed -i 's/a - b/a - b - 1/' add.py", "ACCEPTANCE_FAILED"),
            ("sed -i 's/, 4)/, 0)/' test_add.py", "DIFF_REFUSED"),
        ] {
            let turns = json!([{ "shell": work }, { "text": "All tests pass." }]);
            let Some((stage, refused)) = first_minute(program, &sample, &turns) else {
                return;
            };
            let found = (refused.code(), refused.exit);
            assert_eq!(found, (code, 1), "{program:?} {refused:?}");
            assert_eq!(stage.verify(refused.text("run_id")).exit, 0);
        }
    }
}
