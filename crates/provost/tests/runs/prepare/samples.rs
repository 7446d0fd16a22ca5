//! Real projects that go green without network once their dependencies are prepared.
//!
//! The registries are the public ones; the addresses that their names resolve to on this machine
//! are looked up at run time and granted beside them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

use provost_core::net::address::{Reach, reach};
use provost_testkit::skip;

use super::layers;
use crate::stage::{Ask, Outcome, Stage, lacks, run_arguments};

/// A project, its policy and the changes that are made to it.
struct Sample<'a> {
    /// The lines of its policy, without the grants.
    policy: &'a str,
    files: &'a [(&'a str, &'a str)],
    registries: &'a [&'a str],
    accept: &'a str,
    /// The lock file and what it is changed to.
    lock: &'a str,
    changed: &'a str,
    /// Variables of the user who runs Provost.
    variables: Vec<(&'a str, String)>,
}

/// The grants for `registries`, with the addresses that are not public here.
pub(super) fn grants(registries: &[&str]) -> Option<String> {
    let mut places = BTreeSet::new();
    for registry in registries {
        places.insert(format!("{registry}:443"));
        let found = Command::new("getent").args(["ahosts", registry]).output();
        let found = String::from_utf8(found.ok()?.stdout).ok()?;
        let first = |line: &str| line.split(' ').next()?.parse::<IpAddr>().ok();
        let addresses: Vec<IpAddr> = found.lines().filter_map(first).collect();
        if addresses.is_empty() {
            return None;
        }
        for address in addresses {
            if reach(address) != Reach::Public {
                places.insert(match address {
                    IpAddr::V4(address) => format!("{address}:443"),
                    IpAddr::V6(address) => format!("[{address}]:443"),
                });
            }
        }
    }
    let quoted: Vec<String> = places.iter().map(|place| format!("{place:?}")).collect();
    Some(format!("net = [{}]\n", quoted.join(", ")))
}

fn ask(stage: &Stage, sample: &Sample<'_>, words: &[&str]) -> Outcome {
    let mut command = stage.provost(words);
    command.envs(sample.variables.iter().cloned());
    stage.spawn(command).wait()
}

fn check(sample: &Sample<'_>) {
    let Some(net) = grants(sample.registries) else {
        skip(&format!("there is no way to {}", sample.registries[0]));
        return;
    };
    let stage = Stage::new();
    let policy = format!("{}{net}", sample.policy);
    assert!(policy.lines().count() <= 5, "{policy}");
    stage.commit(sample.files);
    let agent = stage.agent("echo good > src/a.txt");
    let request = Ask {
        accept: sample.accept,
        ..Ask::default()
    };
    let run = || ask(&stage, sample, &run_arguments(&agent, &request));
    let without = run();
    // The test program itself may be among the dependencies.
    let lacking = ["ACCEPTANCE_FAILED", "ACCEPTANCE_UNSTARTABLE"];
    assert!(lacking.contains(&without.code()), "{without:?}");

    stage.commit(&[("provost.toml", &policy)]);
    stage.agree();
    let prepare = || ask(&stage, sample, &["prepare", "--json"]);
    let first = prepare();
    assert_eq!(first.exit, 0, "{first:?}");
    let [(true, key)] = &layers(&first.json)[..] else {
        panic!("{first:?}")
    };
    assert_eq!(layers(&prepare().json), [(false, key.clone())]);
    let judged = run();
    assert_eq!((judged.code(), judged.exit), ("OK", 0), "{judged:?}");
    assert_eq!(layers(&judged.json), [(false, key.clone())]);

    stage.commit(&[(sample.lock, sample.changed)]);
    let again = prepare();
    let [(true, changed)] = &layers(&again.json)[..] else {
        panic!("{again:?}")
    };
    assert_ne!(changed, key, "a changed lock file prepares again");
}

const NPM_LOCK: &str = r#"{"name": "sample", "version": "1.0.0", "lockfileVersion": 3, "packages": {
  "": {"name": "sample", "version": "1.0.0", "dependencies": {"is-odd": "3.0.1"}},
  "node_modules/is-odd": {"version": "3.0.1", "dependencies": {"is-number": "^6.0.0"}},
  "node_modules/is-number": {"version": "6.0.0"}}}"#;

const EXPRESS: &str = r#"{"name": "sample", "version": "1.0.0",
  "scripts": {"test": "node --test test"},
  "dependencies": {"express": "4.21.2", "supertest": "7.0.0"}}"#;

#[test]
fn a_project_of_npm() {
    if lacks("npm") {
        return;
    }
    let changed = NPM_LOCK.replace("}}}", "}}}\n");
    check(&Sample {
        policy: "[[prepare]]\nrun = \"npm ci\"\n\
            inputs = [\"package.json\", \"package-lock.json\"]\noutputs = [\"node_modules\"]\n",
        files: &[
            (
                "package.json",
                r#"{"name": "sample", "version": "1.0.0", "scripts": {"test": "node test.js"},
                    "dependencies": {"is-odd": "3.0.1"}}"#,
            ),
            ("package-lock.json", NPM_LOCK),
            ("test.js", "if (!require('is-odd')(3)) process.exit(1);\n"),
            (".gitignore", "/node_modules/\n"),
        ],
        registries: &["registry.npmjs.org"],
        accept: "npm test",
        lock: "package-lock.json",
        changed: &changed,
        variables: Vec::new(),
    });
}

