//! Agents that were granted a place of the network.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread;

use serde_json::json;

use crate::stage::{Ask, Stage, is_root, lacks, run_arguments};

/// A server on the host's loopback that says `good`; its place.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head = lines.map_while(Result::ok);
            let _ = head.take_while(|line| !line.is_empty()).count();
            let reply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ngood\n";
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    place
}

#[test]
fn an_agent_reaches_what_was_granted_and_every_request_is_in_the_evidence() {
    if lacks("curl") {
        return;
    }
    let place = server();
    let script = format!(
        "curl -sS http://{place}/quince?path > src/a.txt; curl -s http://tracker.example.com/; true"
    );
    let ordinary = || {
        let stage = Stage::of_nobody();
        stage.copy_binary();
        stage
    };
    let other = is_root() && !lacks("setpriv");
    let stages = [Some(Stage::new()), other.then(ordinary)];
    for stage in stages.into_iter().flatten() {
        let ask = Ask {
            more: &["--net", &place],
            ..Ask::default()
        };
        let outcome = stage.run(&script, &ask);
        assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
        let lines = outcome.json["network"].as_array().unwrap();
        let brief = |line: &serde_json::Value| json!([line["target"], line["code"], line["count"]]);
        let brief: Vec<_> = lines.iter().map(brief).collect();
        let refused = json!(["tracker.example.com:80", "NETWORK_REFUSED", 1]);
        assert_eq!(brief, [json!([place, "OK", 1]), refused]);
        let run = outcome.text("run_id");
        for name in ["sandbox/network.json", "events.jsonl"] {
            let text = std::fs::read_to_string(stage.evidence(run, name)).unwrap();
            assert!(text.contains("tracker.example.com:80"), "{name}: {text}");
            assert!(!text.contains("quince"), "{name}: a path was written down");
        }
    }
}

#[test]
fn acceptance_has_no_network_although_the_agent_had() {
    if lacks("curl") {
        return;
    }
    let place = server();
    let stage = Stage::new();
    stage.commit(&[("ask.sh", &format!("curl -sS -m 5 http://{place}/\n"))]);
    let ask = Ask {
        accept: "sh ask.sh",
        more: &["--net", &place],
        ..Ask::default()
    };
    let outcome = stage.run("echo good > src/a.txt", &ask);
    assert_eq!(outcome.code(), "ACCEPTANCE_FAILED", "{outcome:?}");
}

#[test]
fn a_secret_is_nowhere_in_the_sandbox_or_the_evidence() {
    if lacks("curl") {
        return;
    }
    let place = server();
    let stage = Stage::new();
    let credential = format!("http://{place} X-Key: $TEST_KEY");
    let ask = Ask {
        more: &["--credential", &credential],
        ..Ask::default()
    };
    let agent = stage.agent(
        "env; curl -sS http://$PLACE/ > src/a.txt"
            .replace("$PLACE", &place)
            .as_str(),
    );
    let command = || stage.provost(&run_arguments(&agent, &ask));

    let outcome = stage.spawn(command()).wait();
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("NOT_FOUND", 2),
        "{outcome:?}"
    );
    assert!(outcome.text("reason").contains("$TEST_KEY"), "{outcome:?}");
    assert!(stage.runs().is_empty(), "no run begins without its secret");

    let mut with_secret = command();
    with_secret.env("TEST_KEY", "quince-value");
    let outcome = stage.spawn(with_secret).wait();
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert!(stage.printed().contains("TEST_KEY=kept-outside-the-box"));
    let found = std::process::Command::new("grep")
        .args(["-rl", "quince-value"])
        .arg(stage.path("repo"))
        .arg(stage.path("cache"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    let ledger = stage.evidence(outcome.text("run_id"), "events.jsonl");
    let ledger = std::fs::read_to_string(ledger).unwrap();
    assert!(
        ledger.contains("X-Key: $TEST_KEY"),
        "the name is in the evidence"
    );
}
