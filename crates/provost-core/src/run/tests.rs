mod consent;
mod effect;
mod fix;
mod keep_work;
mod lost;
mod model;
mod program;
mod promises;
mod question;
mod regression;
mod review;
mod tier;
mod written;

use std::collections::BTreeMap;

use serde_json::json;

use super::fact::{
    self, AgentRun, CacheRules, Capture, Cleaned, CommandRun, Ending, Fact, Judgement, Names,
    Opened, Probe, Probed, ResultFile, SandboxTest, Side, Stream, TestRun, WorkspaceChoice,
};
use super::{BadLedger, Gate, Next, State, Step};
use crate::change::{Change, Ignored, Node as Entry};
use crate::contract::{self, RESULT_SCHEMA, RESULT_SCHEMA_TEXT, limits::Asked};
use crate::gate::command;
use crate::lease::Owner;
use crate::object::{Kind, Mode, ObjectFormat, Oid, sha256};
use crate::path::RawPath;
use crate::protect::Extra;
use crate::record::{Head, Record};
use crate::tier::{Processes, Tier};
use crate::{code::Code, verdict::Verdict};
use model::agent;

fn oid(word: &str) -> Oid {
    ObjectFormat::Sha1.oid(Kind::Blob, word.as_bytes()).unwrap()
}

fn owner() -> Owner {
    Owner {
        host: "h".to_owned(),
        boot: "b".to_owned(),
        pid_namespace: "p".to_owned(),
        pid: 1,
        started: 1,
    }
}

pub(crate) fn opened() -> Fact {
    let document = json!({
        "task_id": "task-0001",
        "owner_agent": { "role": "PM", "agent_id": "agent-pm" },
        "assigned_agent": { "role": "WORKER", "agent_id": "agent-worker" },
        "inputs": { "spec": "say hello", "artifacts": [{
            "name": "output_schema",
            "uri": RESULT_SCHEMA,
            "sha256": sha256(RESULT_SCHEMA_TEXT.as_bytes()),
        }] },
        "required_outputs": [],
        "allowed_paths": ["app"],
        "forbidden_actions": [],
        "acceptance_tests": [
            { "name": "one", "cmd": "pytest -q", "must_pass": true },
            { "name": "two", "cmd": "npm test", "must_pass": false },
        ],
        "tool_permissions": {
            "filesystem": "workspace-write", "shell": "never", "network": "deny", "mcp_tools": [],
        },
        "mcp_tool_set": ["none"],
        "timeout_retry": { "timeout_sec": 60, "max_retries": 0, "retry_backoff_sec": 0 },
        "rollback": { "strategy": "worktree_drop", "baseline_ref": "HEAD" },
        "evidence_links": [],
        "log_refs": { "run_id": "run-0001", "paths": {} },
    });
    let contract = contract::from_value(&document).unwrap();
    Fact::Opened(Box::new(Opened {
        contract_sha256: contract::digest(&contract).unwrap(),
        contract_source: None,
        contract,
        typed: false,
        base_commit: oid("base commit"),
        base_tree: oid("base tree"),
        object_format: ObjectFormat::Sha1,
        target: None,
        agent: vec!["agent".to_owned()],
        agent_typed: true,
        adapted: None,
        credentials: Vec::new(),
        review: None,
        protect: Extra::default(),
        commands: Vec::new(),
        workspace: WorkspaceChoice::Auto,
        cache: CacheRules::default(),
        prepare: Vec::new(),
        loopback: false,
        limits: Asked::default(),
        artifacts: std::collections::BTreeMap::new(),
        references: None,
        additions: crate::contract::additions::Additions::default(),
        least_tier: Tier::default(),
        ask: crate::question::AskRules::default(),
        refuses_programs: true,
        checks_thread: true,
        widenings: Vec::new(),
        parent: None,
        work: None,
        continues: None,
        part: None,
        child: None,
        policies: crate::children::policy::FamilyPolicies::default(),
        ticket: None,
        owner: owner(),
        format: crate::bundle::layout::BundleFormat::NEWEST,
        version: "0".to_owned(),
    }))
}

