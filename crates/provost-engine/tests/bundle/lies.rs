//! Seals bundles that contradict themselves: a valid signature alone does not make them pass.

use provost_core::code::Code;
use provost_core::object::ObjectFormat;
use provost_core::pack;
use provost_engine::bundle::verify::FINAL_EVENT;
use serde_json::{Value, json};

use crate::attacks::check;
use crate::sample::{AFTER, BEFORE, Draft, Tree, key, pack, put};

type Lie = fn(&mut Draft);

fn set(draft: &mut Draft, report: &'static str, pointer: &str, value: Value) {
    put(draft.reports.get_mut(report).unwrap(), pointer, value);
}

const TEST: &str = "reports/test_report.json";
const REVIEW: &str = "reports/review_report.json";
const EVIDENCE: &str = "reports/evidence_report.json";

/// Which document, where, the value to put there; where it is reported, and the message.
const LIES: &str = r#"
test | /run_id | "run_2" | - | the run `run_2`
test | /task_id | "t" | - | the task `t`
manifest | /run_id | "run_00000002" | - | the run
manifest | /tasks/0/task_id | "t" | - | does not list
manifest | /repo/baseline_ref | "main" | - | begins at `main`
contract | /rollback/baseline_ref | "OID" | - | begins at
result | /git/baseline_ref | "x" | - | begins at `x`
work | /baseline_ref | "x" | - | begins at `x`
test | /x_provost/tree | "OID" | - | not the sealed one
test | /x_provost | {} | - | does not say which tree
review | /verdict | "PASS" | - | does not say which tree
manifest | /x_provost/tree | "OID" | x_provost | other trees
test | /commands/0/cmd_argv | ["true"] | commands[0] | is not `unit`
test | /commands/0/cmd_argv/2 | "a" | commands[0] | is not `unit`
test | /commands/0/must_pass | false | commands[0] | is not `unit`
test | /commands | [] | commands | lists 0 commands
test | /commands/0/exit_code | 1 | status | must pass failed
test | /status | "FAIL" | - | does not pass
review | /verdict | "FAIL" | - | fails, and the run was accepted
review | /produced_diff | true | - | `produced_diff`: is true
result | /gates/diff_gate/passed | false | - | a gate did not pass
manifest | /status | "FAILURE" | - | its status contradicts
manifest | /integrity | {"manifest_sha256":"SHA"} | integrity.manifest_sha256 | own digest
manifest | /integrity | {"contract_sha256":"SHA"} | integrity.contract_sha256 | differs
manifest | /integrity | {"events_hashchain_path":"x"} | integrity.events_hashchain_path | list
manifest | /integrity | {"contract_signature_path":"x"} | integrity.contract_signature_path | list
manifest | /tasks/0/contract/path | "../x" | tasks[].contract | which is missing
manifest | /tasks/0/contract/size_bytes | 1 | tasks[].contract | another size
test | /commands/0/stdout/path | "patch.diff" | commands[].stdout | another digest
evidence | /missing | ["patch.diff"] | - | it is there
contract | /allowed_paths | ["src", "**"] | allowed_paths | wildcard
contract | /acceptance_tests | [] | - | no acceptance commands
contract | /acceptance_tests | 1 | - | does not parse: `acceptance_tests`
"#;

#[test]
fn a_signed_contradiction_is_found() {
    for row in LIES.trim().lines() {
        let cells: Vec<_> = row.split(" | ").map(str::trim).collect();
        let [document, pointer, value, place, problem] = cells[..] else {
            panic!("{row}");
        };
        let value = value
            .replace("OID", &"a".repeat(40))
            .replace("SHA", &"ab".repeat(32));
        let value: Value = serde_json::from_str(&value).unwrap();
        let mut draft = Draft::new("run_00000001");
        let file = match document {
            "manifest" => "manifest.json",
            "contract" => "contract.json",
            "test" => TEST,
            "review" => REVIEW,
            "result" => "reports/task_result.json",
            "work" => "reports/work_report.json",
            _ => EVIDENCE,
        };
        match document {
            "manifest" => draft.patches.push((pointer.to_owned(), value)),
            "contract" => put(&mut draft.contract, pointer, value),
            _ => set(&mut draft, file, pointer, value),
        }
        let place = match place {
            "-" => file.to_owned(),
            place => format!("{file} {place}"),
        };
        is_found(draft, &place, problem);
    }
}

