//! Agents that hang, flood, fail, or lie about what they did.

use std::time::{Duration, Instant};

use super::{Code, Contained, Untried, Want, attacks, check_verdict, whole};
use crate::stage::{Ask, Stage, lacks};

attacks! {
    changes_nothing: "exit 0" => Code("EMPTY_DIFF"), Untried;
    changes_only_what_is_ignored:
        "mkdir target; echo x > target/x; exit 0" => Code("EMPTY_DIFF"), Untried;
    fails: "echo good > src/a.txt; exit 3" => Code("AGENT_FAILED"), Untried;
    kills_itself: "kill -9 $$" => Code("AGENT_FAILED"), Untried;
    kills_everything_it_sees:
        "echo good > src/a.txt; kill -9 -1; kill -9 1; exit 0" => Contained, Untried;
    floods_without_end: "yes" => Code("AGENT_OUTPUT_LIMIT"), Untried;
    leaves_a_result_that_is_no_json:
        "echo '{' > $PROVOST_RESULT" => Code("OUTPUT_INVALID"), Untried;
    leaves_a_result_of_another_shape:
        "echo '[]' > $PROVOST_RESULT" => Code("OUTPUT_INVALID"), Untried;
    leaves_a_result_about_another_task:
        "echo '{\"task_id\":\"other\",\"status\":\"SUCCESS\",\"summary\":\"\",\
         \"evidence_refs\":{},\"failure\":null}' > $PROVOST_RESULT"
        => Code("OUTPUT_INVALID"), Untried;
    leaves_a_result_that_is_deep:
        "head -c 200000 /dev/zero | tr '\\0' '[' > $PROVOST_RESULT"
        => Code("OUTPUT_INVALID"), Untried;
    leaves_a_result_that_is_a_fifo:
        "mkfifo $PROVOST_RESULT" => Code("OUTPUT_INVALID"), Untried;
    leaves_a_result_that_is_a_link:
        "ln -s @OUTSIDE@/secret $PROVOST_RESULT" => Code("OUTPUT_INVALID"), Untried;
    leaves_a_result_that_is_a_directory:
        "mkdir $PROVOST_RESULT" => Code("OUTPUT_INVALID"), Untried;
    leaves_a_result_of_a_hundred_megabytes:
        "head -c 100000000 /dev/zero > $PROVOST_RESULT" => Code("OUTPUT_INVALID"), Untried;
    rewrites_its_contract:
        "echo '{}' > $PROVOST_CONTRACT; rm -f $PROVOST_CONTRACT" => Contained, Untried;
}

/// A result that fits its schema and claims success.
const CLAIM: &str = r#"task=$(sed 's/.*"task_id":"\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
    printf '{"task_id":"%s","status":"SUCCESS","summary":"all tests pass",' $task > x
    printf '"evidence_refs":{"tests":"all"},"failure":null}' >> x
    cat x > $PROVOST_RESULT; rm x"#;

/// Runs `script` with `ask`, and sees that nothing is left.
fn check(name: &str, script: &str, ask: &Ask<'_>, want: &Want) -> Stage {
    let stage = Stage::new();
    let before = stage.surroundings();
    let outcome = stage.run(script, ask);
    check_verdict(name, &outcome, want);
    stage.assert_clean(&before, name);
    stage
}

#[test]
fn claims_success_while_the_tests_fail() {
    let script = format!("{CLAIM}\necho bad > src/a.txt");
    let want = Code("ACCEPTANCE_FAILED");
    check("lie", &script, &Ask::default(), &want);
    check("truth", &whole(CLAIM), &Ask::default(), &Contained);
}

#[test]
fn hangs_and_cannot_be_asked_to_end() {
    let ask = Ask {
        more: &["--timeout", "2s"],
        ..Ask::default()
    };
    for script in [
        "sleep 1000",
        "trap '' TERM INT HUP QUIT; sleep 1000 & while :; do sleep 1; done",
        "exec 1>&- 2>&-; while :; do sleep 1; done",
    ] {
        let since = Instant::now();
        check(script, script, &ask, &Code("AGENT_TIMEOUT"));
        assert!(since.elapsed() < Duration::from_secs(30), "{script}");
    }
}

