//! Secrets that agents, tests and reviewers get hold of, and what of them is in a bundle.

use std::fs;
use std::path::{Path, PathBuf};

use provost_core::object::ObjectFormat;
use provost_core::pack;
use serde_json::json;

use crate::stage::{Ask, Outcome, Stage, run_arguments};

/// What Provost finds in its environment; spelled differently in every way that counts.
const VALUE: &str = "tr0ub4dor&3/zZ+9";
/// The letters of base64 that follow from it alone.
const ENCODED: &str = "dHIwdWI0ZG9yJjMvelorO";
const TOKEN: &str = "ghp_q7Zp2Lx9Vb4Nw8Rt1Ks6Jd3Fg5Hj0Cm";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n\
    -----END PRIVATE KEY-----\n";

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|it| it == wanted)
}

fn files(directory: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else {
            all.push(path);
        }
    }
}

/// The files of a bundle that hold one of `secrets`, in any spelling, also inside the pack.
fn leaks(stage: &Stage, run: &str, secrets: &[&str]) -> Vec<String> {
    let root = stage.evidence(run, "");
    let mut all = Vec::new();
    files(&root, &mut all);
    let spellings: Vec<Vec<u8>> = secrets
        .iter()
        .flat_map(|secret| {
            let url = secret.replace('&', "%26").replace('/', "%2F");
            let url = url.replace('+', "%2B");
            [(*secret).to_owned(), url].map(String::into_bytes)
        })
        .chain([ENCODED.as_bytes().to_vec()])
        .collect();
    let holds = |bytes: &[u8]| spellings.iter().any(|one| contains(bytes, one));
    let mut found = Vec::new();
    for path in all {
        let bytes = fs::read(&path).unwrap();
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        if holds(&bytes) {
            found.push(name.clone());
        }
        if name == "git/objects.pack" {
            let objects = pack::read(&bytes, ObjectFormat::Sha1).unwrap();
            assert!(!objects.is_empty());
            let inside = objects.iter().filter(|(_, (_, bytes))| holds(bytes));
            found.extend(inside.map(|(oid, _)| format!("{name} {oid}")));
        }
    }
    found
}

/// Runs `script` with [`VALUE`] in the environment of Provost.
fn run(stage: &Stage, script: &str, ask: &Ask<'_>) -> Outcome {
    let agent = stage.agent(script);
    let mut command = stage.provost(&run_arguments(&agent, ask));
    command.env("DB_PASSWORD", VALUE);
    stage.spawn(command).wait()
}

/// Says [`VALUE`] in two halves, with a moment between them.
fn halves() -> String {
    let (one, two) = VALUE.split_at(7);
    format!("{{ printf '{one}'; sleep 0.2; printf '{two}\\n'; }}")
}

#[test]
fn what_is_printed_is_in_no_file_of_the_bundle() {
    let stage = Stage::new();
    let halves = halves();
    let check = format!("{halves}; {halves} >&2; echo {TOKEN}; grep -q good src/a.txt\n");
    stage.commit(&[("check.sh", &check)]);
    let report = json!({ "verdict": "PASS", "summary": format!("I saw {VALUE}"),
        "violations": [], "findings": [{ "path": "src/a.txt", "problem": VALUE }] });
    let reviewer = format!("{halves}\ncat > $PROVOST_RESULT <<'END'\n{report}\nEND\n");
    stage.write("agent/reviewer.sh", &reviewer);
    let reviewer = format!("sh {}", stage.path("agent/reviewer.sh").display());
    let ask = Ask {
        more: &["--review-cmd", &reviewer],
        ..Ask::default()
    };
    let script = format!(
        "{halves}\n{halves} >&2\nprintf '%s' '{VALUE}' | base64\n\
         echo 'x=tr0ub4dor%263%2FzZ%2B9'\ncat <<'END'\n{KEY}END\n\
         echo good > src/a.txt; echo useful words stay"
    );
    let outcome = run(&stage, &script, &ask);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let id = outcome.text("run_id");
    let key = KEY.lines().nth(1).unwrap();
    let secrets = [VALUE, TOKEN, key];
    assert_eq!(leaks(&stage, id, &secrets), [""; 0]);
    assert_eq!(stage.verify(id).exit, 0);
    let printed = stage.printed_in(id);
    assert!(printed.contains("useful words stay"), "{printed}");
    assert!(printed.contains("x=[redacted]"), "{printed}");
    let removed = outcome.json["secrets"]["removed"].as_array().unwrap();
    let count = |end: &str| {
        let row = removed
            .iter()
            .find(|row| row["from"].as_str().unwrap().ends_with(end));
        row.map(|row| row["removed"].as_u64().unwrap())
    };
    assert_eq!(count("stdout.1.log"), Some(4), "{removed:?}");
    assert_eq!(count("stderr.1.log"), Some(1), "{removed:?}");
    assert_eq!(count("candidate/1.stdout.log"), Some(2), "{removed:?}");
    assert_eq!(count("the result that was left"), Some(2), "{removed:?}");
    let shown = stage.ask(&["show", id]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("4 secrets removed from agent/"), "{shown}");
    // What the commands said about the base is kept, and is kept clean.
    let again = run(&stage, &script, &ask);
    assert_eq!(leaks(&stage, again.text("run_id"), &secrets), [""; 0]);
}

