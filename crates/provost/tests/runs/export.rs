//! What other tools read of a run, held against readers that are not ours where there are some.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage, lacks};

const GOOD: &str = "echo good > src/a.txt; echo more >> docs/readme.md";

fn accepted(stage: &Stage, accept: &str) -> String {
    let ask = Ask {
        allow: &["src", "docs"],
        accept,
        ..Ask::default()
    };
    let run = stage.run(GOOD, &ask);
    assert_eq!(run.code(), "OK", "{run:?}");
    run.text("run_id").to_owned()
}

/// What python's own reader says of an XML document.
fn xml(stage: &Stage, file: &str) -> Outcome {
    let script = "import sys, json, xml.etree.ElementTree as t\n\
        r = t.parse(sys.argv[1]).getroot()\n\
        cases = [[c.get('name'), [k.tag for k in c]] for c in r.iter('testcase')]\n\
        print(json.dumps({'root': r.tag, 'at': r.attrib, 'cases': cases,\n\
        'out': [o.text for o in r.iter('system-out')]}))";
    let mut command = stage.command("python3");
    command.args(["-c", script, file]);
    stage.spawn(command).wait()
}

#[test]
fn junit_is_read_by_others_and_names_tests_where_they_are_named() {
    if lacks("python3") {
        return;
    }
    let stage = Stage::new();
    let tap = "printf '1..2\\nok 1 - says hello\\nok 2 - <bye> & \\033[31mred\\n'\n";
    stage.commit(&[("tap.sh", tap)]);
    let file = stage.path("home/junit.xml").display().to_string();
    accepted(&stage, "sh tap.sh");
    let export = ["export", "last", "--as", "junit", "--out", &file];
    assert_eq!(stage.ask(&export).exit, 0);
    let read = xml(&stage, &file);
    assert_eq!(read.exit, 0, "{read:?}");
    assert_eq!(read.json["root"], "testsuites");
    assert_eq!(read.json.pointer("/at/tests"), Some(&json!("2")));
    assert_eq!(read.json.pointer("/cases/0/0"), Some(&json!("says hello")));
    assert_eq!(read.json.pointer("/cases/1/0"), Some(&json!("<bye> & red")));

    let stage = Stage::new();
    let failed = stage.run("echo bad > src/a.txt", &Ask::default());
    assert_eq!(failed.code(), "ACCEPTANCE_FAILED", "{failed:?}");
    let file = stage.path("home/junit.xml").display().to_string();
    let export = ["export", "last", "--as", "junit", "--out", &file];
    assert_eq!(stage.ask(&export).exit, 0);
    let read = xml(&stage, &file);
    assert_eq!(read.json["cases"], json!([["sh check.sh", ["failure"]]]));
    assert_eq!(read.json.pointer("/at/failures"), Some(&json!("1")));
}

#[test]
fn sarif_has_what_its_schema_asks_for() {
    let stage = Stage::new();
    let refused = stage.run(
        "echo x > 'out side.txt'; echo x > src/tox.ini",
        &Ask::default(),
    );
    assert_eq!(refused.code(), "DIFF_REFUSED", "{refused:?}");
    let sarif = stage.ask(&["export", "--as", "sarif"]);
    assert_eq!(sarif.exit, 0, "{sarif:?}");
    let text = |pointer: &str| {
        let value = sarif.json.pointer(pointer);
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    assert_eq!(text("/version"), "2.1.0");
    assert!(text("/$schema").contains("sarif-2.1.0"));
    assert_eq!(text("/runs/0/tool/driver/name"), "provost");
    let rules = sarif.json.pointer("/runs/0/tool/driver/rules").unwrap();
    let results = sarif.json.pointer("/runs/0/results").unwrap();
    let results = results.as_array().unwrap();
    assert_eq!(results.len(), 2, "{results:?}");
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(result.pointer("/message/text").unwrap().is_string());
        assert!(rules[index].pointer("/help/text").unwrap().is_string());
    }
    let uri = "/locations/0/physicalLocation/artifactLocation/uri";
    assert_eq!(results[0].pointer(uri), Some(&json!("out%20side.txt")));
    accepted(&stage, "sh check.sh");
    let sarif = stage.ask(&["export", "--as", "sarif"]);
    assert_eq!(sarif.json.pointer("/runs/0/results"), Some(&json!([])));
}

#[test]
fn an_attestation_is_exported_to_the_byte_and_nothing_from_altered_evidence() {
    let stage = Stage::new();
    let run = accepted(&stage, "sh check.sh");
    let sealed = fs::read(stage.evidence(&run, "attestation.dsse.json")).unwrap();
    let exported = stage.ask(&["export", &run, "--as", "attestation"]);
    assert_eq!(exported.stdout, sealed);
    let report = stage.evidence(&run, "reports/task_result.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, text.replace("SUCCESS", "FAILED")).unwrap();
    let mut formats = vec!["attestation", "sarif", "junit"];
    if cfg!(feature = "formats") {
        formats.push("packet");
    }
    for format in formats {
        let out = stage.path("home/out").display().to_string();
        let refused = stage.ask(&["export", &run, "--as", format, "--out", &out, "--json"]);
        assert_eq!(
            (refused.code(), refused.exit),
            ("EVIDENCE_ALTERED", 5),
            "{format}"
        );
        assert!(!stage.path("home/out").exists(), "{format}");
    }
}

#[cfg(feature = "formats")]
#[test]
fn a_packet_of_an_accepted_run_passes_the_check_of_packets() {
    let stage = Stage::new();
    let run = accepted(&stage, "sh check.sh");
    let root = stage.path("home/packets").display().to_string();
    let made = stage.ask(&[
        "export",
        &run,
        "--as",
        "packet",
        "--out",
        &root,
        "--docs",
        "docs/readme.md",
        "--json",
    ]);
    assert_eq!(made.exit, 0, "{made:?}");
    let check = [
        "check",
        "packet",
        "--phase-id",
        &run,
        "--packet-root",
        &root,
    ];
    let strict = [&check[..], &["--strict", "--json"]].concat();
    let verdict = stage.ask(&strict);
    assert_eq!((verdict.code(), verdict.exit), ("OK", 0), "{verdict:?}");
    let changed = verdict.json.pointer("/details/changed_files");
    assert_eq!(changed, Some(&json!(["docs/readme.md", "src/a.txt"])));
    let again = stage.ask(&["export", &run, "--as", "packet", "--out", &root, "--json"]);
    assert_eq!((again.code(), again.exit), ("USAGE_ERROR", 2), "{again:?}");

    let log = stage
        .path("home/packets")
        .join(&run)
        .join("acceptance_run_log.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replace("\"exit_code\":0", "\"exit_code\":1")).unwrap();
    assert_eq!(stage.ask(&check).exit, 1);

    let refused = stage.run("echo bad > src/a.txt", &Ask::default());
    assert_eq!(refused.code(), "ACCEPTANCE_FAILED", "{refused:?}");
    let id = refused.text("run_id").to_owned();
    let none = stage.ask(&["export", &id, "--as", "packet", "--out", &root, "--json"]);
    assert_eq!((none.code(), none.exit), ("NOT_ACCEPTED", 1), "{none:?}");
}
