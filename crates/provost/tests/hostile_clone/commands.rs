//! Every command of the program, called in a repository that another user prepared.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use provost_testkit::stage::Outcome;

use crate::stage::{SECRET, Users};
use crate::traps::{self, Traps};

/// What a command has to do with the runtime root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touch {
    /// It leaves it alone.
    Nothing,
    /// It reads it.
    Looks,
    /// It would continue what is there, or write.
    Uses,
}

use Touch::{Looks, Nothing, Uses};

/// How each command is called here; `RUN` stands for each run of the author.
const CALLS: &[(&str, Touch, &[&str])] = &[
    ("init", Uses, &[""]),
    ("doctor", Nothing, &["", "--fix"]),
    ("agent list", Nothing, &[""]),
    ("agent test", Nothing, &["missing"]),
    ("prepare", Nothing, &[""]),
    // It works in a repository of its own, for longer than a test should.
    ("demo", Nothing, &["--help"]),
    ("completions", Nothing, &["bash"]),
    // The server ends when it is stopped; its own tests start it.
    ("serve", Nothing, &["--help"]),
    ("serve token", Nothing, &["list"]),
    ("serve link", Nothing, &[""]),
    ("serve repositories", Nothing, &["list"]),
    // They speak to the socket of a sandbox, and here is none.
    ("child start", Nothing, &["x --key k"]),
    ("child wait", Nothing, &["k"]),
    ("child cancel", Nothing, &["k"]),
    ("child list", Nothing, &[""]),
    ("child message", Nothing, &["k x --key k"]),
    ("child reply", Nothing, &["k q x --key k"]),
    ("child monitor", Nothing, &["k"]),
    ("child send", Nothing, &["x --key k"]),
    ("child ask", Nothing, &["x --key k"]),
    ("child read", Nothing, &[""]),
    ("child mcp", Nothing, &[""]),
    ("ask path", Nothing, &["src/a.txt why"]),
    ("ask oracle", Nothing, &["src/a.txt why"]),
    ("ask governing", Nothing, &["src/a.txt why"]),
    ("ask fewer-tests", Nothing, &["why"]),
    ("plan", Uses, &["x --agent-cmd true"]),
    ("split", Uses, &["-f contract.json --agent-cmd true"]),
    (
        "contract new",
        Nothing,
        &["new.json x --allow src --accept true"],
    ),
    ("contract lint", Nothing, &["contract.json"]),
    ("contract learn", Looks, &["RUN"]),
    (
        "run",
        Uses,
        &[
            "x --allow src/a.txt --accept sh.check.sh --agent-cmd true",
            "-f contract.json --agent-cmd true",
        ],
    ),
    ("judge", Uses, &["HEAD --allow src --accept true"]),
    ("case", Uses, &["x --agent-cmd true --no-review"]),
    ("case list", Looks, &[""]),
    ("case show", Looks, &["RUN"]),
    ("chain", Uses, &["-f chain.json --agent-cmd true"]),
    ("status", Looks, &[""]),
    ("approve", Uses, &["RUN", "RUN --go"]),
    ("reject", Uses, &["RUN"]),
    ("cancel", Uses, &["RUN"]),
    ("retry", Uses, &["RUN"]),
    ("land", Uses, &["RUN"]),
    ("resume", Uses, &["", "RUN"]),
    ("hook install", Uses, &["", "claude", "codex"]),
    ("hook uninstall", Uses, &["", "claude", "codex"]),
    ("hook status", Uses, &[""]),
    ("hook bind", Uses, &["contract.json"]),
    ("hook unbind", Uses, &[""]),
    ("hook selftest", Uses, &["claude"]),
    ("hook claude", Nothing, &[""]),
    ("hook codex", Nothing, &[""]),
    ("hook run", Uses, &["pre-commit"]),
    ("change analyze", Uses, &[""]),
    ("change start", Uses, &["x --file src/a.txt"]),
    ("change finish", Uses, &["x --file src/a.txt"]),
    ("change status", Uses, &["x"]),
    ("change queue", Uses, &["x --file src/a.txt"]),
    ("change promote", Uses, &["x"]),
    ("change renew", Uses, &["x"]),
    ("change clear", Uses, &[""]),
    ("change recover", Uses, &["x --run x"]),
    ("change list", Uses, &[""]),
    ("change check", Uses, &["x --file src/a.txt"]),
    ("change verify", Uses, &["--intent x"]),
    ("change receipt", Uses, &["x"]),
    ("change compare", Uses, &["x"]),
    ("change claims", Uses, &["x"]),
    ("change gates", Uses, &["--gate fail_cycles"]),
    ("change blast", Uses, &["x"]),
    ("change gc", Uses, &[""]),
    ("change reset", Uses, &["x"]),
    ("mcp", Nothing, &[""]),
    ("runs", Looks, &[""]),
    ("show", Looks, &["RUN"]),
    ("why", Looks, &["RUN"]),
    ("diff", Looks, &["RUN"]),
    ("log", Looks, &["RUN"]),
    ("spend", Nothing, &["", "--by agent"]),
    ("analyze", Nothing, &[""]),
    ("explain", Nothing, &["RUN_FOREIGN"]),
    ("verify", Looks, &["RUN"]),
    ("replay", Looks, &["RUN"]),
    ("export", Looks, &["RUN --as junit"]),
    ("key new", Nothing, &[""]),
    ("key show", Nothing, &[""]),
    ("key trust", Nothing, &["contract.json"]),
    ("salvage list", Looks, &[""]),
    ("salvage restore", Uses, &["RUN"]),
    ("lease list", Looks, &[""]),
    ("lease release", Uses, &["RUN"]),
    ("gc", Uses, &["", "--bundles --older-than 1s"]),
    ("snapshot", Nothing, &["--control . --out control.json"]),
    ("sandbox", Nothing, &["-- true"]),
    ("sandbox selftest", Nothing, &["--help"]),
    ("shell", Uses, &["RUN -- true"]),
    // Payloads are judged first.
    ("board assign", Nothing, &["contract.json --owner x"]),
    ("board heartbeat", Uses, &["T-1"]),
    ("board result", Nothing, &["contract.json"]),
    ("board tick", Uses, &[""]),
    ("board apply", Nothing, &["contract.json"]),
    ("board show", Uses, &[""]),
    ("board reconcile", Uses, &[""]),
    ("board lock", Uses, &["T-1 src"]),
    ("board release", Uses, &["T-1"]),
    ("board worklog", Uses, &["T-1"]),
    ("board handoff", Uses, &[""]),
    (
        "packet publish",
        Nothing,
        &["--phase-id x --goal x --allow src --accept true"],
    ),
    ("packet report", Nothing, &["--phase-id x"]),
    ("packet seal", Nothing, &["--phase-id x"]),
    ("package derive", Nothing, &["contract.json"]),
    ("package fingerprint", Nothing, &["contract.json"]),
    ("package handoff", Nothing, &["contract.json"]),
    ("package depth", Nothing, &["contract.json"]),
    ("package default", Nothing, &["contract.json"]),
    ("package run", Nothing, &["--package contract.json -- true"]),
    ("convert", Nothing, &["--from x --to y contract.json"]),
    ("schema", Nothing, &[""]),
];

