//! The cache or the state of a user is gone, or lies elsewhere than before.

use std::fs;

use crate::stage::Stage;

const BASE: &[(&str, &str)] = &[
    ("src/a.txt", "base\n"),
    ("check.sh", "grep -q good src/a.txt\n"),
];

fn accepted(stage: &Stage) {
    stage.repository("victim", "victim/repo", BASE);
    let words = [
        "run",
        "x",
        "--allow",
        "src",
        "--accept",
        "sh check.sh",
        "--agent-cmd",
        "sh -c 'echo good > src/a.txt'",
        "--json",
    ];
    let outcome = stage.ask("victim", "victim/repo", &words);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
}

#[test]
fn a_landing_needs_no_cache_that_is_there() {
    let stage = Stage::new();
    accepted(&stage);
    stage.copy("victim/repo", "victim/copied");
    fs::remove_dir_all(stage.path("victim/cache")).unwrap();
    for place in ["victim/copied", "victim/repo"] {
        let landed = stage.ask("victim", place, &["land", "last"]);
        assert_eq!(landed.exit, Some(0), "{place}: {landed:?}");
        assert!(landed.says("landed: main"), "{place}: {landed:?}");
        let again = stage.ask("victim", place, &["land", "last"]);
        assert_eq!(again.exit, Some(0), "{place}: {again:?}");
        assert!(again.says("landed before"), "{place}: {again:?}");
    }
}
