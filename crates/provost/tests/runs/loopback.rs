//! Servers on `127.0.0.1` and `::1`: every sandbox has a loopback of its own, unless it is turned off.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage, lacks};

/// Serves itself on the loopback, in both families, and fails where it cannot.
const SERVE: &str = "import os, socket\n\
    hosts = ['127.0.0.1'] + (['::1'] if os.path.exists('/proc/net/if_inet6') else [])\n\
    for host in hosts:\n\
    \x20   family = socket.AF_INET6 if ':' in host else socket.AF_INET\n\
    \x20   server = socket.create_server((host, 0), family=family)\n\
    \x20   client = socket.create_connection(server.getsockname()[:2], 5)\n\
    \x20   peer, _ = server.accept()\n\
    \x20   client.sendall(b'hello')\n\
    \x20   assert peer.recv(5) == b'hello'\n";

/// What a project of node does in its tests: a server on a port that is free, asked by a client.
const NODE: &str = "const http = require('http');\n\
    const app = http.createServer((request, response) => response.end('hello'));\n\
    app.listen(0, '127.0.0.1', () => {\n\
    \x20 http.get(`http://localhost:${app.address().port}/`, (answer) => {\n\
    \x20   answer.resume().on('end', () => process.exit(answer.statusCode === 200 ? 0 : 1));\n\
    \x20 }).on('error', () => process.exit(2));\n\
    });\n";

const GOOD: &str = "echo good > src/a.txt";

/// A stage whose base has the programs above and `policy`.
fn stage(policy: &str) -> Stage {
    let stage = Stage::new();
    stage.commit(&[
        ("provost.toml", policy),
        ("tests/serve.py", SERVE),
        ("tests/server.js", NODE),
    ]);
    stage
}

fn accept(stage: &Stage, agent: &str, command: &str, more: &[&str]) -> Outcome {
    let ask = Ask {
        accept: command,
        more,
        ..Ask::default()
    };
    stage.run(agent, &ask)
}

#[test]
fn agent_and_acceptance_serve_on_their_own_loopback_without_a_setting() {
    if lacks("python3") || lacks("node") {
        return;
    }
    let stage = stage("");
    let agent = format!("set -e; python3 tests/serve.py; node tests/server.js; {GOOD}");
    for command in ["python3 tests/serve.py", "node tests/server.js"] {
        let outcome = accept(&stage, &agent, command, &[]);
        assert_eq!(outcome.code(), "OK", "{command}: {outcome:?}");
    }
}

#[test]
fn reviewers_and_preparing_steps_have_a_loopback_too() {
    if lacks("python3") {
        return;
    }
    let stage = stage(
        "[[prepare]]\nrun = [\"python3 tests/serve.py\", \"mkdir made\"]\n\
         inputs = [\"tests\"]\noutputs = [\"made\"]\n",
    );
    stage.commit(&[(".gitignore", "/made/\n")]);
    let verdict = json!({ "verdict": "PASS", "summary": "I looked.", "violations": [],
        "findings": [] });
    stage.write(
        "agent/reviewer.sh",
        &format!(
            "set -e; python3 $PROVOST_TREE/tests/serve.py; echo '{verdict}' > $PROVOST_RESULT"
        ),
    );
    let reviewer = format!("sh {}", stage.path("agent/reviewer.sh").display());
    let outcome = accept(&stage, GOOD, "sh check.sh", &["--review-cmd", &reviewer]);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
}

#[test]
fn nothing_but_the_own_loopback_is_reached() {
    if lacks("python3") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stage = stage("");
    let script = format!(
        "set -e\npython3 - <<'END'\nimport socket\n\
         for place in [('127.0.0.1', {port}), ('192.0.2.1', 80), ('127.0.0.1', 3128)]:\n\
         \x20   try: socket.create_connection(place, 3)\n\
         \x20   except OSError: continue\n\
         \x20   raise SystemExit(f'reached {{place}}')\n\
         for kind in [socket.SOCK_RAW]:\n\
         \x20   try: socket.socket(socket.AF_INET, kind, 1)\n\
         \x20   except OSError: continue\n\
         \x20   raise SystemExit('a raw socket')\nEND\n{GOOD}\n"
    );
    let outcome = accept(&stage, &script, "sh check.sh", &[]);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "the host was reached");
}