/// What the tests of express itself do: they start servers, and supertest asks them.
#[test]
fn a_project_of_express_with_servers_in_its_tests() {
    if lacks("npm") {
        return;
    }
    let Some(net) = grants(&["registry.npmjs.org"]) else {
        return skip("there is no way to the registry of npm");
    };
    let stage = Stage::new();
    let policy = "[[prepare]]\nrun = \"npm install --no-package-lock --no-audit --no-fund\"\n\
        inputs = [\"package.json\"]\noutputs = [\"node_modules\"]\n";
    let tests = "const app = require('express')(), test = require('node:test');\n\
        app.get('/', (request, response) => response.json({ word: 'good' }));\n\
        const request = require('supertest');\n\
        test('answers', () => request(app).get('/').expect(200, { word: 'good' }));\n\
        test('listens', (_, done) => {\n  const server = app.listen(0, '127.0.0.1', () =>\n\
        \x20   request(server).get('/none').expect(404, () => server.close(done)));\n});\n";
    stage.commit(&[
        ("provost.toml", &format!("{policy}{net}")),
        ("package.json", EXPRESS),
        ("test/app.test.js", tests),
        (".gitignore", "/node_modules/\n"),
    ]);
    let request = Ask {
        accept: "npm test",
        ..Ask::default()
    };
    stage.agree();
    // The agent starts one as well.
    let judged = stage.run("node --test test && echo good > src/a.txt", &request);
    assert_eq!((judged.code(), judged.exit), ("OK", 0), "{judged:?}");
}

#[test]
fn a_project_of_pytest() {
    if lacks("python3") {
        return;
    }
    let words = ["-c", "import ensurepip"];
    let venv = Command::new("/usr/bin/python3").args(words).output();
    if !venv.is_ok_and(|it| it.status.success()) {
        skip("there is no python3-venv");
        return;
    }
    check(&Sample {
        policy: "[[prepare]]\n\
            run = [\"python3 -m venv .venv\", \".venv/bin/pip install -q -r requirements.txt\"]\n\
            inputs = [\"requirements.txt\"]\noutputs = [\".venv\"]\n",
        files: &[
            ("requirements.txt", "pytest==8.3.4\n"),
            (
                "tests/test_a.py",
                "def test_a():\n    assert 'good' in open('src/a.txt').read()\n",
            ),
            (".gitignore", "/.venv/\n"),
        ],
        registries: &["pypi.org", "files.pythonhosted.org"],
        accept: "pytest -q tests",
        lock: "requirements.txt",
        changed: "pytest==8.3.4\niniconfig==2.0.0\n",
        variables: Vec::new(),
    });
}

/// Calls `test` with the variables that a user of Cargo has, unless there is none.
pub(super) fn with_cargo(test: impl FnOnce(Vec<(&'static str, String)>)) {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let place = |name: &str, usual: &str| {
        let given = std::env::var_os(name).map(PathBuf::from);
        given
            .unwrap_or_else(|| home.join(usual))
            .display()
            .to_string()
    };
    let (cargo, rustup) = (
        place("CARGO_HOME", ".cargo"),
        place("RUSTUP_HOME", ".rustup"),
    );
    if !PathBuf::from(&cargo).join("bin/cargo").is_file() && lacks("cargo") {
        return;
    }
    let path = format!("{cargo}/bin:/usr/local/bin:/usr/bin:/bin");
    test(vec![
        ("PATH", path),
        ("CARGO_HOME", cargo),
        ("RUSTUP_HOME", rustup),
    ]);
}

#[test]
fn a_project_of_cargo() {
    with_cargo(check_cargo);
}

fn check_cargo(variables: Vec<(&'static str, String)>) {
    let manifest = "[package]\nname = \"sample\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\
        [dependencies]\nvoid = \"=1.0.2\"\n";
    // A crate that no registry offers, also not the one on this machine.
    let lock = "version = 3\n\n[[package]]\nname = \"sample\"\nversion = \"1.0.0\"\n\
        dependencies = [\n \"void\",\n]\n\n[[package]]\nname = \"void\"\nversion = \"1.0.2\"\n\
        source = \"registry+https://github.com/rust-lang/crates.io-index\"\n\
        checksum = \"6a02e4885ed3bc0f2de90ea6dd45ebcbb66dacffe03547fadbb0eeae2770887d\"\n";
    let changed = format!("# changed\n{lock}");
    check(&Sample {
        policy: "[[prepare]]\nrun = \"cargo fetch --locked\"\n\
            inputs = [\"Cargo.toml\", \"Cargo.lock\"]\noutputs = [\"~/.cargo\"]\n",
        files: &[
            ("Cargo.toml", manifest),
            ("Cargo.lock", lock),
            (
                "src/lib.rs",
                "#[test]\nfn t() { assert_eq!(std::mem::size_of::<void::Void>(), 0); }\n",
            ),
        ],
        registries: &["index.crates.io", "static.crates.io"],
        accept: "cargo test -q --locked",
        lock: "Cargo.lock",
        changed: &changed,
        variables,
    });
}