#[test]
fn a_review_is_what_the_ledger_holds() {
    const RESULT: &str = "reports/task_result.json";
    let whole = Draft::new("run_00000001").reviewed();
    assert_eq!(check(&whole.seal(&key(1))).proof.findings, []);
    let other = json!("a".repeat(40));
    let cases = [
        (REVIEW, "/verdict", json!("BLOCKED"), "verdict is not"),
        (REVIEW, "/verdict", json!("FAIL"), "verdict is not"),
        (REVIEW, "/reviewer/agent_id", json!("x"), "another reviewer"),
        (REVIEW, "/summary", json!("great"), "summary is not"),
        (REVIEW, "/x_provost/tree", other, "another tree"),
        (REVIEW, "/x_provost", json!({}), "another tree"),
        (
            RESULT,
            "/gates/review_gate/passed",
            json!(false),
            "review gate is not",
        ),
    ];
    for (file, pointer, value, problem) in cases {
        let mut draft = Draft::new("run_00000001").reviewed();
        set(&mut draft, file, pointer, value);
        is_found(draft, file, problem);
    }
    // The report claims a review that did not happen.
    let mut draft = Draft::new("run_00000001");
    set(&mut draft, REVIEW, "/verdict", json!("PASS"));
    is_found(draft, REVIEW, "verdict is not");
    let mut draft = Draft::new("run_00000001");
    set(&mut draft, RESULT, "/gates/review_gate/passed", json!(true));
    is_found(draft, RESULT, "review gate is not");
}

fn is_found(draft: Draft, place: &str, problem: &str) {
    let report = check(&draft.seal(&key(1)));
    let code = report.verdict().code;
    assert_eq!(
        code,
        Code::EvidenceAltered,
        "{place}: {problem}: {report:?}"
    );
    let fits = |path: &str, words: &str| path == place && words.contains(problem);
    let findings = &report.proof.findings;
    let hit = findings.iter().any(|one| fits(&one.path, &one.problem));
    assert!(hit, "{place}: {problem}: {findings:?}");
}

#[test]
fn a_statement_that_contradicts_itself_or_the_files_is_found() {
    const SEAL: &str = "attestation.dsse.json";
    const STATUS: &str = "reports/test_report.json status";
    const BASELINE: &str = "git/baseline_commit.txt";
    let cases: [(Lie, &str, &str); 8] = [
        (
            sign_contract,
            "manifest.json integrity.contract_signature_sha256",
            "differs",
        ),
        (|d| d.predicate.sandbox = None, SEAL, "in which sandbox"),
        (
            |d| d.predicate.acceptance.passed = 2,
            STATUS,
            "what was sealed",
        ),
        (
            |d| d.predicate.verdict.code = Code::DiffRefused,
            SEAL,
            "contradict",
        ),
        (
            |d| d.predicate.sandbox.as_mut().unwrap().selftest_held = false,
            SEAL,
            "did not hold",
        ),
        (
            |d| d.predicate.object_format = ObjectFormat::Sha256,
            SEAL,
            "another format",
        ),
        (
            |d| write(d, BASELINE, "HEAD\n"),
            BASELINE,
            "begins at `HEAD`",
        ),
        (
            |d| write(d, "git/patch.diff", ""),
            "git/patch.diff",
            "differs from `patch.diff`",
        ),
    ];
    for (lie, place, problem) in cases {
        let mut draft = Draft::new("run_00000001");
        lie(&mut draft);
        is_found(draft, place, problem);
    }
}

fn sign_contract(draft: &mut Draft) {
    let value = json!({ "contract_signature_sha256": "ab".repeat(32) });
    draft.patches.push(("/integrity".to_owned(), value));
}

fn write(draft: &mut Draft, name: &'static str, text: &str) {
    draft.texts.insert(name, text.as_bytes().to_vec());
}

#[test]
fn a_missing_file_that_is_not_listed_is_reported() {
    let mut draft = Draft::new("run_00000001");
    draft.texts.remove("sandbox/selftest.json");
    let report = check(&draft.seal(&key(1)));
    assert_eq!(report.verdict().code, Code::EvidenceIncomplete);
    assert_eq!(report.proof.findings[0].path, "sandbox/selftest.json");
    let mut draft = Draft::new("run_00000001");
    draft.texts.remove("sandbox/selftest.json");
    set(
        &mut draft,
        EVIDENCE,
        "/missing",
        json!(["sandbox/selftest.json"]),
    );
    assert!(check(&draft.seal(&key(1))).verdict().allow);
}

fn changes(after: &Tree, changed: &str) -> Draft {
    Draft::of("run_00000001", BEFORE, after, changed)
}

fn says(name: &str, draft: Draft, problem: &str) {
    let report = check(&draft.seal(&key(1)));
    assert!(!report.verdict().allow, "{name}");
    let findings = &report.proof.findings;
    let hit = findings.iter().any(|one| one.problem.contains(problem));
    assert!(hit, "{name}: {findings:?}");
}

