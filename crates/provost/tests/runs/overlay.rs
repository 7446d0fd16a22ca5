//! Runs whose workspaces are overlays.

use rustix::process::Signal;

use crate::stage::{Ask, Outcome, Stage, is_root, lacks, until};

/// The policy that asks for overlays however small the tree is.
const POLICY: &[(&str, &str)] = &[("provost.toml", "[workspace]\nkind = \"overlay\"\n")];

/// What the agent does: edits, removes, replaces, moves, builds.
const WORK: &str = "echo good > src/a.txt; rm src/b.txt; mkdir src/b.txt; echo x > src/b.txt/inner
    mkdir target; echo x > target/ignored; touch docs/readme.md
    git status --porcelain; git add -A; git commit -qm mine";

fn stage() -> Stage {
    with_policy(Stage::new())
}

fn with_policy(stage: Stage) -> Stage {
    stage.commit(POLICY);
    stage
}

/// The kind of workspace that the ledger of a run names.
fn kind(stage: &Stage, outcome: &Outcome) -> String {
    let run = outcome.text("run_id");
    let text = std::fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let made: Vec<_> = records
        .filter(|record| record["event_type"] == "WORKTREE_CREATED")
        .collect();
    made[0]["payload"]["kind"].as_str().unwrap().to_owned()
}

fn check(stage: &Stage) {
    let before = stage.surroundings();
    // The second run finds the checkout that the first one made.
    for name in ["first", "second"] {
        let outcome = stage.run(WORK, &Ask::default());
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("OK", 0),
            "{name}: {outcome:?}"
        );
        assert_eq!(kind(stage, &outcome), "overlay", "{name}");
        stage.assert_clean(&before, name);
        let tree = outcome.text("tree");
        let names = stage.git(&["ls-tree", "-r", "--name-only", tree, "src", "docs"]);
        assert_eq!(
            names.lines().collect::<Vec<_>>(),
            [
                "docs/readme.md",
                "src/a.txt",
                "src/b.txt/inner",
                "src/pytest.ini"
            ],
            "{name}"
        );
        assert_eq!(stage.verify(outcome.text("run_id")).exit, 0, "{name}");
    }
}

#[test]
fn an_overlay_is_as_good_as_a_copy() {
    check(&stage());
}

#[test]
fn an_overlay_is_as_good_as_a_copy_for_an_ordinary_user() {
    // Without root, the test above has already run as an ordinary user.
    if is_root() && !lacks("setpriv") {
        let stage = with_policy(Stage::of_nobody());
        stage.copy_binary();
        check(&stage);
    }
}

#[test]
fn what_is_out_of_scope_on_an_overlay_is_refused() {
    let stage = stage();
    let before = stage.surroundings();
    let script = "echo good > src/a.txt; rm docs/readme.md";
    let outcome = stage.run(script, &Ask::default());
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("DIFF_REFUSED", 1),
        "{outcome:?}"
    );
    assert!(
        outcome.stderr.contains("docs/readme.md")
            || outcome.json.to_string().contains("docs/readme.md")
    );
    stage.assert_clean(&before, "refused");
}

#[test]
fn acceptance_that_changes_the_tree_is_noticed_on_an_overlay() {
    let stage = stage();
    stage.commit(&[(
        "check.sh",
        "grep -q good src/a.txt && echo worse > docs/readme.md\n",
    )]);
    let before = stage.surroundings();
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("TREE_CHANGED", 1),
        "{outcome:?}"
    );
    stage.assert_clean(&before, "changed");
}

#[test]
fn work_on_an_overlay_survives_its_driver() {
    let stage = stage();
    let before = stage.surroundings();
    let script = "if test -e ~/second; then echo good > src/a.txt; exit; fi
        touch ~/second; echo half > src/half.txt; rm docs/readme.md
        mkdir target; echo x > target/ignored; echo started; sleep 1000";
    let running = stage.start(script, &Ask::default());
    until("the agent works", || {
        stage
            .last_run()
            .is_some_and(|run| stage.printed_in(&run).contains("started"))
    });
    running.signal(Signal::KILL);
    running.wait();
    stage.await_silence("killed");
    let resumed = stage.ask(&["resume", "--json"]);
    assert_eq!(resumed.exit, 0, "{resumed:?}");
    stage.assert_clean(&before, "killed");
    let saved = stage.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/provost/salvage",
    ]);
    let names = stage.git(&["ls-tree", "-r", "--name-only", &saved]);
    assert!(names.contains("src/half.txt"), "{names}");
    assert!(
        names.contains("src/b.txt") && !names.contains("docs/readme.md"),
        "{names}"
    );
}

#[test]
fn a_poisoned_checkout_is_not_used() {
    let stage = stage();
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let mut poisoned = 0;
    for repository in std::fs::read_dir(stage.path("cache/provost")).unwrap() {
        let lowers = std::fs::read_dir(repository.unwrap().path().join("lower"));
        for lower in lowers.into_iter().flatten() {
            let file = lower.unwrap().path().join("tree/src/b.txt");
            if file.exists() {
                std::fs::write(file, "poison\n").unwrap();
                poisoned += 1;
            }
        }
    }
    assert_eq!(poisoned, 1);
    let outcome = stage.run("echo good > src/a.txt; cat src/b.txt", &Ask::default());
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let run = outcome.text("run_id");
    let printed = stage.printed_in(run);
    assert!(
        printed.contains("keep") && !printed.contains("poison"),
        "{printed}"
    );
}
