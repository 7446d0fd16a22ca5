//! What decides whether acceptance passes is out of reach of the agent.

use crate::stage::{Ask, Stage};

/// Settings and local tools that would make acceptance green are refused inside the scope.
#[test]
fn settings_and_local_tools_in_scope_are_refused() {
    let stage = Stage::new();
    for planted in [
        "mkdir -p src/pkg; echo script-shell=/bin/true > src/pkg/.npmrc",
        "mkdir -p src/node_modules/.bin; echo 'exit 0' > src/node_modules/.bin/jest",
        "mkdir -p src/.venv/bin; echo 'exit 0' > src/.venv/bin/pytest",
        "echo '{}' > src/tsconfig.json",
    ] {
        let outcome = stage.run(
            &format!("echo good > src/a.txt; {planted}"),
            &Ask::default(),
        );
        assert_eq!(outcome.code(), "DIFF_REFUSED", "{planted}: {outcome:?}");
        let reason = outcome.json["verdict"]["reason"].as_str().unwrap();
        assert!(reason.contains("decides what passing means"), "{reason}");
    }
}

/// Files that git ignores are in no tree, so acceptance never sees those that an agent leaves: not in
/// a copy, not in an overlay.
#[test]
fn ignored_tools_that_an_agent_planted_do_not_reach_acceptance() {
    for kind in ["copy", "overlay"] {
        let stage = Stage::new();
        let policy = format!("[workspace]\nkind = \"{kind}\"\n");
        let check = "test ! -e node_modules && test ! -e .venv && grep -q good src/a.txt\n";
        stage.commit(&[
            ("provost.toml", &*policy),
            (".gitignore", "node_modules/\n.venv/\n"),
            ("check.sh", check),
        ]);
        let script = "mkdir -p node_modules/.bin .venv/bin; echo 'exit 0' > node_modules/.bin/jest; \
                      cp node_modules/.bin/jest .venv/bin/pytest; echo good > src/a.txt";
        let outcome = stage.run(script, &Ask::default());
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("OK", 0),
            "{kind}: {outcome:?}"
        );
    }
}
