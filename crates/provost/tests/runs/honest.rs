//! Agents that do what they were asked, in all the ways honest programs work.
//!
//! The expected tree does not come from Provost: the same script runs without it in a clone, and
//! git writes the tree.

use std::path::Path;

use serde_json::json;

use crate::stage::{Ask, Outcome, Stage, lacks};

/// The run of `script` is accepted, with exactly the tree that git makes of the same work.
fn check(name: &str, script: &str) -> (Stage, Outcome) {
    check_in(Stage::new(), name, script, &Ask::default())
}

fn check_in(stage: Stage, name: &str, script: &str, ask: &Ask<'_>) -> (Stage, Outcome) {
    let script = format!("{script}\necho good > src/a.txt\n");
    let before = stage.surroundings();
    let outcome = stage.run(&script, ask);
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("OK", 0),
        "{name}: {outcome:?}"
    );
    stage.assert_clean(&before, name);

    let plain = stage.run_plainly(&script, "plain");
    assert_eq!(plain.exit, 0, "{name}: {plain:?}");
    let tree = tree_of(&stage, "plain");
    assert_eq!(outcome.text("tree"), tree, "{name}: the captured tree");
    check_branch(&stage, name, &outcome, &tree);
    check_patch(&stage, name, &outcome, &tree);
    (stage, outcome)
}

/// The tree of everything in a clone, as git makes it.
fn tree_of(stage: &Stage, directory: &str) -> String {
    stage.git_in(directory, &["add", "-A"]);
    stage.git_in(directory, &["write-tree"])
}

/// The branch is one commit on the base with exactly `tree`, and says where it comes from.
fn check_branch(stage: &Stage, name: &str, outcome: &Outcome, tree: &str) {
    let run = outcome.text("run_id");
    let branch = outcome.text("branch");
    assert_eq!(branch, format!("provost/{run}"), "{name}");
    let show = |format: &str| {
        let format = format!("--format={format}");
        stage.git(&["show", "-s", &format, branch])
    };
    assert_eq!(show("%T"), tree, "{name}: the tree of the branch");
    assert_eq!(show("%H"), outcome.text("commit"), "{name}");
    assert_eq!(show("%P"), outcome.text("base"), "{name}: one parent");
    assert_eq!(show("%s"), "make it good", "{name}");
    for (key, want) in [("Provost-Run", run), ("Provost-Tree", tree)] {
        let trailer = format!("%(trailers:key={key},valueonly)");
        assert_eq!(show(&trailer), want, "{name}: {key}");
    }
    let contract = show("%(trailers:key=Provost-Contract,valueonly)");
    assert_eq!(contract.len(), 64, "{name}: {contract}");
}

/// The patch of the bundle turns the base into `tree`.
fn check_patch(stage: &Stage, name: &str, outcome: &Outcome, tree: &str) {
    stage.clone("patched");
    let patch = stage.evidence(outcome.text("run_id"), "patch.diff");
    stage.git_in(
        "patched",
        &["apply", "--index", &patch.display().to_string()],
    );
    assert_eq!(
        stage.git_in("patched", &["write-tree"]),
        tree,
        "{name}: the patch"
    );
}

