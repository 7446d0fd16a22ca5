//! Simulates the run of a sample: the state gives the next step, and a canned fact answers.

use std::collections::BTreeMap;

use provost_core::change::Ignored;
use provost_core::contract::limits::Asked;
use provost_core::contract::{self, RESULT_SCHEMA, RESULT_SCHEMA_TEXT};
use provost_core::lease::Owner;
use provost_core::object::{ObjectFormat, Oid, sha256};
use provost_core::pack;
use provost_core::protect::Extra;
use provost_core::record::{Event, Head};
use provost_core::run::fact::{
    self, AgentRun, CacheRules, Capture, Cleaned, CommandRun, Ending, Fact, Judgement, Names,
    Opened, Placed, Probe, Probed, Published, ResultFile, ReviewRun, Reviewer, SandboxTest, Side,
    Stream, TestRun, WorkspaceChoice, WorkspaceKind,
};
use provost_core::run::{Next, State, Step};
use provost_core::tier::{Processes, Tier};
use provost_core::tree;
use serde_json::{Value, json};

use crate::sample::{Draft, WHEN};

/// A contract about `src`, with one command.
pub(crate) fn contract(base: &Oid) -> Value {
    json!({
        "task_id": "task_001",
        "owner_agent": { "role": "PM", "agent_id": "agent-pm" },
        "assigned_agent": { "role": "WORKER", "agent_id": "agent-worker" },
        "inputs": { "spec": "do it", "artifacts": [{
            "name": "output_schema",
            "uri": RESULT_SCHEMA,
            "sha256": sha256(RESULT_SCHEMA_TEXT.as_bytes()),
        }] },
        "required_outputs": [],
        "allowed_paths": ["src"],
        "forbidden_actions": [],
        "acceptance_tests": [{ "name": "unit", "cmd": "cargo test 'a b'", "must_pass": true }],
        "tool_permissions": {
            "filesystem": "workspace-write", "shell": "never", "network": "deny", "mcp_tools": [],
        },
        "mcp_tool_set": ["none"],
        "timeout_retry": { "timeout_sec": 60, "max_retries": 0, "retry_backoff_sec": 0 },
        "rollback": { "strategy": "worktree_drop", "baseline_ref": base },
        "evidence_links": [],
        "log_refs": { "run_id": "run_0001", "paths": {} },
    })
}

/// The events of the run of `draft`.
pub(crate) fn events(draft: &Draft) -> Vec<Event> {
    let names = Names {
        run_id: draft.run_id.clone(),
        task_id: "task_001".to_owned(),
        trace_id: "trace_01".to_owned(),
    };
    let event = |fact: &Fact| fact.event(&names, 1, WHEN.to_owned());
    let mut events = vec![event(&opened(draft))];
    let first = Head::genesis().append(events[0].clone());
    let mut state = State::fold(&[first]).unwrap();
    while state.finished.is_none() {
        let facts = match state.next() {
            Next::Do(step) => vec![Fact::Started { step }, outcome(draft, &state, step)],
            Next::Judge(gate) => {
                let verdict = state.judge(gate);
                vec![Fact::judged(Judgement { gate, verdict })]
            }
            Next::Finish(verdict) => vec![Fact::Finished { verdict }],
            Next::Ask
            | Next::Wait
            | Next::Lose
            | Next::Trigger(_)
            | Next::Exhaust { .. }
            | Next::Seal => {
                unreachable!("no step fails here")
            }
        };
        for fact in facts {
            events.push(event(&fact));
            state.apply(fact).unwrap();
        }
    }
    events
}

