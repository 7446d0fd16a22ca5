//! Questions of a running agent: asked, approved, refused, expired, and the driver killed meanwhile.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stage::{Running, Stage, lacks};

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

fn stage(wait: &str) -> Stage {
    let stage = Stage::new();
    let policy = format!("[commands]\nallow = [\"sh check.sh\"]\n[ask]\nwait = \"{wait}\"\n");
    stage.commit(&[("provost.toml", &policy)]);
    stage
}

/// Starts a run whose agent may ask for hosts.
fn start(stage: &Stage, script: &str) -> Running {
    let mut contract: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    contract["allowed_paths"] = json!(["src/a.txt"]);
    contract["tool_permissions"]["network"] = json!("on-request");
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    stage.write("contract.json", &contract.to_string());
    let file = stage.path("contract.json").display().to_string();
    let agent = stage.agent(script);
    stage.spawn(stage.provost(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]))
}

/// The run and the digest of its question, once it is open.
fn question(stage: &Stage, place: &str) -> (String, String) {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let status = stage.ask(&["status", "--json"]).json;
        let run = &status["open"][0];
        let asked = &run["questions"][0];
        if asked["content"] == place {
            assert_eq!(asked["kind"], "host", "{status}");
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            return (text(&run["run_id"]), text(&asked["digest"]));
        }
        assert!(Instant::now() < until, "no question: {status}");
        sleep(Duration::from_millis(100));
    }
}

/// The events of a kind.
fn events(stage: &Stage, run: &str, kind: &str) -> Vec<Value> {
    let ledger = fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let events = ledger
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    let found = events.filter(|event| event["event_type"] == kind);
    found.map(|event| event["payload"].clone()).collect()
}

/// Tries until it passes, but not for ever.
fn patient(place: &str) -> String {
    format!(
        "for try in 1 2 3 4 5 6; do curl --noproxy '' -sS -f http://{place}/ > src/a.txt && exit 0; \
         curl --noproxy '' -sS http://{place}/; sleep 0.2; done; exit 0"
    )
}

#[test]
fn a_yes_lets_a_held_connection_through_and_is_given_once() {
    if lacks("curl") {
        return;
    }
    let (stage, place) = (stage("1m"), server());
    let running = start(&stage, &patient(&place));
    let (run, digest) = question(&stage, &place);
    let shown = String::from_utf8(stage.ask(&["status"]).stdout).unwrap();
    assert!(shown.contains("provost approve "), "{shown}");
    assert!(shown.contains(&digest[..12]), "{shown}");

    // Another digest, and one that is too short.
    for wrong in ["0123456789abcdef", "01"] {
        let refused = stage.ask(&["approve", &run, wrong, "--json"]);
        let want = ("NOTHING_TO_APPROVE", 1);
        assert_eq!((refused.code(), refused.exit), want, "{refused:?}");
    }
    let given = stage.ask(&["approve", &run, &digest[..12], "--json"]);
    assert_eq!(given.exit, 0, "{given:?}");
    assert_eq!(given.json["recorded"], true, "{given:?}");
    let twice = stage.ask(&["reject", &run, &digest, "--json"]);
    assert_eq!(twice.code(), "NOTHING_TO_APPROVE", "{twice:?}");

    let outcome = running.wait();
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert_eq!(outcome.json["network"][0]["code"], "OK", "{outcome:?}");
    let answers = events(&stage, &run, "QUESTION_ANSWERED");
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["how"], "terminal");
    assert_eq!(answers[0]["digest"], digest.as_str());
    assert_eq!(stage.verify(&run).exit, 0);
    let over = stage.ask(&["approve", &run, &digest, "--json"]);
    assert_eq!(over.code(), "NOTHING_TO_APPROVE", "{over:?}");
}

#[test]
fn a_no_and_silence_refuse_and_an_answer_after_that_is_late() {
    if lacks("curl") {
        return;
    }
    let (stage, place) = (stage("1m"), server());
    let once = format!("echo good > src/a.txt; curl --noproxy '' -sS http://{place}/; exit 0");
    let running = start(&stage, &once);
    let (run, digest) = question(&stage, &place);
    let given = stage.ask(&["reject", &run, &digest, "--reason", "not needed", "--json"]);
    assert_eq!(given.exit, 0, "{given:?}");
    let outcome = running.wait();
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let printed = stage.printed_in(&run);
    let refused =
        format!("NETWORK_REFUSED: `{place}` is not granted, and a person said no: not needed");
    assert!(printed.contains(&refused), "{printed}");
    assert_eq!(stage.verify(&run).exit, 0);

    let stage = self::stage("2s");
    let slow = format!(
        "echo good > src/a.txt; curl --noproxy '' -sS http://{place}/; sleep 1; curl --noproxy '' -sS http://{place}/; \
         sleep 4; exit 0"
    );
    let running = start(&stage, &slow);
    let (run, digest) = question(&stage, &place);
    let until = Instant::now() + Duration::from_secs(20);
    while events(&stage, &run, "QUESTION_EXPIRED").is_empty() {
        assert!(Instant::now() < until, "the question does not expire");
        sleep(Duration::from_millis(50));
    }
    let outcome = running.wait();
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let late = stage.ask(&["approve", &run, &digest, "--json"]);
    assert_eq!(late.code(), "NOTHING_TO_APPROVE", "{late:?}");
    let network = outcome.json["network"].as_array().unwrap();
    assert!(
        network.iter().all(|line| line["allow"] == false),
        "{network:?}"
    );
    assert_eq!(stage.verify(&run).exit, 0);
}

#[test]
fn a_question_outlives_its_driver_and_the_yes_serves_the_next_attempt() {
    if lacks("curl") {
        return;
    }
    let (stage, place) = (stage("1m"), server());
    let running = start(&stage, &patient(&place));
    let (run, digest) = question(&stage, &place);
    running.signal(Signal::KILL);
    let _ = running.wait();
    let (again, same) = question(&stage, &place);
    assert_eq!((&again, &same), (&run, &digest), "it is still open");
    let given = stage.ask(&["approve", &run, &digest, "--json"]);
    assert_eq!(
        (given.exit, given.json["recorded"].clone()),
        (0, json!(true)),
        "{given:?}"
    );
    let outcome = stage.ask(&["resume", &run, "--json"]);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    assert_eq!(events(&stage, &run, "QUESTION_ASKED").len(), 1);
    assert_eq!(events(&stage, &run, "ATTEMPT_LOST").len(), 1);
    assert_eq!(stage.verify(&run).exit, 0);
}
