//! What the commands of real projects do, inside the sandbox that judges them.

use std::fs;

use serde_json::json;

use crate::stage::{Ask, Stage, lacks, run_arguments};

/// Whether `script` passes as an acceptance command under `policy`.
fn passes(policy: &str, script: &str) -> bool {
    let stage = Stage::new();
    stage.commit(&[("provost.toml", policy), ("tests/all.sh", script)]);
    let ask = Ask {
        accept: "sh tests/all.sh",
        ..Ask::default()
    };
    let outcome = stage.run("echo good > src/a.txt", &ask);
    let code = outcome.code();
    assert!(["OK", "ACCEPTANCE_FAILED"].contains(&code), "{outcome:?}");
    if code != "OK" {
        eprintln!("{}", outcome.json["output"]);
    }
    code == "OK"
}

#[test]
fn git_is_usable_where_a_run_is_judged() {
    let script = "set -e; git status --porcelain; git diff --quiet; echo new > src/new
        git add src/new; git commit -qm new; git log --oneline | grep -q new";
    assert!(passes("", script));
}

#[test]
fn tags_name_the_version_where_a_run_is_judged() {
    let stage = Stage::new();
    stage.git(&["tag", "plain-1"]);
    stage.git(&["tag", "-a", "-m", "first", "v1.0"]);
    let script = "set -e; test \"$(git describe)\" = \"v1.0-1-g$(git rev-parse --short HEAD)\"
        git describe --tags; git tag | grep -q plain-1; git cat-file -t v1.0 | grep -q tag";
    stage.commit(&[("tests/all.sh", script)]);
    let ask = Ask {
        accept: "sh tests/all.sh",
        ..Ask::default()
    };
    let outcome = stage.run("git describe --tags && echo good > src/a.txt", &ask);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    // An annotated tag of the commit itself.
    stage.git(&["tag", "-a", "-m", "second", "v2.0"]);
    let outcome = stage.run(
        "test $(git describe) = v2.0 && echo good > src/a.txt",
        &Ask::default(),
    );
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
}

/// A repository with the submodule `vendor/lib`, whose checkout has uncommitted changes.
fn with_submodule() -> Stage {
    let stage = Stage::new();
    stage.repository(
        "lib",
        &[("word", "recorded\n"), ("deep/tool.sh", "exit 0\n")],
    );
    let file = ["-c", "protocol.file.allow=always"];
    let add = [
        "submodule",
        "add",
        "--name",
        "a/lib",
        "../lib",
        "vendor/lib",
    ];
    stage.git(&[&file[..], &add].concat());
    stage.commit(&[(
        "check.sh",
        "grep -q good src/a.txt && grep -qx recorded vendor/lib/word && sh vendor/lib/deep/tool.sh",
    )]);
    stage.write("repo/vendor/lib/word", "changed\n");
    stage
}

#[test]
fn a_submodule_is_there_as_recorded_and_cannot_be_written() {
    let stage = with_submodule();
    let before = stage.surroundings();
    let script = "grep -qx recorded vendor/lib/word && ! echo x > vendor/lib/word &&
        ! rm -r vendor/lib 2>/dev/null && test -z \"$(git status --porcelain)\" &&
        echo good > src/a.txt";
    let outcome = stage.run(script, &Ask::default());
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert_eq!(outcome.json["changed_files"], json!(["src/a.txt"]));
    assert!(!outcome.stderr.contains("is empty"), "{outcome:?}");
    stage.assert_clean(&before, "submodule");
    let verified = stage.verify(outcome.text("run_id"));
    assert_eq!(verified.exit, 0, "{verified:?}");
    let word = fs::read_to_string(stage.path("repo/vendor/lib/word")).unwrap();
    assert_eq!(word, "changed\n");
}

#[test]
fn a_submodule_without_objects_is_empty_and_the_run_says_so_at_its_start() {
    let stage = with_submodule();
    let modules = stage.path("repo/.git/modules");
    let elsewhere = stage.path("elsewhere");
    fs::rename(modules.join("a/lib"), &elsewhere).unwrap();
    fs::remove_dir_all(stage.path("repo/vendor/lib")).unwrap();
    let ask = Ask {
        accept: "test -d vendor/lib",
        ..Ask::default()
    };
    let empty = "test -z \"$(ls -A vendor/lib)\" && echo good > src/a.txt";
    let says = |reason: &str| {
        let agent = stage.agent(empty);
        let words = run_arguments(&agent, &ask);
        // A program gets no notes.
        let words: Vec<&str> = words.into_iter().filter(|it| *it != "--json").collect();
        let outcome = stage.ask(&words);
        assert_eq!(outcome.exit, 0, "{outcome:?}");
        let words = format!("the submodule vendor/lib is empty in sandboxes, because {reason}");
        assert!(outcome.stderr.contains(&words), "{outcome:?}");
        assert!(
            outcome
                .stderr
                .contains("git submodule update --init vendor/lib")
        );
    };
    says("it was never checked out here");
    // A link would lead to objects of another repository.
    std::os::unix::fs::symlink(&elsewhere, modules.join("a/lib")).unwrap();
    says("a symbolic link leads to its objects");
}

#[test]
fn a_sanitizer_build_runs_and_finds_what_it_is_there_for() {
    if lacks("cc") {
        return;
    }
    let script = "set -e; mkdir -p target
        printf '#include <stdlib.h>\\nint main(int c, char **v) { char *p = malloc(4); p[c + 2] = 1; \
        free(p); return 0; }\\n' > target/a.c
        cc -g -fsanitize=address,undefined target/a.c -o target/a
        target/a; ! target/a too far 2> target/said; grep -q heap-buffer-overflow target/said";
    assert!(passes("", script));
}

#[test]
fn a_browser_without_a_screen_runs() {
    if lacks("chromium") {
        return;
    }
    let script = "echo '<p id=x></p><script>x.textContent = 40 + 2</script>' > /tmp/page.html
        browser=/usr/lib/chromium/chromium; test -x $browser || browser=chromium
        timeout 60 $browser --headless --no-sandbox --disable-gpu --dump-dom file:///tmp/page.html \
        2>/tmp/said | grep -q '>42<' || { tail -5 /tmp/said; exit 1; }";
    assert!(passes("", script));
}