fn ledger(facts: &[Fact]) -> Vec<Record> {
    let names = Names {
        run_id: "run_00000001".to_owned(),
        task_id: "task-0001".to_owned(),
        trace_id: "trace-01".to_owned(),
    };
    let mut head = Head::genesis();
    let event = |fact: &Fact| fact.event(&names, 1, "2026-01-01T00:00:00Z".to_owned());
    facts.iter().map(|fact| head.append(event(fact))).collect()
}

fn state(facts: &[Fact]) -> State {
    State::fold(&ledger(&[vec![opened()], facts.to_vec()].concat())).unwrap()
}

fn started(step: Step) -> Fact {
    Fact::Started { step }
}

fn stream() -> Stream {
    Stream {
        file: "x.log".to_owned(),
        bytes: 0,
        kept: 0,
        sha256: sha256(b""),
        redacted: 0,
        cut: false,
    }
}

fn captured(paths: &[&str]) -> Vec<Fact> {
    let change = |path: &&str| Change {
        path: RawPath::new(*path),
        before: None,
        after: Some(Entry {
            mode: Mode::File,
            oid: oid(path),
        }),
        binary: false,
        origin: None,
        link: None,
    };
    let capture = Capture {
        tree: oid("tree"),
        kept_by: "refs/provost/runs/x/1".to_owned(),
        changes: paths.iter().map(change).collect(),
        findings: Vec::new(),
        ignored: Ignored::default(),
        withheld: fact::Withheld::default(),
        crossed: None,
    };
    vec![started(Step::Capture), Fact::Captured(capture)]
}

fn tests(tree: &str, endings: &[(&str, Ending)], altered: &[&str]) -> Vec<Fact> {
    let lines = ["pytest -q", "npm test"];
    let command = |(name, ending): &(&str, Ending)| CommandRun {
        name: (*name).to_owned(),
        argv: command::split(lines[usize::from(*name != "one")]).unwrap(),
        ending: *ending,
        began: None,
        wall_ms: 1,
        stdout: stream(),
        stderr: stream(),
        tally: None,
    };
    let run = TestRun {
        side: Side::Candidate,
        tree: oid(tree),
        cached: false,
        profile: sha256(b"profile"),
        layers: Vec::new(),
        cache: None,
        commands: endings.iter().map(command).collect(),
        altered: altered.iter().map(|path| RawPath::new(*path)).collect(),
    };
    vec![started(Step::Acceptance), Fact::TestsRan(run)]
}

#[test]
fn a_gate_without_its_facts_never_allows() {
    let state = state(&[]);
    assert!(
        state.judge(Gate::Policy).allow,
        "the contract is its own fact"
    );
    let gates = [
        Gate::Sandbox,
        Gate::Agent,
        Gate::Output,
        Gate::Diff,
        Gate::Review,
        Gate::Acceptance,
        Gate::Tree,
    ];
    for gate in gates {
        assert!(!state.judge(gate).allow, "{gate:?}");
    }
}

#[test]
fn a_contract_that_breaks_a_rule_passes_no_gate() {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!()
    };
    opened.contract.allowed_paths = vec!["**".to_owned()];
    let state = State::fold(&ledger(&[Fact::Opened(opened)])).unwrap();
    assert_eq!(state.judge(Gate::Policy).code, Code::ContractInvalid);
    assert!(!state.judge(Gate::Diff).allow);
}

fn attempt(held: bool) -> Probe {
    Probe {
        name: "write".to_owned(),
        walls: vec!["root".to_owned()],
        tried: "write outside".to_owned(),
        held,
        errno: None,
    }
}