#[test]
fn the_trees_decide_what_changed() {
    let few = changes(AFTER, "src/lib.rs\n");
    says("too few", few, "does not list `src/sub/more.rs`");
    let many = changes(AFTER, "README.md\nsrc/lib.rs\nsrc/sub/more.rs\n");
    says("too many", many, "lists `README.md`");
    let twice = changes(AFTER, "src/lib.rs\nsrc/lib.rs\nsrc/sub/more.rs\n");
    says("twice", twice, "is there twice");
    let spelling = changes(AFTER, "src/\\x6cib.rs\nsrc/sub/more.rs\n");
    says("another spelling", spelling, "is not spelled");
    let readme: &Tree = &[("README.md", b"hi\n"), ("src/lib.rs", b"old\n")];
    let beyond = changes(readme, "README.md\n");
    says(
        "beyond",
        beyond,
        "a change of `README.md`, which is out of scope",
    );
    says("nothing", changes(BEFORE, ""), "changed nothing");

    let flat: &Tree = &[("README.md", b"hello\n"), ("src", b"x")];
    let flattened = changes(flat, "src\nsrc/lib.rs\n").seal(&key(1));
    assert_eq!(check(&flattened).proof.findings, []);
}

#[test]
fn the_pack_has_to_prove_the_trees() {
    let with = |bytes: &[u8]| {
        let mut draft = Draft::new("run_00000001");
        draft.texts.insert("git/objects.pack", bytes.to_vec());
        draft
    };
    says("no pack", with(b"PACK"), "not a git pack");
    let foreign = pack(&[("a", b"a")], &[("a", b"b")]).3;
    says(
        "another run",
        with(&foreign),
        "does not hold the base commit",
    );

    let objects = pack::read(&pack(BEFORE, AFTER).3, ObjectFormat::Sha1).unwrap();
    let mut writer = pack::Writer::new(ObjectFormat::Sha1);
    for (kind, bytes) in objects.values().filter(|(_, bytes)| bytes != b"more\n") {
        writer.add(*kind, bytes).unwrap();
    }
    let lacking = with(&writer.finish());
    says(
        "a content is missing",
        lacking,
        "the new content of `src/sub/more.rs`",
    );

    let mut draft = Draft::new("run_00000001");
    draft.predicate.base_tree = draft.predicate.candidate_tree.clone().unwrap();
    says("another base", draft, "a base commit with another tree");
    let mut draft = Draft::new("run_00000001");
    draft.predicate.candidate_tree = "a".repeat(40).as_str().try_into().ok();
    says("no such tree", draft, "does not prove the trees");
}

#[test]
fn a_refused_run_may_be_out_of_scope_and_still_be_evidence() {
    let after: &Tree = &[("README.md", b"hi\n"), ("src/lib.rs", b"old\n")];
    let mut draft = Draft::of("run_00000001", BEFORE, after, "README.md\n");
    draft.predicate.verdict.allow = false;
    draft.predicate.verdict.code = Code::DiffRefused;
    draft.predicate.acceptance.status = provost_core::bundle::report::TestStatus::Skipped;
    draft.predicate.acceptance.passed = 0;
    set(&mut draft, TEST, "/status", json!("SKIPPED"));
    set(&mut draft, TEST, "/commands", json!([]));
    let report = check(&draft.seal(&key(1)));
    assert_eq!(report.proof.findings, []);
    assert!(report.verdict().allow);
    assert!(!report.sealed_verdict.unwrap().allow);
}

#[test]
fn a_ledger_that_continues_or_strays_is_found() {
    let mut draft = Draft::new("run_00000001");
    draft.events = Some(vec!["RUN_STARTED", FINAL_EVENT, FINAL_EVENT]);
    is_found(draft, "events.jsonl record 1", "records follow it");
    let mut draft = Draft::new("run_00000001");
    draft.events = Some(vec!["RUN_STARTED", FINAL_EVENT, "STRAY"]);
    is_found(draft, "events.jsonl record 1", "records follow it");
    let mut draft = Draft::new("run_00000001");
    draft.foreign_run_at = Some(1);
    is_found(draft, "events.jsonl record 1", "belongs to another run");
    let mut draft = Draft::new("run_00000001");
    draft.foreign_task_at = Some(1);
    is_found(draft, "events.jsonl record 1", "belongs to another task");
    let mut draft = Draft::new("run_00000001");
    draft.torn_line = "{";
    is_found(draft, "events.jsonl", "continues after its final record");
}
