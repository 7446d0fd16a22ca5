//! Runs that pass a limit: refused by its name, with the work kept, and verified like any other.

use std::time::{Duration, Instant};

use crate::stage::{Ask, Stage, is_root, lacks};

/// What passes a limit, the flag that sets it, and the code that says so.
const CASES: [(&str, &[&str], &str); 4] = [
    (
        "dd if=/dev/zero of=/dev/null bs=300M",
        &["--memory", "128MiB"],
        "MEMORY_LIMIT",
    ),
    (
        // A user gets a refusal of the kernel first; the threads that are there stay.
        "python3 -c \"import threading, time; [threading.Thread(target=time.sleep, args=(60,)).start() \
         for _ in range(40)]\"",
        &["--processes", "32"],
        "PROCESS_LIMIT",
    ),
    (
        "head -c 20000000 /dev/zero > src/big; sleep 60",
        &["--disk", "8MiB"],
        "DISK_LIMIT",
    ),
    ("sleep 60", &["--no-progress", "2s"], "NO_PROGRESS"),
];

/// One stage for each user that the tests can run as.
fn stages() -> Vec<Stage> {
    let mut stages = vec![Stage::new()];
    if is_root() {
        let stage = Stage::of_nobody();
        stage.copy_binary();
        stages.push(stage);
    }
    stages
}

#[test]
fn an_agent_that_passes_a_limit_is_refused_and_its_work_is_kept() {
    if lacks("python3") {
        return;
    }
    for stage in stages() {
        let before = stage.surroundings();
        for (line, more, code) in CASES {
            let since = Instant::now();
            let ask = Ask {
                more,
                ..Ask::default()
            };
            let outcome = stage.run(&format!("echo good > src/a.txt\n{line}"), &ask);
            assert_eq!(outcome.code(), code, "{outcome:?}");
            assert_eq!(outcome.exit, 1, "{outcome:?}");
            assert!(since.elapsed() < Duration::from_secs(50), "{code}");
            let run = outcome.text("run_id");
            assert_eq!(stage.verify(run).exit, 0, "{code}");
            let kept = stage.git(&["show", &format!("refs/provost/runs/{run}/1:src/a.txt")]);
            assert_eq!(kept.trim(), "good", "{code}");
            stage.assert_clean(&before, code);
        }
    }
}

#[test]
fn an_acceptance_command_that_passes_a_limit_is_no_success() {
    if lacks("python3") {
        return;
    }
    let stage = Stage::new();
    let before = stage.surroundings();
    for (line, more, code) in CASES {
        let script =
            format!("printf '%s\\n' '{line}' 'exit 0' > src/test.sh; echo good > src/a.txt");
        let ask = Ask {
            accept: "sh src/test.sh",
            more,
            ..Ask::default()
        };
        let outcome = stage.run(&script, &ask);
        assert_eq!(outcome.code(), code, "{outcome:?}");
        assert_eq!(stage.verify(outcome.text("run_id")).exit, 0, "{code}");
        stage.assert_clean(&before, code);
    }
}

#[test]
fn a_contract_in_a_file_sets_limits_too_and_nonsense_is_refused() {
    let stage = Stage::new();
    let listed = "[commands]\nallow = [\"sh check.sh\"]\n[approve]\npaths = [\"src\"]\n";
    stage.commit(&[("provost.toml", listed)]);
    let made = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(made.code(), "OK", "{made:?}");
    let place = stage.evidence(made.text("run_id"), "contract.json");
    let text = std::fs::read_to_string(place).unwrap();
    let mut contract: serde_json::Value = serde_json::from_str(&text).unwrap();
    contract["acceptance_tests"][0]["cmd"] = "sh check.sh".into();
    let limits = |value: serde_json::Value| {
        let mut contract = contract.clone();
        contract["x_provost"]["limits"] = value;
        stage.write("contract.json", &contract.to_string());
        let file = stage.path("contract.json").display().to_string();
        let outcome = stage.ask(&["run", "-f", &file, "--agent-cmd", "sleep 60", "--json"]);
        let paths: Vec<String> = outcome
            .findings()
            .into_iter()
            .map(|(_, path)| path)
            .collect();
        (outcome.code().to_owned(), paths)
    };
    let (code, _) = limits(serde_json::json!({ "no_progress_sec": 2 }));
    assert_eq!(code, "NO_PROGRESS");
    let nonsense = serde_json::json!({ "memory_bytes": 1, "inodes": 0, "processes": 64 });
    let (code, paths) = limits(nonsense);
    assert_eq!(code, "CONTRACT_INVALID");
    let want = ["/x_provost/limits/memory_bytes", "/x_provost/limits/inodes"];
    assert_eq!(paths, want);
    let (code, _) = limits(serde_json::json!({ "ram": 1 }));
    assert_eq!(code, "CONTRACT_INVALID");
}

/// A shell that cannot fork ends at once, and its sandbox ends before the watcher counts it.
#[test]
fn a_failure_because_a_sandbox_is_full_is_reported_as_that() {
    // The kernel does not refuse root; the watcher that counts processes ends the sandbox.
    for stage in stages() {
        let script = "for i in $(seq 64); do sleep 30 & done; wait";
        let words = ["sandbox", "--processes", "32", "--", "sh", "-c", script];
        let outcome = stage.ask(&words);
        assert_eq!(outcome.exit, 125, "{outcome:?}");
        let said = "used up its 32 processes and was ended (--processes)";
        assert!(outcome.stderr.contains(said), "{outcome:?}");
        let outcome = stage.ask(&["sandbox", "--processes", "32", "--", "sh", "-c", "exit 2"]);
        assert_eq!(outcome.exit, 2, "a failure of its own: {outcome:?}");
    }
}

#[test]
fn a_command_that_could_never_start_is_refused_before_the_agent_works() {
    let stage = Stage::new();
    stage.commit(&[("plain.sh", "#!/bin/sh\n"), ("lost", "#!/no/such\n")]);
    stage.git(&["update-index", "--chmod=+x", "lost"]);
    stage.git(&["commit", "-q", "-m", "a script"]);
    let before = stage.surroundings();
    let cases = [
        ("no-such-program -q", "there is no program"),
        ("./plain.sh", "is not executable"),
        ("./lost", "is a script for `/no/such`"),
    ];
    for (accept, words) in cases {
        let ask = Ask {
            accept,
            ..Ask::default()
        };
        let outcome = stage.run("echo worked; echo good > src/a.txt", &ask);
        let want = ("ACCEPTANCE_UNSTARTABLE", 1);
        assert_eq!((outcome.code(), outcome.exit), want, "{outcome:?}");
        let reason = outcome.json["verdict"]["reason"].as_str().unwrap();
        assert!(reason.contains(words), "{reason}");
        let run = outcome.text("run_id");
        assert!(!stage.printed_in(run).contains("worked"), "{accept}");
        assert_eq!(stage.verify(run).exit, 0, "{accept}");
        stage.assert_clean(&before, accept);
    }
    // What the agent may make is its business.
    let ask = Ask {
        accept: "./src/check",
        ..Ask::default()
    };
    let script = "printf '#!/bin/sh\\n' > src/check; chmod +x src/check; echo good > src/a.txt";
    let outcome = stage.run(script, &ask);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
}
