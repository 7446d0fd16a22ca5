//! Runs that pass a limit: refused by its name, with the work kept, and verified like any other.

use std::time::{Duration, Instant};

use crate::scene::{Ask, Scene, is_root, lacks};

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

/// The scenes of everybody whom the tests can run as.
fn scenes() -> Vec<Scene> {
    let mut scenes = vec![Scene::new()];
    if is_root() {
        let scene = Scene::of_nobody();
        scene.copy_binary();
        scenes.push(scene);
    }
    scenes
}

#[test]
fn an_agent_that_passes_a_limit_is_refused_and_its_work_is_kept() {
    if lacks("python3") {
        return;
    }
    for scene in scenes() {
        let before = scene.surroundings();
        for (line, more, code) in CASES {
            let since = Instant::now();
            let ask = Ask {
                more,
                ..Ask::default()
            };
            let outcome = scene.run(&format!("echo good > src/a.txt\n{line}"), &ask);
            assert_eq!(outcome.code(), code, "{outcome:?}");
            assert_eq!(outcome.exit, 1, "{outcome:?}");
            assert!(since.elapsed() < Duration::from_secs(50), "{code}");
            let run = outcome.text("run_id");
            assert_eq!(scene.verify(run).exit, 0, "{code}");
            let kept = scene.git(&["show", &format!("refs/provost/runs/{run}/1:src/a.txt")]);
            assert_eq!(kept.trim(), "good", "{code}");
            scene.assert_clean(&before, code);
        }
    }
}

#[test]
fn an_acceptance_command_that_passes_a_limit_is_no_success() {
    if lacks("python3") {
        return;
    }
    let scene = Scene::new();
    let before = scene.surroundings();
    for (line, more, code) in CASES {
        let script =
            format!("printf '%s\\n' '{line}' 'exit 0' > src/test.sh; echo good > src/a.txt");
        let ask = Ask {
            accept: "sh src/test.sh",
            more,
            ..Ask::default()
        };
        let outcome = scene.run(&script, &ask);
        assert_eq!(outcome.code(), code, "{outcome:?}");
        assert_eq!(scene.verify(outcome.text("run_id")).exit, 0, "{code}");
        scene.assert_clean(&before, code);
    }
}

#[test]
fn a_contract_in_a_file_sets_limits_too_and_nonsense_is_refused() {
    let scene = Scene::new();
    let listed = "[commands]\nallow = [\"sh check.sh\"]\n[approve]\npaths = [\"src\"]\n";
    scene.commit(&[("provost.toml", listed)]);
    let made = scene.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(made.code(), "OK", "{made:?}");
    let place = scene.evidence(made.text("run_id"), "contract.json");
    let text = std::fs::read_to_string(place).unwrap();
    let mut contract: serde_json::Value = serde_json::from_str(&text).unwrap();
    contract["acceptance_tests"][0]["cmd"] = "sh check.sh".into();
    let limits = |value: serde_json::Value| {
        let mut contract = contract.clone();
        contract["x_provost"]["limits"] = value;
        scene.write("contract.json", &contract.to_string());
        let file = scene.path("contract.json").display().to_string();
        let outcome = scene.ask(&["run", "-f", &file, "--agent-cmd", "sleep 60", "--json"]);
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

/// A shell gives up at once when it cannot fork, and takes its sandbox along before anybody looks.
#[test]
fn a_program_that_fails_because_its_sandbox_is_full_is_told_so() {
    // Root is not refused by the kernel, and is ended by whoever counts.
    for scene in scenes() {
        let script = "for i in $(seq 64); do sleep 30 & done; wait";
        let words = ["sandbox", "--processes", "32", "--", "sh", "-c", script];
        let outcome = scene.ask(&words);
        assert_eq!(outcome.exit, 125, "{outcome:?}");
        let said = "used up its 32 processes and was ended (--processes)";
        assert!(outcome.stderr.contains(said), "{outcome:?}");
        let outcome = scene.ask(&["sandbox", "--processes", "32", "--", "sh", "-c", "exit 2"]);
        assert_eq!(outcome.exit, 2, "a failure of its own: {outcome:?}");
    }
}

#[test]
fn a_command_that_could_never_start_is_refused_before_the_agent_works() {
    let scene = Scene::new();
    scene.commit(&[("plain.sh", "#!/bin/sh\n"), ("lost", "#!/no/such\n")]);
    scene.git(&["update-index", "--chmod=+x", "lost"]);
    scene.git(&["commit", "-q", "-m", "a script"]);
    let before = scene.surroundings();
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
        let outcome = scene.run("echo worked; echo good > src/a.txt", &ask);
        let want = ("ACCEPTANCE_UNSTARTABLE", 1);
        assert_eq!((outcome.code(), outcome.exit), want, "{outcome:?}");
        let reason = outcome.json["verdict"]["reason"].as_str().unwrap();
        assert!(reason.contains(words), "{reason}");
        let run = outcome.text("run_id");
        assert!(!scene.printed_in(run).contains("worked"), "{accept}");
        assert_eq!(scene.verify(run).exit, 0, "{accept}");
        scene.assert_clean(&before, accept);
    }
    // What the agent may make is its business.
    let ask = Ask {
        accept: "./src/check",
        ..Ask::default()
    };
    let script = "printf '#!/bin/sh\\n' > src/check; chmod +x src/check; echo good > src/a.txt";
    let outcome = scene.run(script, &ask);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
}
