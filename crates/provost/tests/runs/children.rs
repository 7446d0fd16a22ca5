//! Children: agents that an agent starts through the broker of its sandbox.

use serde_json::{Value, json};

use crate::stage::{Outcome, Stage};

/// The first lines of every agent here: what a child does, by its task.
const CHILDREN: &str = r#"
child() { /run/provost/self child "$@"; }
id() { child start --json "$@" | sed -n 's/.*"child": *"\([^"]*\)".*/\1/p' | head -1; }
if grep -q CHILD-WRITER "$PROVOST_CONTRACT"; then
  grep -q begun src/a.txt && echo good > src/a.txt
  child start --key deeper --write src/a.txt 'CHILD-DEEPER'; echo "deeper $?"
  exit 0
fi
if grep -q CHILD-READER "$PROVOST_CONTRACT"; then
  (echo bad > src/a.txt) 2>&1; echo "wrote $?"; cat src/a.txt
  exit 0
fi
if grep -q CHILD-STRAY "$PROVOST_CONTRACT"; then echo x > stray.txt; exit 0; fi
if grep -q CHILD-SLEEPER "$PROVOST_CONTRACT"; then sleep 300; exit 0; fi
if grep -q CHILD-PAIR "$PROVOST_CONTRACT"; then wc -l < src/one; wc -l < src/two; exit 0; fi
"#;

fn run(stage: &Stage, script: &str, children: &Value) -> Outcome {
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    ));
    let mut contract: Value = serde_json::from_str(text).unwrap();
    contract["allowed_paths"] = json!(["src"]);
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh sound.sh", "must_pass": true }]);
    contract["timeout_retry"]["timeout_sec"] = json!(50);
    if !children.is_null() {
        contract["x_provost"] = json!({ "children": children });
    }
    let policy = "[commands]\nallow = [\"sh sound.sh\"]\n[approve]\npaths = [\"src\"]\n\
                  idle_commands = true\n";
    stage.commit(&[
        ("provost.toml", policy),
        ("sound.sh", "grep -q good src/a.txt\n"),
    ]);
    stage.write("contract.json", &contract.to_string());
    let file = stage.path("contract.json").display().to_string();
    let agent = stage.agent(&format!("{CHILDREN}\n{script}"));
    stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"])
}

fn events(stage: &Stage, run: &str, kind: &str) -> Vec<Value> {
    let ledger = std::fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let events = ledger
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = events.filter(|event| event["event_type"] == kind);
    found.map(|event| event["payload"].clone()).collect()
}

fn codes(refused: &[Value]) -> Vec<&str> {
    let verdicts = refused.iter().map(|row| &row["verdict"]);
    verdicts.map(|it| it["code"].as_str().unwrap()).collect()
}

#[test]
fn a_writer_and_a_reader_work_under_their_own_contracts_and_the_patch_is_accepted() {
    let stage = Stage::new();
    let script = r#"
echo begun > src/a.txt
W=$(id --key writer --write src/a.txt CHILD-WRITER)
R=$(id --key reader --read-only CHILD-READER)
A=$(id --key writer --write src/a.txt CHILD-WRITER)
[ "$W" = "$A" ] && echo same
child start --key writer --write src CHILD-OTHER; echo "key $?"
child start --key third --write src CHILD-WRITER; echo "third $?"
child wait "$R"; cat /run/provost/children/$R/said.txt
child wait "$W"; cat /run/provost/children/$W/said.txt
git apply /run/provost/children/$W/patch.diff && echo applied
child list
"#;
    let outcome = run(&stage, script, &json!({ "count": 2 }));
    let run_id = outcome.text("run_id").to_owned();
    let printed = stage.printed_in(&run_id);
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("OK", 0),
        "{printed} {outcome:?}"
    );
    for words in [
        "same",
        "key 1",
        "third 1",
        "Read-only file system",
        "begun",
        "applied",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert!(!printed.contains("wrote 0"), "{printed}");
    // The child has no level left, and its own ledger says so.
    assert!(printed.contains("deeper 1"), "{printed}");
    let starts = events(&stage, &run_id, "CHILD_STARTED");
    assert_eq!(starts.len(), 2, "{starts:?}");
    let refused = events(&stage, &run_id, "CHILD_REFUSED");
    assert_eq!(codes(&refused), ["CHILD_KEY_REUSED", "CHILDREN_EXHAUSTED"]);
    let writer = starts[0]["run_id"].as_str().unwrap();
    let deeper = events(&stage, writer, "CHILD_REFUSED");
    assert_eq!(codes(&deeper), ["DEPTH_EXHAUSTED"]);
    let ends = events(&stage, &run_id, "CHILD_ENDED");
    assert!(
        ends.iter().all(|end| end["verdict"]["allow"] == true),
        "{ends:?}"
    );
    let file = std::fs::read(stage.evidence(&run_id, &format!("children/{writer}.json"))).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    assert_eq!(file["package_fingerprint"], starts[0]["fingerprint"]);
    assert_eq!(file["spent"]["processes"], 0);
    for run in [run_id.as_str(), writer] {
        let verified = stage.verify(run);
        assert_eq!(verified.exit, 0, "{verified:?}");
    }
    let shown = stage.ask(&["show", &run_id]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("`writer` writes: OK, "), "{shown}");
    assert!(
        shown.contains("refused: CHILDREN_EXHAUSTED (1 ×)"),
        "{shown}"
    );
}

