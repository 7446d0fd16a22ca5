//! Virtual environments of the user that sandboxes read.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::stage::{Ask, Stage, lacks, run_arguments};

const SITE: &str = "repo/.venv/lib/site/site-packages";

/// A repository whose test needs the package `thing`, which is in an ignored environment.
fn stage() -> Option<Stage> {
    if lacks("python3") {
        return None;
    }
    let stage = Stage::new();
    stage.commit(&[
        ("check.sh", "grep -q good src/a.txt && python3 t.py\n"),
        (
            "t.py",
            "import sys, thing\nassert thing.word == 'there', sys.path\n",
        ),
        ("pyproject.toml", "[project]\nname = \"own\"\n"),
        (".gitignore", "/.venv/\n"),
    ]);
    let words = ["-m", "venv", "--without-pip", ".venv"];
    let mut python = Command::new("/usr/bin/python3");
    let made = python.args(words).current_dir(stage.path("repo")).status();
    assert!(made.unwrap().success());
    // By one name, whatever the version of Python is.
    let lib = stage.path("repo/.venv/lib");
    let version = fs::read_dir(&lib).unwrap().next().unwrap().unwrap().path();
    stage.write("repo/.venv/thing.py", "word = 'there'\n");
    fs::rename(
        stage.path("repo/.venv/thing.py"),
        version.join("site-packages/thing.py"),
    )
    .unwrap();
    std::os::unix::fs::symlink(&version, lib.join("site")).unwrap();
    Some(stage)
}

#[test]
fn an_environment_that_the_user_names_is_read_and_recorded() {
    let Some(stage) = stage() else { return };
    // Without a word of the user it is not there, but it is offered.
    let agent = stage.agent("echo good > src/a.txt");
    let words = run_arguments(&agent, &Ask::default());
    let words: Vec<&str> = words.into_iter().filter(|it| *it != "--json").collect();
    let without = stage.ask(&words);
    assert_eq!(without.exit, 1, "{without:?}");
    for part in [
        "`thing` is not in the sandbox",
        "[[prepare]]",
        "--venv .venv",
    ] {
        assert!(without.says(part), "{part}: {without:?}");
    }
    let why = stage.ask(&["why", "last"]);
    assert!(why.says("outputs = [\".venv\"]"), "{why:?}");

    let ask = Ask {
        more: &["--venv", ".venv"],
        ..Ask::default()
    };
    let place = stage.path("repo/.venv").canonicalize().unwrap();
    let script = format!(
        "python3 -c 'import thing' && ! echo x > {0}/new && test \"$VIRTUAL_ENV\" = {0} &&
         echo good > src/a.txt",
        place.display()
    );
    let outcome = stage.run(&script, &ask);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert_eq!(outcome.json["changed_files"], json!(["src/a.txt"]));
    let layer = &outcome.json["layers"][0];
    assert_eq!(layer["name"], "virtual-environment", "{outcome:?}");
    assert_eq!(layer["sha256"].as_str().unwrap().len(), 64);
    let verified = stage.verify(outcome.text("run_id"));
    assert_eq!(verified.exit, 0, "{verified:?}");
}

#[test]
fn an_environment_that_holds_the_project_or_came_with_it_is_refused() {
    let Some(stage) = stage() else { return };
    let ask = Ask {
        more: &["--venv", ".venv"],
        ..Ask::default()
    };
    let refused = |want: &str| {
        let outcome = stage.run("echo good > src/a.txt", &ask);
        assert_eq!(outcome.code(), "VENV_REFUSED", "{outcome:?}");
        assert!(outcome.says(want), "{want}: {outcome:?}");
    };
    let cases = [
        ("own-1.dist-info/METADATA", "is the project itself"),
        ("out.pth", "leads out of the environment"),
        ("__editable__.x.pth", "is an editable install"),
    ];
    for (file, want) in cases {
        stage.write(&format!("{SITE}/{file}"), "/src\n");
        refused(want);
        let top = file.split('/').next().unwrap();
        let path = stage.path(&format!("{SITE}/{top}"));
        fs::remove_file(&path)
            .or_else(|_| fs::remove_dir_all(&path))
            .unwrap();
    }
    stage.write("repo/.venv/pip.conf", "");
    refused("may hold a password");
    fs::remove_file(stage.path("repo/.venv/pip.conf")).unwrap();
    stage.commit(&[(".gitignore", "/other/\n")]);
    refused("git does not ignore");
    fs::remove_file(stage.path("repo/.venv/pyvenv.cfg")).unwrap();
    refused("is no virtual environment");
}