#[test]
fn the_policy_turns_the_loopback_off_under_both_names() {
    if lacks("python3") {
        return;
    }
    for table in ["sandbox", "box"] {
        let stage = stage(&format!("[{table}]\nloopback = false\n"));
        let outcome = accept(&stage, GOOD, "python3 tests/serve.py", &[]);
        assert_eq!(outcome.code(), "ACCEPTANCE_FAILED", "{table}: {outcome:?}");
        let agent = format!("python3 tests/serve.py || {GOOD}");
        let outcome = accept(&stage, &agent, "sh check.sh", &[]);
        assert_eq!(outcome.code(), "OK", "{table}: {outcome:?}");
    }
    let both = stage("[sandbox]\nloopback = false\n[box]\nloopback = true\n");
    let outcome = accept(&both, GOOD, "sh check.sh", &[]);
    assert_eq!(
        outcome.code(),
        "INPUT_INVALID",
        "one table twice is no policy: {outcome:?}"
    );
}

#[test]
fn a_contract_turns_the_loopback_off_and_never_on() {
    if lacks("python3") {
        return;
    }
    let commands = "[commands]\nallow = [\"sh check.sh\", \"python3 tests/serve.py\"]\n";
    let off = format!("{commands}[box]\nloopback = false\n");
    let cases: [(&str, Option<bool>, &str); 4] = [
        (commands, None, "OK"),
        (commands, Some(true), "OK"),
        (commands, Some(false), "ACCEPTANCE_FAILED"),
        (&off, None, "ACCEPTANCE_FAILED"),
    ];
    for (policy, written, want) in cases {
        let stage = stage(policy);
        let file = stage.path("home/new.json").display().to_string();
        let words = [
            "contract",
            "new",
            &file,
            "Fix it",
            "--allow",
            "src/a.txt",
            "--accept",
            "python3 tests/serve.py",
        ];
        assert_eq!(stage.ask(&words).exit, 0);
        let mut contract: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        if let Some(written) = written {
            contract["x_provost"]["loopback"] = json!(written);
        }
        fs::write(&file, contract.to_string()).unwrap();
        let agent = stage.agent(GOOD);
        let outcome = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
        assert_eq!(
            outcome.code(),
            want,
            "{written:?} under {policy}: {outcome:?}"
        );
    }
}

#[test]
fn loopback_that_the_policy_turns_off_is_never_ignored_in_silence() {
    let stage = Stage::new();
    let policy = "[commands]\nallow = [\"sh check.sh\"]\n[sandbox]\nloopback = false\n";
    stage.commit(&[("provost.toml", policy)]);
    let mut contract: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    contract["x_provost"] = json!({ "loopback": true });
    stage.write("contract.json", &contract.to_string());
    let file = stage.path("contract.json").display().to_string();
    let agent = stage.agent("true");
    for words in [
        &["check", "contract", &file][..],
        &["contract", "lint", &file],
        &["run", "-f", &file, "--agent-cmd", &agent],
    ] {
        let refused = stage.ask(words);
        assert_eq!(refused.exit, 1, "{words:?}: {refused:?}");
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&refused.stdout),
            refused.stderr
        );
        assert!(
            said.contains("the policy turns loopback off"),
            "{words:?}: {said}"
        );
    }
    let failed = stage.run("echo bad > src/a.txt", &Ask::default());
    assert_eq!(failed.json["loopback"], false, "{failed:?}");
    let shown = stage.ask(&["show", failed.text("run_id")]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("loopback off"), "{shown}");
    let sandboxed = stage.ask(&["sandbox", "--", "true"]);
    assert_eq!(sandboxed.exit, 0, "{sandboxed:?}");
    assert!(sandboxed.stderr.contains("loopback off"), "{sandboxed:?}");
}
