//! What the commands of real projects do, inside the sandbox that judges them.

use crate::stage::{Ask, Stage, lacks};

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