#[test]
fn a_child_that_leaves_its_scope_hands_back_nothing_and_the_run_continues() {
    let stage = Stage::new();
    let script = r#"
S=$(id --key stray --write src CHILD-STRAY)
child wait "$S"; echo "stray $?"
child start --key out --write .. CHILD-WRITER; echo "alias $?"
child start --key wide --write tests CHILD-WRITER; echo "wide $?"
child start --key long --write src --seconds 9999 CHILD-WRITER; echo "long $?"
child start --key net --write src --net a.example:443 CHILD-WRITER; echo "net $?"
child wait run-of-another; echo "unknown $?"
ls /run/provost/children/$S
echo good > src/a.txt
"#;
    let outcome = run(&stage, script, &json!({ "count": 4 }));
    let run_id = outcome.text("run_id").to_owned();
    let printed = stage.printed_in(&run_id);
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("OK", 0),
        "{printed} {outcome:?}"
    );
    for words in [
        "stray 1",
        "alias 2",
        "wide 1",
        "long 1",
        "net 1",
        "unknown 1",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert!(!printed.contains("patch.diff"), "{printed}");
    let ends = events(&stage, &run_id, "CHILD_ENDED");
    assert_eq!(codes(&ends), ["DIFF_REFUSED"], "{printed}");
    let refused = events(&stage, &run_id, "CHILD_REFUSED");
    let want = [
        "CHILD_REQUEST_INVALID",
        "PACKAGE_EXCEEDS_GRANT",
        "CHILD_BUDGET_EXHAUSTED",
        "PACKAGE_EXCEEDS_GRANT",
        "CHILD_UNKNOWN",
    ];
    assert_eq!(codes(&refused), want);
}

#[test]
fn a_child_ends_with_its_parent_and_on_request() {
    let stage = Stage::new();
    let script = r#"
A=$(id --key a --write src CHILD-SLEEPER)
B=$(id --key b --write src CHILD-SLEEPER)
sleep 1
child cancel "$A" > /dev/null; child wait "$A"
echo good > src/a.txt
"#;
    let outcome = run(&stage, script, &json!({ "count": 2 }));
    let run_id = outcome.text("run_id").to_owned();
    let printed = stage.printed_in(&run_id);
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("OK", 0),
        "{printed} {outcome:?}"
    );
    let ends = events(&stage, &run_id, "CHILD_ENDED");
    assert_eq!(codes(&ends), ["CANCELLED", "CANCELLED"], "{printed}");
    for end in &ends {
        let verified = stage.verify(end["run_id"].as_str().unwrap());
        assert_eq!(verified.exit, 0, "{verified:?}");
    }
}

#[test]
fn a_parent_that_writes_is_stopped_while_its_work_is_captured() {
    let stage = Stage::new();
    // `two` never lags `one` by more than one while the writer runs.
    let script = r#"
echo x > src/one; echo x > src/two; echo good > src/a.txt
(while :; do echo x >> src/one; echo x >> src/two; done) &
P=$!
sleep 1
C=$(id --key pair --read-only CHILD-PAIR)
child wait "$C" > /dev/null; kill $P
set -- $(cat /run/provost/children/$C/said.txt); echo "lag $(($1 - $2)) of $1"
rm -f src/one src/two
"#;
    let outcome = run(&stage, script, &json!({ "count": 1 }));
    let printed = stage.printed_in(outcome.text("run_id"));
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("OK", 0),
        "{printed} {outcome:?}"
    );
    assert!(
        printed.contains("lag 0 of") || printed.contains("lag 1 of"),
        "{printed}"
    );
    assert!(!printed.contains("of 0"), "{printed}");
}

#[test]
fn a_flood_and_a_message_of_a_megabyte_are_refused_and_the_run_continues() {
    let stage = Stage::new();
    let script = r#"
python3 - <<'END'
import os, socket, time
def send(text, read=True):
    s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(os.environ["PROVOST_BROKER"])
    try:
        s.sendall(text)
        return s.recv(4096).decode() if read else ""
    except OSError as error:
        return str(error)
print("huge", send(b'{"op":"list","x":"' + b"a" * (1 << 20) + b'"}\n')[:60])
print("junk", send(b"not json\n")[:60])
print("forged", send(b'{"op":"start","key":"k","task":"t","write":["src"],"run_id":"other"}\n')[:60])
since = time.time()
for _ in range(30):
    send(b'{"op":"list"}\n')
print("flood", "limited" if time.time() - since > 1.0 else "free")
END
echo good > src/a.txt
"#;
    let outcome = run(&stage, script, &json!({ "count": 1 }));
    let run_id = outcome.text("run_id").to_owned();
    let printed = stage.printed_in(&run_id);
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("OK", 0),
        "{printed} {outcome:?}"
    );
    assert!(printed.contains("flood limited"), "{printed}");
    let refused = events(&stage, &run_id, "CHILD_REFUSED");
    assert_eq!(codes(&refused), ["CHILD_REQUEST_INVALID"; 3], "{printed}");
}

#[test]
fn without_a_grant_there_is_no_broker() {
    let stage = Stage::new();
    let script = "child list; echo \"none $?\"; ls /run/provost/broker; echo good > src/a.txt";
    let outcome = run(&stage, script, &Value::Null);
    let printed = stage.printed_in(outcome.text("run_id"));
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("OK", 0),
        "{printed} {outcome:?}"
    );
    assert!(printed.contains("none 1"), "{printed}");
    assert!(!printed.contains("children.sock"), "{printed}");
}