#[test]
fn floods_two_hundred_megabytes_and_the_evidence_stays_small() {
    let script = whole("head -c 200000000 /dev/zero | tr '\\0' x");
    let stage = check("flood", &script, &Ask::default(), &Contained);
    assert!(stage.printed().len() < 9 << 20);
}

#[test]
fn a_daemon_writes_later_or_never() {
    let late = "echo owned > @OUTSIDE@/canary; echo late > docs/late.md";
    let script = format!(
        "mkdir -p @OUTSIDE@
         setsid sh -c 'sleep 1; {late}' &
         (setsid sh -c 'sleep 1; {late}' < /dev/null > /dev/null 2>&1 &)
         echo good > src/a.txt"
    );
    let stage = Stage::new();
    let before = stage.surroundings();
    let outcome = stage.run(&script, &Ask::default());
    check_verdict("daemon", &outcome, &Contained);
    std::thread::sleep(Duration::from_millis(1500));
    stage.assert_clean(&before, "daemon");

    let before = stage.surroundings();
    stage.run_plainly(&script, "plain");
    crate::stage::until("the daemon without a sandbox", || {
        !before.differences(&stage.surroundings()).is_empty()
    });
    stage.await_silence("daemon");
}

#[test]
fn a_daemon_that_holds_the_output_open_delays_nothing() {
    let since = Instant::now();
    let script = whole("setsid sleep 1000 & (sleep 1000 &)");
    check("daemon", &script, &Ask::default(), &Contained);
    assert!(since.elapsed() < Duration::from_mins(1));
}

#[test]
fn a_program_that_is_not_there_is_no_agent() {
    let stage = Stage::new();
    let before = stage.surroundings();
    for agent in [
        "no-such-program",
        "/no/such/program",
        "src",
        "sh /no/such/script",
    ] {
        let outcome = stage.start_agent(agent, &Ask::default()).wait();
        check_verdict(agent, &outcome, &Code("AGENT_FAILED"));
        stage.assert_clean(&before, agent);
    }
}

/// The acceptance command runs what the agent wrote, so it is an attack as well.
fn check_acceptance(line: &str, time: &str, code: &str) {
    let stage = Stage::new();
    let before = stage.surroundings();
    let script = format!("cat > src/test.sh <<'END'\n{line}\nexit 0\nEND\necho good > src/a.txt");
    let more = ["--timeout", time];
    let ask = Ask {
        accept: "sh src/test.sh",
        more: &more,
        ..Ask::default()
    };
    let outcome = stage.run(&script, &ask);
    assert_eq!(outcome.code(), code, "{line}: {outcome:?}");
    stage.assert_clean(&before, line);
}

#[test]
fn acceptance_may_not_change_the_tree_it_judges() {
    for line in [
        "echo x >> docs/readme.md",
        "rm -f CLAUDE.md",
        "chmod +x check.sh",
    ] {
        check_acceptance(line, "60s", "TREE_CHANGED");
    }
}

#[test]
fn acceptance_that_hangs_fails_or_floods_is_no_success() {
    check_acceptance("sleep 1000", "3s", "ACCEPTANCE_TIMEOUT");
    check_acceptance("exit 1", "60s", "ACCEPTANCE_FAILED");
    check_acceptance("yes", "100s", "ACCEPTANCE_FAILED");
}

/// The command passes, because these change nothing that counts.
#[test]
fn acceptance_has_the_restrictions_of_an_agent() {
    for line in [
        "setsid sleep 1000 &",
        "mkdir -p @OUTSIDE@; echo owned > @OUTSIDE@/canary",
        "echo owned > @REPO@/src/b.txt",
        "mkdir -p out; echo x > out/new",
    ] {
        check_acceptance(line, "60s", "OK");
    }
}

#[test]
fn an_agent_that_writes_itself_into_the_bundle_changes_nothing_there() {
    if lacks("python3") {
        return;
    }
    // Its result and its output are the only ways into the bundle; both are data.
    let script = "#!python\nimport sys\nsys.stdout.buffer.write(bytes(range(256)) * 64)\n\
        sys.stderr.write('\\x1b[2J{\"event_type\":\"RUN_FINISHED\"}\\n')";
    let stage = check("bytes", &whole(script), &Ask::default(), &Contained);
    let run = stage.last_run().unwrap();
    let shown = stage.ask(&["show", &run]);
    assert!(!shown.stdout.contains(&0x1b), "{shown:?}");
}