/// What an agent plants: a name for it, how, where, what, and how the refusal names it.
fn planted() -> [(
    &'static str,
    String,
    &'static str,
    &'static str,
    &'static str,
); 6] {
    let key = KEY.lines().nth(1).unwrap();
    [
        (
            "a token",
            format!("printf 'a\\nb = \"{TOKEN}\"\\n' > src/new.py"),
            "src/new.py",
            TOKEN,
            "line 2, a token",
        ),
        (
            "a known value",
            format!("printf 'x\\n' > src/new.py; echo \"p='{VALUE}'\" >> src/new.py"),
            "src/new.py",
            VALUE,
            "line 2, the value of `DB_PASSWORD`",
        ),
        (
            "an encoded value",
            format!("printf '%s' '{VALUE}' | base64 > src/new.py"),
            "src/new.py",
            VALUE,
            "line 1, the value of `DB_PASSWORD`",
        ),
        (
            "a private key",
            format!("cat > src/new.pem <<'END'\n{KEY}END"),
            "src/new.pem",
            key,
            "line 1, a private key",
        ),
        (
            "content that is not text",
            format!("printf '\\000\\377{TOKEN}\\000' > src/new.bin"),
            "src/new.bin",
            TOKEN,
            "line 1, a token",
        ),
        (
            "a name",
            format!("echo x > src/{TOKEN}.txt"),
            "src/[redacted]",
            TOKEN,
            "in its name",
        ),
    ]
}

#[test]
fn a_secret_in_the_patch_is_refused_and_is_in_no_file_of_the_bundle() {
    let stage = Stage::new();
    for (name, script, path, secret, finding) in planted() {
        let script = format!("echo good > src/a.txt; {script}");
        let ask = Ask {
            more: &["--allow-binary", "src"],
            ..Ask::default()
        };
        let outcome = run(&stage, &script, &ask);
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("SECRET_IN_PATCH", 1),
            "{name}: {outcome:?}"
        );
        assert_eq!(
            outcome.findings(),
            [("secret".into(), path.into())],
            "{name}"
        );
        let reason = outcome.json.pointer("/verdict/reason").unwrap();
        let want = format!("`{path}` brings in a secret: {finding}");
        assert_eq!(reason, &json!(want), "{name}");
        let id = outcome.text("run_id");
        assert_eq!(leaks(&stage, id, &[secret]), [""; 0], "{name}");
        let verified = stage.verify(id);
        assert_eq!(verified.exit, 0, "{name}: {verified:?}");
        let replayed = stage.ask(&["replay", id, "--json"]);
        assert_eq!(replayed.exit, 0, "{name}: {replayed:?}");
        // The work is kept in the user's own repository, with what it holds.
        let tree = outcome.text("tree");
        assert!(stage.git(&["ls-tree", "-r", tree]).contains("src/a.txt"));
        let patch = fs::read_to_string(stage.evidence(id, "patch.diff")).unwrap();
        assert_eq!(patch.contains("src/a.txt"), name != "a name", "{name}");
    }
}

#[test]
fn what_the_base_holds_already_is_not_new() {
    let stage = Stage::new();
    stage.commit(&[
        (
            "src/settings.py",
            &format!("token = \"{TOKEN}\"\nlevel = 1\n"),
        ),
        (
            "src/live.py",
            &format!("password = \"{VALUE}\"\nlevel = 1\n"),
        ),
    ]);
    let script = "echo good > src/a.txt; sed -i s/level/depth/ src/settings.py src/live.py\n\
                  cp src/settings.py src/more.py; sed -i s/depth/height/ src/more.py";
    let outcome = run(&stage, script, &Ask::default());
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let id = outcome.text("run_id");
    assert_eq!(leaks(&stage, id, &[VALUE]), [""; 0]);
    assert_eq!(stage.verify(id).exit, 0);
    let withheld = &outcome.json["secrets"]["withheld"];
    assert_eq!(
        withheld,
        &json!({ "contents": ["src/live.py"], "names": false })
    );
    // A value that is copied to where it was not is new, in whatever file.
    let script = format!("echo 'x = \"{TOKEN}\"' > src/fresh.py; echo good > src/a.txt");
    let outcome = run(&stage, &script, &Ask::default());
    assert_eq!(outcome.code(), "SECRET_IN_PATCH", "{outcome:?}");
}

#[test]
fn words_that_hold_a_secret_begin_no_run() {
    let stage = Stage::new();
    let agent = format!("sh -c 'echo {VALUE}'");
    let outcome = {
        let mut command = stage.provost(&run_arguments(&agent, &Ask::default()));
        command.env("DB_PASSWORD", VALUE);
        stage.spawn(command).wait()
    };
    let got = (outcome.code(), outcome.exit);
    assert_eq!(got, ("SECRET_IN_CONTRACT", 2), "{outcome:?}");
    assert!(stage.runs().is_empty());
    assert!(!outcome.stderr.contains(VALUE) && !contains(&outcome.stdout, VALUE.as_bytes()));
}