#[test]
fn a_sandbox_that_was_half_tested_does_not_hold() {
    let probed = |held: &[bool]| Probed {
        shape: sha256(b"s"),
        cached: false,
        attempts: held.iter().map(|held| attempt(*held)).collect(),
    };
    let test = |held, agent: &[bool], acceptance: &[bool]| SandboxTest {
        tier: "namespaces".to_owned(),
        processes: Processes::Own,
        landlock: None,
        sealed_gaps: Vec::new(),
        holes: Vec::new(),
        held,
        kernel: "k".to_owned(),
        boot: "b".to_owned(),
        launcher: sha256(b"l"),
        profile: sha256(b"p"),
        limits: BTreeMap::new(),
        agent: probed(agent),
        acceptance: probed(acceptance),
        program: None,
    };
    let seen = |mut test: SandboxTest, processes| {
        for attempt in &mut test.agent.attempts {
            "processes_hidden".clone_into(&mut attempt.name);
        }
        SandboxTest { processes, ..test }
    };
    let cases = [
        (test(true, &[true], &[true]), true),
        (test(true, &[], &[]), false),
        (test(true, &[true], &[]), false),
        (test(true, &[], &[true]), false),
        (test(false, &[true], &[true]), false),
        (test(true, &[true, false], &[true]), false),
        (test(true, &[true], &[true, false]), false),
        // A weaker tier than the contract requires, although its self-test passed.
        (
            SandboxTest {
                tier: "landlock".to_owned(),
                ..test(true, &[true], &[true])
            },
            false,
        ),
        // A probe that got through is excused only by a matching hole of the sandbox.
        (seen(test(true, &[false], &[true]), Processes::Outer), true),
        (seen(test(true, &[false], &[true]), Processes::Own), false),
    ];
    for (test, want) in cases {
        let facts = [started(Step::Selftest), Fact::Tested(test.clone())];
        assert_eq!(state(&facts).judge(Gate::Sandbox).allow, want, "{test:?}");
    }
}

#[test]
fn only_an_agent_that_ended_by_itself_passes() {
    let cases = [
        (Ending::Exited(0), Code::Ok),
        (Ending::Exited(1), Code::AgentFailed),
        (Ending::Signalled(9), Code::AgentFailed),
        (Ending::NotStarted, Code::AgentFailed),
        (Ending::TimedOut, Code::AgentTimeout),
        (Ending::OutputLimit, Code::AgentOutputLimit),
        (Ending::MemoryLimit, Code::MemoryLimit),
        (Ending::ProcessLimit, Code::ProcessLimit),
        (Ending::DiskLimit, Code::DiskLimit),
        (Ending::InodeLimit, Code::DiskLimit),
        (Ending::NoProgress, Code::NoProgress),
        (Ending::Cancelled, Code::Cancelled),
        (Ending::LeaseLost, Code::LeaseLost),
    ];
    for (ending, want) in cases {
        let state = state(&agent(ending, ResultFile::Absent));
        assert_eq!(state.judge(Gate::Agent).code, want, "{ending:?}");
    }
}

#[test]
fn a_result_is_valid_or_refused() {
    let text = |value: serde_json::Value| ResultFile::Text(value.to_string());
    let good = json!({ "task_id": "task-0001", "status": "SUCCESS", "summary": "done",
        "evidence_refs": {}, "failure": null });
    let with = |key: &str, value: serde_json::Value| {
        let mut changed = good.clone();
        changed[key] = value;
        text(changed)
    };
    let cases = [
        ("absent", ResultFile::Absent, true),
        ("good", text(good.clone()), true),
        ("fifo", ResultFile::Unusable("is a fifo".to_owned()), false),
        ("empty", ResultFile::Text(String::new()), false),
        ("prose", ResultFile::Text("all done!".to_owned()), false),
        ("other task", with("task_id", json!("task-0002")), false),
        ("unknown status", with("status", json!("GREAT")), false),
        ("unknown field", with("extra", json!(1)), false),
        (
            "twice",
            ResultFile::Text(r#"{"task_id":"a","task_id":"b"}"#.to_owned()),
            false,
        ),
    ];
    for (name, result, want) in cases {
        let state = state(&agent(Ending::Exited(0), result));
        assert_eq!(state.judge(Gate::Output).allow, want, "{name}");
    }
}

#[test]
fn a_change_is_judged_by_its_paths() {
    let code = |paths: &[&str]| state(&captured(paths)).judge(Gate::Diff).code;
    assert_eq!(code(&["app/a", "app/b"]), Code::Ok);
    assert_eq!(code(&["app/a", "other/b"]), Code::DiffRefused);
    assert_eq!(code(&[]), Code::EmptyDiff);
}

#[test]
fn exactly_the_commands_of_the_contract_decide() {
    use Ending::{Exited, TimedOut};
    type Case<'a> = (&'a str, &'a [(&'a str, Ending)], Code);
    let cases: [Case<'_>; 7] = [
        (
            "all pass",
            &[("one", Exited(0)), ("two", Exited(0))],
            Code::Ok,
        ),
        (
            "one that may fail",
            &[("one", Exited(0)), ("two", Exited(1))],
            Code::Ok,
        ),
        (
            "one that must pass",
            &[("one", Exited(1)), ("two", Exited(0))],
            Code::AcceptanceFailed,
        ),
        (
            "timeout",
            &[("one", TimedOut), ("two", Exited(0))],
            Code::AcceptanceTimeout,
        ),
        ("none ran", &[], Code::AcceptanceFailed),
        (
            "one is missing",
            &[("one", Exited(0))],
            Code::AcceptanceFailed,
        ),
        (
            "another order",
            &[("two", Exited(0)), ("one", Exited(0))],
            Code::AcceptanceFailed,
        ),
    ];
    for (name, endings, want) in cases {
        let mut state = state(&tests("tree", endings, &[]));
        if want == Code::Ok {
            let alone = state.judge(Gate::Acceptance).code;
            assert_eq!(alone, Code::AcceptanceFailed, "{name}: not compared");
        }
        let base = state.tests[&Side::Candidate].clone();
        state.tests.insert(Side::Base, base);
        assert_eq!(state.judge(Gate::Acceptance).code, want, "{name}");
    }
}

