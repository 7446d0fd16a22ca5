//! Requests that are refused before there is a run, and what a sandbox stops, leave events.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage, lacks};

/// The text of a contract that could be run.
fn contract(stage: &Stage) -> String {
    let file = stage.path("home/contract.json").display().to_string();
    let words = [
        "contract",
        "new",
        &file,
        "Fix it",
        "--allow",
        "src/a.txt",
        "--accept",
        "sh check.sh",
    ];
    assert_eq!(stage.ask(&words).exit, 0);
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(file).unwrap();
    text
}

/// Asks for a run of the contract `text`.
fn ask(stage: &Stage, text: &str) -> Outcome {
    stage.write("home/asked.json", text);
    let file = stage.path("home/asked.json").display().to_string();
    let agent = stage.agent("echo good > src/a.txt");
    stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"])
}

fn rows(stage: &Stage) -> Vec<Value> {
    let listed = stage.ask(&["runs", "--json"]);
    assert_eq!(listed.exit, 0, "{listed:?}");
    listed.json.as_array().unwrap().clone()
}

/// The events of a type in a ledger.
fn events(text: &[u8], name: &str) -> Vec<Value> {
    let lines = text.split(|byte| *byte == b'\n');
    let events = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    events.filter(|event| event["event_type"] == name).collect()
}

#[test]
fn a_contract_that_is_refused_before_there_is_a_run_leaves_a_sealed_record() {
    let stage = Stage::new();
    let good = contract(&stage);
    let wide = good.replace("\"workspace-write\"", "\"danger-full-access\"");
    assert_ne!(good, wide);
    let cases = [
        ("danger-full-access", wide.as_str()),
        ("malformed", "{\"task_id\": "),
        ("no contract", "[1, 2]"),
        (
            "unknown field",
            &good.replacen('{', "{\"surprise\": 1, ", 1),
        ),
        (
            "no such base",
            &good.replace("\"baseline_ref\": \"", "\"baseline_ref\": \"no-"),
        ),
        ("a secret", "{\"api_key=hunter2-hunter2-hunter2\": 1}"),
    ];
    for (at, (name, text)) in cases.into_iter().enumerate() {
        let outcome = ask(&stage, text);
        assert!([1, 2].contains(&outcome.exit), "{name}: {outcome:?}");
        let rows = rows(&stage);
        assert_eq!(rows.len(), at + 1, "{name}: {rows:?}");
        let row = &rows[0];
        assert_eq!(row["status"], "REFUSED", "{name}: {row}");
        assert_eq!(row["code"], outcome.code(), "{name}: {row}");
        let id = row["run_id"].as_str().unwrap();
        let verified = stage.ask(&["verify", id, "--json"]);
        assert_eq!(verified.exit, 0, "{name}: {verified:?}");
        let shown = stage.ask(&["show", id, "--json"]);
        assert_eq!(
            shown.json["verdict"]["code"],
            outcome.code(),
            "{name}: {shown:?}"
        );
        let record = stage.path("repo/.provost/refused").join(id);
        let ledger = fs::read(record.join("events.jsonl")).unwrap();
        let found = events(&ledger, "policy_violation");
        assert_eq!(
            found[0]["payload"]["verdict"]["code"],
            outcome.code(),
            "{name}"
        );
        for file in fs::read_dir(&record).unwrap() {
            let kept = fs::read(file.unwrap().path()).unwrap();
            assert!(
                !String::from_utf8_lossy(&kept).contains("hunter2"),
                "{name}"
            );
        }
        fs::write(record.join("request.json"), "{}").unwrap();
        let altered = stage.ask(&["verify", id, "--json"]);
        assert_eq!(altered.code(), "EVIDENCE_ALTERED", "{name}: {altered:?}");
        fs::remove_dir_all(record).unwrap();
        fs::create_dir(stage.path("repo/.provost/refused").join(id)).unwrap();
    }
    assert!(stage.runs().is_empty());
    // A file that is not there is no request.
    let agent = stage.agent("true");
    let words = ["run", "-f", "nowhere.json", "--agent-cmd", &agent, "--json"];
    assert_eq!(stage.ask(&words).code(), "INPUT_UNREADABLE");
    assert_eq!(rows(&stage).len(), 6);
}

#[test]
fn a_request_that_the_proxy_refuses_is_an_event() {
    if lacks("python3") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stage = Stage::new();
    let script = format!(
        "python3 - <<'END'\nimport urllib.request as r, urllib.error\n\
         for place in ['127.0.0.1:{port}'] * 3 + [f'h{{n}}.example:80' for n in range(60)]:\n\
         \x20   q = r.Request(f'http://{{place}}/secret-path', method='PUT')\n\
         \x20   q.set_proxy('127.0.0.1:3128', 'http')\n\
         \x20   try: r.urlopen(q, timeout=9)\n\
         \x20   except urllib.error.HTTPError as error: assert error.code == 403, error\nEND\n\
         echo good > src/a.txt\n"
    );
    let ask = Ask {
        more: &["--net", "granted.example:443"],
        ..Ask::default()
    };
    let outcome = stage.run(&script, &ask);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let run = outcome.text("run_id");
    let ledger = fs::read(stage.evidence(run, "events.jsonl")).unwrap();
    let found = events(&ledger, "policy_violation");
    assert_eq!(found.len(), 1, "one event, however many requests");
    let payload = &found[0]["payload"];
    assert_eq!(payload["program"], "agent");
    let listed = payload["network"].as_array().unwrap();
    let own = json!({ "target": format!("127.0.0.1:{port}"), "method": "PUT",
        "code": "NETWORK_REFUSED", "count": 3 });
    let same = |row: &&Value| {
        let parts = own.as_object().unwrap();
        parts.iter().all(|(name, value)| row[name] == *value)
    };
    assert_eq!(listed.iter().filter(same).count(), 1, "{payload}");
    let counts: u64 = listed
        .iter()
        .map(|row| row["count"].as_u64().unwrap())
        .sum();
    assert_eq!(
        counts + payload["further"].as_u64().unwrap(),
        63,
        "{payload}"
    );
    assert!(listed.len() <= 32 && !payload.to_string().contains("secret-path"));
    assert_eq!(stage.verify(run).exit, 0);
    let logged = stage.ask(&["log", run]);
    let text = String::from_utf8_lossy(&logged.stdout).into_owned();
    assert!(text.contains("63 refused requests"), "{text}");
    let why = stage.ask(&["why", run, "--json"]);
    assert!(
        why.json.to_string().contains(&format!("127.0.0.1:{port}")),
        "{why:?}"
    );
}