/// Every command and subcommand, as the program lists them, and the one that only git calls.
fn commands(stage: &Users) -> Vec<String> {
    let rows = |text: &str, from: &str| -> Vec<String> {
        let body = text.split_once(from).map_or("", |(_, body)| body);
        let body = body.split("\nOptions:").next().unwrap_or_default();
        let name = |line: &str| {
            let name = line.strip_prefix("  ")?.split(' ').next()?;
            let plain = |c: char| c.is_ascii_lowercase() || c == '-';
            (!name.is_empty() && name.chars().all(plain) && name != "help").then(|| name.to_owned())
        };
        body.lines().filter_map(name).collect()
    };
    let help = |words: &[&str]| stage.ask("victim", "victim", words).out().to_owned();
    let mut all = vec!["hook run".to_owned()];
    for name in rows(&help(&["help", "--all"]), "Every day:") {
        let below = rows(&help(&[&name, "--help"]), "\nCommands:");
        if below.is_empty() || name == "box" {
            all.push(name.clone());
        }
        all.extend(below.into_iter().map(|below| format!("{name} {below}")));
    }
    assert!(all.len() > 60, "{all:?}");
    all
}

/// All files below `directory` and what is in them.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                left.push(path);
            } else {
                let bytes = fs::read(&path).unwrap_or_default();
                found.insert(path.display().to_string(), bytes);
            }
        }
    }
    found
}