fn opened(draft: &Draft) -> Fact {
    let base = &draft.predicate.base_commit;
    let read = |value: &Value| contract::parse(value.to_string().as_bytes());
    // A contract that does not parse was never run; the ledger is then of one that does.
    let contract = read(&draft.contract).unwrap_or_else(|_| read(&contract(base)).unwrap());
    let word = || "x".to_owned();
    Fact::Opened(Box::new(Opened {
        contract_sha256: contract::digest(&contract).unwrap(),
        contract_source: None,
        contract,
        typed: false,
        base_commit: base.clone(),
        base_tree: draft.predicate.base_tree.clone(),
        object_format: ObjectFormat::Sha1,
        target: draft.lands.as_ref().map(|(_, branch)| (*branch).to_owned()),
        agent: vec![word()],
        agent_typed: true,
        adapted: None,
        credentials: Vec::new(),
        review: draft.reviewed.then(reviewer),
        protect: Extra::default(),
        commands: Vec::new(),
        workspace: WorkspaceChoice::Auto,
        cache: CacheRules::default(),
        prepare: Vec::new(),
        loopback: false,
        limits: Asked::default(),
        artifacts: std::collections::BTreeMap::new(),
        references: None,
        additions: provost_core::contract::additions::Additions::default(),
        least_tier: Tier::default(),
        ask: provost_core::question::AskRules::default(),
        refuses_programs: true,
        checks_thread: true,
        widenings: Vec::new(),
        parent: None,
        work: None,
        continues: None,
        part: None,
        child: None,
        policies: provost_core::children::policy::FamilyPolicies::default(),
        ticket: None,
        owner: Owner {
            host: word(),
            boot: word(),
            pid_namespace: word(),
            pid: 1,
            started: 1,
        },
        format: provost_core::bundle::layout::BundleFormat::NEWEST,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

fn probed() -> Probed {
    Probed {
        shape: sha256(b"shape"),
        cached: false,
        attempts: vec![Probe {
            name: "write".to_owned(),
            walls: vec!["root".to_owned()],
            tried: "write outside".to_owned(),
            held: true,
            errno: Some(2),
        }],
    }
}

fn outcome(draft: &Draft, state: &State, step: Step) -> Fact {
    match step {
        Step::Lease => Fact::Leased { fence: 1 },
        Step::Prepare => Fact::Prepared { layers: Vec::new() },
        Step::Workspace => Fact::Workspace(Placed {
            path: "elsewhere".to_owned(),
            kind: WorkspaceKind::Copy,
            reason: String::new(),
        }),
        Step::Selftest => Fact::Tested(SandboxTest {
            tier: "namespaces".to_owned(),
            processes: Processes::Own,
            landlock: None,
            sealed_gaps: Vec::new(),
            holes: Vec::new(),
            held: true,
            kernel: "6.1".to_owned(),
            boot: "boot".to_owned(),
            launcher: sha256(b"launcher"),
            profile: sha256(b"profile"),
            limits: BTreeMap::new(),
            agent: probed(),
            acceptance: probed(),
            program: None,
        }),
        Step::Agent => Fact::AgentEnded(AgentRun {
            ending: Ending::Exited(0),
            wall_ms: 1,
            stdout: stream(),
            stderr: stream(),
            result: ResultFile::Absent,
            redacted: 0,
            refused: std::collections::BTreeMap::new(),
            network: Vec::new(),
            claims: None,
            model: None,
        }),
        Step::Capture => Fact::Captured(captured(draft)),
        Step::Review => Fact::Reviewed(Box::new(review(state))),
        Step::BaseAcceptance => Fact::TestsRan(tests(state, Side::Base)),
        Step::BaseAgain => Fact::TestsRan(tests(state, Side::BaseAgain)),
        Step::Acceptance => Fact::TestsRan(tests(state, Side::Candidate)),
        Step::OldTests | Step::NewTests => unreachable!("no test file changes here"),
        Step::Fix => unreachable!("nothing is refused here"),
        Step::Publish => Fact::Published(Published {
            commit: match &draft.lands {
                Some((commit, _)) => commit.clone(),
                None => draft.predicate.base_commit.clone(),
            },
            branch: "refs/heads/provost/x".to_owned(),
        }),
        Step::Clean => Fact::Cleaned(Cleaned::default()),
    }
}

fn reviewer() -> Reviewer {
    Reviewer {
        name: "strict".to_owned(),
        argv: vec!["x".to_owned()],
        typed: true,
        adapted: None,
        credentials: Vec::new(),
    }
}

fn review(state: &State) -> ReviewRun {
    let report = json!({ "verdict": "PASS", "summary": "fine", "violations": [], "findings": [] });
    ReviewRun {
        tree: state.captured.as_ref().unwrap().tree.clone(),
        ended_at: WHEN.to_owned(),
        altered: Vec::new(),
        probed: probed(),
        run: AgentRun {
            ending: Ending::Exited(0),
            wall_ms: 1,
            stdout: stream(),
            stderr: stream(),
            result: ResultFile::Text(report.to_string()),
            redacted: 0,
            refused: std::collections::BTreeMap::new(),
            network: Vec::new(),
            claims: None,
            model: None,
        },
    }
}

fn captured(draft: &Draft) -> Capture {
    let objects = pack::read(&draft.texts["git/objects.pack"], ObjectFormat::Sha1);
    let objects = objects.unwrap_or_default();
    // A pack may be made to be walked forever; no such tree was captured.
    let mut left = 1000;
    let lookup = |oid: &Oid| {
        left -= 1;
        let found = objects.get(oid).filter(|_| left > 0);
        found.map(|(_, bytes)| bytes.clone())
    };
    let candidate = draft.predicate.candidate_tree.clone().unwrap();
    let changes = tree::diff(&draft.predicate.base_tree, &candidate, lookup);
    Capture {
        tree: candidate,
        kept_by: "refs/provost/runs/x/1".to_owned(),
        changes: changes.unwrap_or_default(),
        findings: Vec::new(),
        ignored: Ignored::default(),
        withheld: fact::Withheld::default(),
        crossed: None,
    }
}

fn tests(state: &State, side: Side) -> TestRun {
    let tree = match side {
        Side::Base => state.opened.base_tree.clone(),
        _ => state.captured.as_ref().unwrap().tree.clone(),
    };
    let run = |test: &contract::Test| CommandRun {
        name: test.name.clone(),
        argv: test.argv.clone(),
        ending: Ending::Exited(0),
        began: None,
        wall_ms: 1,
        stdout: stream(),
        stderr: stream(),
        tally: None,
    };
    let contract = state.contract.as_ref().unwrap();
    TestRun {
        side,
        tree,
        cached: false,
        profile: sha256(b"profile"),
        layers: Vec::new(),
        cache: None,
        commands: contract.tests.iter().map(run).collect(),
        altered: Vec::new(),
    }
}

fn stream() -> Stream {
    Stream {
        file: "tests/stderr.log".to_owned(),
        bytes: 0,
        kept: 0,
        sha256: sha256(b""),
        redacted: 0,
        cut: false,
    }
}
