//! Runs whose workspaces are overlays.

use rustix::process::Signal;

use crate::scene::{Ask, Outcome, Scene, is_root, lacks, until};

/// The policy that asks for overlays however small the tree is.
const POLICY: &[(&str, &str)] = &[("provost.toml", "[workspace]\nkind = \"overlay\"\n")];

/// What the agent does: edits, removes, replaces, moves, builds.
const WORK: &str = "echo good > src/a.txt; rm src/b.txt; mkdir src/b.txt; echo x > src/b.txt/inner
    mkdir target; echo x > target/ignored; touch docs/readme.md
    git status --porcelain; git add -A; git commit -qm mine";

fn scene() -> Scene {
    with_policy(Scene::new())
}

fn with_policy(scene: Scene) -> Scene {
    scene.commit(POLICY);
    scene
}

/// The kind of workspace that the ledger of a run names.
fn kind(scene: &Scene, outcome: &Outcome) -> String {
    let run = outcome.text("run_id");
    let text = std::fs::read_to_string(scene.evidence(run, "events.jsonl")).unwrap();
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let made: Vec<_> = records
        .filter(|record| record["event_type"] == "WORKTREE_CREATED")
        .collect();
    made[0]["payload"]["kind"].as_str().unwrap().to_owned()
}

fn check(scene: &Scene) {
    let before = scene.surroundings();
    // The second run finds the checkout that the first one made.
    for name in ["first", "second"] {
        let outcome = scene.run(WORK, &Ask::default());
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("OK", 0),
            "{name}: {outcome:?}"
        );
        assert_eq!(kind(scene, &outcome), "overlay", "{name}");
        scene.assert_clean(&before, name);
        let tree = outcome.text("tree");
        let names = scene.git(&["ls-tree", "-r", "--name-only", tree, "src", "docs"]);
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
        assert_eq!(scene.verify(outcome.text("run_id")).exit, 0, "{name}");
    }
}

#[test]
fn an_overlay_is_as_good_as_a_copy() {
    check(&scene());
}

#[test]
fn an_overlay_is_as_good_as_a_copy_for_an_ordinary_user() {
    // Where this is no root, the test above was by an ordinary user.
    if is_root() && !lacks("setpriv") {
        let scene = with_policy(Scene::of_nobody());
        scene.copy_binary();
        check(&scene);
    }
}

#[test]
fn what_is_out_of_scope_on_an_overlay_is_refused() {
    let scene = scene();
    let before = scene.surroundings();
    let script = "echo good > src/a.txt; rm docs/readme.md";
    let outcome = scene.run(script, &Ask::default());
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("DIFF_REFUSED", 1),
        "{outcome:?}"
    );
    assert!(
        outcome.stderr.contains("docs/readme.md")
            || outcome.json.to_string().contains("docs/readme.md")
    );
    scene.assert_clean(&before, "refused");
}

#[test]
fn acceptance_that_changes_the_tree_is_noticed_on_an_overlay() {
    let scene = scene();
    scene.commit(&[(
        "check.sh",
        "grep -q good src/a.txt && echo worse > docs/readme.md\n",
    )]);
    let before = scene.surroundings();
    let outcome = scene.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("TREE_CHANGED", 1),
        "{outcome:?}"
    );
    scene.assert_clean(&before, "changed");
}

#[test]
fn work_on_an_overlay_survives_its_driver() {
    let scene = scene();
    let before = scene.surroundings();
    let script = "if test -e ~/second; then echo good > src/a.txt; exit; fi
        touch ~/second; echo half > src/half.txt; rm docs/readme.md
        mkdir target; echo x > target/ignored; echo started; sleep 1000";
    let running = scene.start(script, &Ask::default());
    until("the agent works", || {
        scene
            .last_run()
            .is_some_and(|run| scene.printed_in(&run).contains("started"))
    });
    running.signal(Signal::KILL);
    running.wait();
    scene.await_silence("killed");
    let resumed = scene.ask(&["resume", "--json"]);
    assert_eq!(resumed.exit, 0, "{resumed:?}");
    scene.assert_clean(&before, "killed");
    let saved = scene.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/provost/salvage",
    ]);
    let names = scene.git(&["ls-tree", "-r", "--name-only", &saved]);
    assert!(names.contains("src/half.txt"), "{names}");
    assert!(
        names.contains("src/b.txt") && !names.contains("docs/readme.md"),
        "{names}"
    );
}

#[test]
fn a_poisoned_checkout_is_not_used() {
    let scene = scene();
    let outcome = scene.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let mut poisoned = 0;
    for repository in std::fs::read_dir(scene.path("cache/provost")).unwrap() {
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
    let outcome = scene.run("echo good > src/a.txt; cat src/b.txt", &Ask::default());
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let run = outcome.text("run_id");
    let printed = scene.printed_in(run);
    assert!(
        printed.contains("keep") && !printed.contains("poison"),
        "{printed}"
    );
}