/// Calls every command in `at` as the victim, and gives what each said.
fn call_all(stage: &Users, at: &str, traps: &Traps) -> Vec<(String, Touch, Outcome)> {
    let root = stage.path(at).join(".provost");
    let before = contents(&root);
    let outside = contents(&stage.path("victim/outside"));
    let mut said = Vec::new();
    for command in commands(stage) {
        // Each of these only judges a file.
        let (touch, calls) = match CALLS.iter().find(|(name, ..)| *name == command) {
            Some((_, touch, calls)) => (*touch, calls.to_vec()),
            None if command.starts_with("check ") => (Nothing, vec!["contract.json"]),
            None => panic!("say in CALLS how `provost {command}` is called here"),
        };
        for call in calls {
            for run in [&traps.sealed, &traps.interrupted, &traps.approved] {
                let line = format!("{command} {call}");
                let words = line.split_whitespace();
                let words = words.map(|word| match word {
                    "RUN" => run,
                    "sh.check.sh" => "sh check.sh",
                    other => other,
                });
                let words: Vec<&str> = words.collect();
                let outcome = stage.ask("victim", at, &words);
                assert_eq!(
                    stage.requests(),
                    [""; 0],
                    "`{words:?}` reached the author: {outcome:?}"
                );
                assert!(!outcome.says(SECRET), "`{words:?}`: {outcome:?}");
                assert!(outcome.exit < 128, "`{words:?}` did not end: {outcome:?}");
                assert!(!outcome.says("BUG"), "`{words:?}`: {outcome:?}");
                assert!(
                    contents(&root) == before,
                    "`{words:?}` wrote to the state: {outcome:?}"
                );
                said.push((words.join(" "), touch, outcome));
                if !call.contains("RUN") {
                    break;
                }
            }
        }
    }
    assert_eq!(outside, contents(&stage.path("victim/outside")));
    let secret = SECRET.as_bytes();
    for (path, bytes) in contents(&stage.path(at)) {
        let found = bytes.windows(secret.len()).any(|part| part == secret);
        assert!(!found, "{path} holds the secret");
    }
    said
}

#[test]
fn in_a_clone_that_tracks_its_state_nothing_is_continued() {
    let stage = Users::new();
    let traps = traps::set(&stage);
    traps::clone(&stage, "victim/repo");
    for (words, touch, outcome) in call_all(&stage, "victim/repo", &traps) {
        if touch != Nothing {
            let refused = outcome.exit != 0 && outcome.says("ROOT_UNSAFE");
            assert!(refused, "`{words}`: {outcome:?}");
        }
    }
    let status = stage.git_in("victim/repo", &["status", "--porcelain", ".provost"]);
    assert_eq!(status, "");
}

#[test]
fn in_an_archive_that_brings_its_state_it_is_only_read() {
    let stage = Users::new();
    let traps = traps::set(&stage);
    traps::unpack(&stage, "victim/repo");
    for (words, touch, outcome) in call_all(&stage, "victim/repo", &traps) {
        match touch {
            Nothing => {}
            Uses => {
                let refused = outcome.exit != 0 && outcome.says("ROOT_UNSAFE");
                assert!(refused, "`{words}`: {outcome:?}");
            }
            Looks => {
                assert!(!outcome.says("ROOT_UNSAFE"), "`{words}`: {outcome:?}");
                assert!(!outcome.says("provost resume"), "`{words}`: {outcome:?}");
                assert!(!outcome.says("provost approve"), "`{words}`: {outcome:?}");
                let reading = ["status", "runs", "show", "why"];
                if reading.iter().any(|name| words.starts_with(name)) {
                    assert!(outcome.says("FOREIGN"), "`{words}`: {outcome:?}");
                }
            }
        }
    }
    // What the commands read is trusted as far as the key of its author.
    let bundle = stage.path("victim/repo/.provost/runs").join(&traps.sealed);
    let words = ["verify", &bundle.display().to_string(), "--json"];
    assert_eq!(
        stage.ask("victim", "victim/repo", &words).code(),
        "KEY_UNKNOWN"
    );
}

