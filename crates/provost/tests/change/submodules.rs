//! What is inside of submodules.

use std::path::Path;

use provost_testkit::stage::Stage;
use serde_json::json;

use super::{Changes as _, stage};

/// Adds a submodule at `lib`, with one file.
fn add_submodule(stage: &Stage) {
    stage.repository("home/source", &[("lib.txt", "one\n")]);
    let place = stage.path("home/source").display().to_string();
    stage.git(&["submodule", "add", "-q", &place, "lib"]);
    stage.git(&["commit", "-qm", "a submodule"]);
}

/// Whether a start on `path` is refused because of uncommitted changes.
fn is_dirty(stage: &Stage, path: &str) -> bool {
    assert_eq!(stage.change("ada", &["analyze"]).0, 0);
    let (_, answer) = stage.change("ada", &["start", "work", "--file", path]);
    stage.change("ada", &["clear"]);
    answer["workspace_hygiene"]["blocks_edit"] == json!(true)
}

#[test]
fn a_submodule_is_inspected_and_starts_nothing() {
    let stage = stage();
    add_submodule(&stage);
    assert!(!is_dirty(&stage, "lib"));
    let sprung = stage.path("home/sprung");
    let trap = stage.path("home/trap");
    let script = format!("#!/bin/sh\ntouch {}\ncat\n", sprung.display());
    stage.script("home/trap", &script);
    let trap = trap.to_str().unwrap();
    for name in ["core.fsmonitor", "filter.trap.clean", "filter.trap.process"] {
        stage.git(&["-C", "lib", "config", name, trap]);
    }
    let hooks = stage.path("repo/.git/modules/lib/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for name in ["post-index-change", "fsmonitor-watchman"] {
        std::fs::copy(trap, hooks.join(name)).unwrap();
    }
    stage.write("repo/lib/.gitattributes", "* filter=trap\n");
    stage.write("repo/lib/lib.txt", "two\n");
    assert!(is_dirty(&stage, "lib/lib.txt"));
    assert!(is_dirty(&stage, "lib/.gitattributes"));
    assert!(is_dirty(&stage, "lib"));
    assert!(!is_dirty(&stage, "docs"));
    assert!(!sprung.exists(), "something of the submodule was started");
}

#[test]
fn only_the_outermost_checkout_holds_things_of_our_own() {
    let stage = stage();
    add_submodule(&stage);
    for place in [".provost", "lib/.provost"] {
        std::fs::create_dir_all(stage.path("repo").join(place)).unwrap();
    }
    stage.write("repo/.provost/note", "ours\n");
    assert_eq!(stage.change("ada", &["analyze"]).1["dirty_paths"], 0);
    assert!(!is_dirty(&stage, "lib"));
    stage.write("repo/lib/.provost/note", "not ours\n");
    assert!(is_dirty(&stage, "lib"));
    // No agent may declare either of them.
    for path in [".provost/note", "lib/.provost/note"] {
        let start = ["start", "work", "--file", path];
        assert_eq!(stage.change("ada", &start).0, 2, "{path}");
    }
}

#[test]
fn a_submodule_that_cannot_be_inspected_is_dirty() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 3] = [
        ("a gitdir that leads nowhere", |lib| {
            std::fs::write(lib.join(".git"), "gitdir: ../nowhere\n").unwrap();
        }),
        ("files without a repository", |lib| {
            std::fs::remove_file(lib.join(".git")).unwrap();
        }),
        ("another checkout instead", |lib| {
            std::fs::remove_file(lib.join(".git")).unwrap();
            std::fs::write(lib.join(".git"), "gitdir: ../.git\n").unwrap();
        }),
    ];
    for (name, harm) in harms {
        let stage = stage();
        add_submodule(&stage);
        harm(&stage.path("repo/lib"));
        assert!(is_dirty(&stage, "lib"), "{name}");
    }
    let stage = stage();
    add_submodule(&stage);
    stage.git(&["submodule", "deinit", "-q", "lib"]);
    assert!(!is_dirty(&stage, "lib"), "never checked out");
}