/// One test for each honest way to work: its name and its script.
macro_rules! honest {
    ($($name:ident: $script:expr;)+) => {
        $(#[test] fn $name() { check(stringify!($name), $script); })+
    };
}

honest! {
    names_may_hold_blanks_and_letters_of_all_alphabets:
        "mkdir -p 'src/ein Ordner/中文' src/日本; echo x > 'src/ein Ordner/中文/größe – maß.txt'
         echo x > 'src/日本/файл'; echo x > \"src/it's \\\"quoted\\\" & odd; name\"; echo x > src/-rf";
    saves_may_be_a_new_file_and_a_rename:
        "for file in a b; do new=$(mktemp src/.save.XXXXXX); chmod 644 $new
         { cat src/$file.txt; echo more; } > $new; mv $new src/$file.txt; done
         new=$(mktemp); echo made elsewhere > $new; chmod 644 $new; mv $new src/c.txt";
    agents_may_commit_for_themselves:
        "echo one > src/one; git add -A; git commit -qm one
         git checkout -q -b side; echo two > src/two; git add -A; git commit -qm two
         git stash list; git tag mine; git log --oneline | grep -q two";
    files_may_be_deleted: "rm src/b.txt";
    modes_may_change:
        "chmod +x src/b.txt; echo '#!/bin/sh' > src/tool; chmod 755 src/tool";
    files_may_be_renamed_inside_the_scope:
        "mkdir src/deep; git mv src/b.txt src/deep/b.txt; echo more >> src/deep/b.txt";
    a_directory_may_become_a_file_and_back:
        "mv src/b.txt keep; mkdir src/b.txt; mv keep src/b.txt/inner; mkdir src/x; rmdir src/x";
    there_may_be_two_thousand_files:
        "for d in $(seq 40); do mkdir src/d$d; for f in $(seq 50)
         do echo $d $f > src/d$d/f$f; done; done";
    a_file_may_have_twenty_megabytes: "seq 2700000 > src/large.txt";
    ignored_build_output_is_left_out:
        "mkdir -p target/debug; echo x > target/debug/binary; mkfifo target/pipe
         printf 'a\\000b' > target/blob; ln -s /etc/passwd target/link";
    empty_files_and_missing_newlines_round_trip:
        ": > src/empty; printf 'no newline' > src/open; printf 'a\\r\\nb\\r\\n' > src/dos.txt";
    git_is_usable:
        "git status --porcelain > /dev/null && git diff --quiet && git log -1 > /dev/null &&
         git show HEAD:src/a.txt > src/copy.txt && git blame src/b.txt > /dev/null";
    a_home_and_scratch_space_are_there:
        "echo x > ~/note && mkdir -p ~/.cache && echo x > $TMPDIR/x && cat ~/note $TMPDIR/x > src/c.txt
         rm ~/note $TMPDIR/x; rmdir ~/.cache";
}

/// Only what runs in a sandbox has a scratch space of its own by itself.
#[test]
fn a_script_that_runs_plainly_leaves_the_scratch_space_of_the_host_alone() {
    let stage = Stage::new();
    let outcome = stage.run_plainly("mktemp; mktemp -d; echo $TMPDIR; echo ~", "plain");
    let printed = String::from_utf8(outcome.stdout).unwrap();
    assert_eq!(printed.lines().count(), 4, "{printed}");
    for place in printed.lines() {
        assert!(Path::new(place).starts_with(stage.path("")), "{place}");
    }
}

#[test]
fn python_is_usable() {
    if lacks("python3") {
        return;
    }
    let script = "python3 - <<'END'\nimport json, tempfile, subprocess, threading, hashlib\n\
        open('src/out.json', 'w').write(json.dumps({'a': hashlib.sha256(b'x').hexdigest()}))\n\
        subprocess.run(['git', 'status'], check=True, stdout=subprocess.DEVNULL)\nEND";
    check("python", script);
}

#[test]
fn a_valid_result_is_taken_as_what_it_is() {
    let script = r#"test -n "$PROVOST_RESULT" || { echo good > src/a.txt; exit; }
        task=$(sed 's/.*"task_id":"\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
        printf '{"task_id":"%s","status":"SUCCESS","summary":"done",' $task > $PROVOST_RESULT
        printf '"evidence_refs":{},"failure":null}' >> $PROVOST_RESULT"#;
    let (_, outcome) = check("result", script);
    let reason = outcome.json.pointer("/gates/output/reason");
    assert_eq!(reason, Some(&json!("the agent's result fits its schema")));
}

/// An agent finds its contract on its standard input and in a file.
#[test]
fn the_contract_is_there_twice() {
    let script = r#"test -z "$PROVOST_CONTRACT" || cmp - "$PROVOST_CONTRACT" || exit 9"#;
    check("contract", script);
}

#[test]
fn the_acceptance_command_may_be_a_script_of_the_tree() {
    let stage = Stage::new();
    stage.commit(&[(
        "tests/all.sh",
        "#!/bin/sh\nset -e\ngrep -q good src/a.txt\ngit status\n",
    )]);
    stage.git(&["update-index", "--chmod=+x", "tests/all.sh"]);
    stage.git(&["commit", "-q", "-m", "executable"]);
    stage.git(&["checkout", "-q", "--", "tests"]);
    let ask = Ask {
        accept: "./tests/all.sh",
        ..Ask::default()
    };
    let (_, outcome) = check_in(stage, "script", ":", &ask);
    let compared = outcome.json.pointer("/tests/compared_with_base");
    assert_eq!(compared, Some(&json!("red→green")));
}

#[test]
fn a_scope_may_be_one_file_or_several_places() {
    let ask = Ask {
        allow: &["src/a.txt", "docs", "new/place"],
        ..Ask::default()
    };
    let script = "echo x >> docs/readme.md; mkdir -p new/place; echo x > new/place/x";
    check_in(Stage::new(), "scope", script, &ask);
}

#[test]
fn what_the_contract_permits_may_change() {
    let more = [
        "--permit-oracle",
        "src/pytest.ini",
        "--permit-governing",
        "src/AGENTS.md",
        "--allow-binary",
        "src/blob",
        "--permit-symlink",
        "src/link",
    ];
    let ask = Ask {
        more: &more,
        ..Ask::default()
    };
    let script = "echo x > src/pytest.ini; echo x > src/AGENTS.md; ln -s b.txt src/link
        printf 'a\\000b' > src/blob";
    check_in(Stage::new(), "permit", script, &ask);
}

#[test]
fn a_run_may_start_from_an_older_commit() {
    let stage = Stage::new();
    stage.commit(&[("src/later.txt", "later\n")]);
    let ask = Ask {
        more: &["--base", "HEAD~1"],
        ..Ask::default()
    };
    let before = stage.surroundings();
    let outcome = stage.run("test ! -e src/later.txt && echo good > src/a.txt", &ask);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    assert_eq!(outcome.text("base"), stage.git(&["rev-parse", "HEAD~1"]));
    stage.assert_clean(&before, "base");
}

/// What the user has not committed is neither seen nor touched.
#[test]
fn a_dirty_checkout_stays_dirty() {
    let stage = Stage::new();
    stage.write("repo/src/a.txt", "mine\n");
    stage.write("repo/untracked", "mine\n");
    stage.write("repo/staged", "mine\n");
    stage.git(&["add", "staged"]);
    let before = stage.surroundings();
    let script = "test ! -e untracked && test ! -e staged && grep -q base src/a.txt || exit 9
        echo good > src/a.txt";
    let outcome = stage.run(script, &Ask::default());
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    stage.assert_clean(&before, "dirty");
}