#[test]
fn the_state_of_a_submodule_is_no_better() {
    let stage = Users::new();
    let traps = traps::set(&stage);
    stage.git_in("author/repo", &["add", "-f", ".provost"]);
    stage.git_in(
        "author/repo",
        &["commit", "-q", "--no-verify", "-m", "state"],
    );
    stage.repository("author/outer", &[("x", "x\n")]);
    let inner = stage.path("author/repo").display().to_string();
    stage.git_in(
        "author/outer",
        &["submodule", "--quiet", "add", &inner, "sub"],
    );
    stage.git_in("author/outer", &["commit", "-q", "-m", "outer"]);
    let outer = stage.path("author/outer").display().to_string();
    stage.git_in(
        "victim",
        &["clone", "-q", "--recurse-submodules", &outer, "repo"],
    );
    for words in [
        &["resume"][..],
        &["retry", &traps.sealed],
        &["approve", &traps.approved, "--go"],
        &["status"],
        &[
            "run",
            "x",
            "--allow",
            "src",
            "--accept",
            "true",
            "--agent-cmd",
            "true",
        ],
    ] {
        let outcome = stage.ask("victim", "victim/repo/sub", words);
        assert!(outcome.says("ROOT_UNSAFE"), "{words:?}: {outcome:?}");
    }
    assert_eq!(stage.requests(), [""; 0]);
}

/// An ordinary run.
const RUN: &[&str] = &[
    "run",
    "x",
    "--allow",
    "src",
    "--accept",
    "sh check.sh",
    "--agent-cmd",
    "true",
];

/// A link of the checkout, the refusal, and the commands that would write through it.
const LINKS: &[(&str, &str, &[&[&str]])] = &[
    (
        ".provost",
        "ROOT_UNSAFE",
        &[
            &["init"],
            &["status"],
            RUN,
            &["change", "analyze"],
            &["hook", "bind", "contract.json"],
        ],
    ),
    (
        ".provost/runs",
        "ROOT_UNSAFE",
        &[&["init"], &["runs"], RUN, &["gc"]],
    ),
    (
        ".provost/changes",
        "ROOT_UNSAFE",
        &[&["change", "analyze"], &["run", "-f", "x"]],
    ),
    (
        ".provost/registry.db",
        "ROOT_UNSAFE",
        &[&["lease", "list"], &["change", "list"]],
    ),
    (".provost/boards", "ROOT_UNSAFE", &[&["board", "show"]]),
    (".PROVOST/runs", "ROOT_UNSAFE", &[&["init"], RUN]),
    ("provos~1", "ROOT_UNSAFE", &[&["init"]]),
    (
        ".claude",
        "LINK_REFUSED",
        &[
            &["hook", "install", "claude"],
            &["hook", "uninstall", "claude"],
        ],
    ),
    (".codex", "LINK_REFUSED", &[&["hook", "install", "codex"]]),
    (
        "out",
        "LINK_REFUSED",
        &[
            &[
                "contract",
                "new",
                "out/new.json",
                "x",
                "--allow",
                "src",
                "--accept",
                "true",
            ],
            &["analyze", "--write-baseline", "out/baseline.json"],
            &["snapshot", "--control", ".", "--out", "out/control.json"],
        ],
    ),
];

#[test]
fn links_of_a_checkout_are_not_written_through() {
    let stage = Users::new();
    for (link, code, calls) in LINKS {
        traps::linked(&stage, &[link]);
        for words in *calls {
            let outcome = stage.ask("victim", "victim/links", words);
            assert!(outcome.says(code), "{link}: {words:?}: {outcome:?}");
        }
        let left = fs::read_dir(stage.path("victim/outside")).unwrap().count();
        assert_eq!(left, 0, "{link}");
    }
}