#[test]
fn the_tree_that_was_judged_is_the_tree_that_was_captured() {
    let both = |tree: &str, altered: &[&str]| {
        let mut facts = captured(&["app/a"]);
        facts.extend(tests(tree, &[], altered));
        state(&facts).judge(Gate::Tree).allow
    };
    assert!(both("tree", &[]));
    assert!(!both("another", &[]));
    assert!(!both("tree", &["app/a"]));
}

#[test]
fn facts_in_an_order_that_cannot_be_are_refused() {
    let passed = || {
        let verdict = Verdict::allow("yes");
        Fact::Passed(Judgement {
            gate: Gate::Policy,
            verdict,
        })
    };
    let finished = || Fact::Finished {
        verdict: Verdict::allow("yes"),
    };
    let lying = Fact::Passed(Judgement {
        gate: Gate::Diff,
        verdict: Verdict::deny(Code::DiffRefused, "no"),
    });
    let cases: [(&str, Vec<Fact>); 7] = [
        (
            "an outcome without its intent",
            vec![Fact::Leased { fence: 1 }],
        ),
        (
            "another outcome than begun",
            vec![started(Step::Lease), Fact::Lost {}],
        ),
        ("a gate twice", vec![passed(), passed()]),
        ("a pass that is a denial", vec![lying]),
        (
            "a step inside another",
            vec![started(Step::Lease), started(Step::Agent)],
        ),
        (
            "an end inside a step",
            vec![started(Step::Lease), finished()],
        ),
        (
            "something after the end",
            vec![finished(), started(Step::Lease)],
        ),
    ];
    for (name, facts) in cases {
        let all: Vec<Fact> = std::iter::once(opened()).chain(facts).collect();
        let result = State::fold(&ledger(&all));
        assert!(matches!(result, Err(BadLedger::Order { .. })), "{name}");
    }
    assert!(matches!(State::fold(&[]), Err(BadLedger::Empty)));
    assert!(
        State::fold(&ledger(&[passed()])).is_err(),
        "the first record opens the run"
    );
}

#[test]
fn a_fact_comes_back_from_its_event() {
    let facts = [
        opened(),
        Fact::Lost {},
        Fact::Cleaned(Cleaned::default()),
        captured(&["app/a"]).remove(1),
        tests("tree", &[("one", Ending::Exited(0))], &["app/a"]).remove(1),
    ];
    for record in ledger(&facts) {
        let fact = Fact::of(&record.event, record.seq).unwrap();
        assert!(facts.contains(&fact), "{}", record.event.event_type);
    }
}

#[test]
fn an_agent_without_an_outcome_is_lost_and_everything_else_is_repeated() {
    assert_eq!(state(&[started(Step::Agent)]).next(), Next::Lose);
    let resumed = Fact::Resumed { owner: owner() };
    let again = state(&[started(Step::Agent), resumed.clone()]);
    assert_eq!(again.next(), Next::Lose);
    assert_eq!(
        state(&[started(Step::Capture)]).next(),
        Next::Do(Step::Capture)
    );
    let begun = state(&[started(Step::Lease), resumed]).next();
    assert_eq!(begun, Next::Judge(Gate::Policy), "it begins anew");
}
