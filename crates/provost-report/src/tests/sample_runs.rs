//! Sample runs for tests: started under a contract, and refused for their changes.

use proptest::prelude::*;
use serde_json::json;

use provost_core::change::{Change, EXACT, Ignored, Movement, Node, Origin};
use provost_core::contract::digest;
use provost_core::contract::typed::Typed;
use provost_core::object::{Kind, Mode, ObjectFormat};
use provost_core::path::RawPath;
use provost_core::record::{Head, Record};
use provost_core::run::fact::{self, Capture, Fact, Judgement, Names};
use provost_core::run::{Gate, State, Step};

pub(crate) fn oid(word: &str) -> String {
    let oid = ObjectFormat::Sha1.oid(Kind::Blob, word.as_bytes()).unwrap();
    oid.to_string()
}

pub(crate) fn typed(allow: &[&str], forbid: &[&str]) -> Typed {
    let list = |entries: &[&str]| entries.iter().map(|&entry| entry.to_owned()).collect();
    Typed {
        objective: "Fix it".to_owned(),
        allow: list(allow),
        forbid: list(forbid),
        accept: vec!["my-test".to_owned()],
        timeout_sec: 60,
        ..Typed::default()
    }
}

pub(crate) fn opened(typed: Typed) -> Fact {
    let contract = typed.document("run_00000001", 1_767_225_600_000);
    let owner = json!({ "host": "h", "boot": "b", "pid_namespace": "p", "pid": 1, "started": 1 });
    let fact = json!({ "RUN_OPENED": {
        "contract_sha256": digest(&contract).unwrap(), "contract": contract, "typed": true,
        "base_commit": oid("c"), "base_tree": oid("t"), "object_format": "sha1",
        "agent": ["agent"], "agent_typed": true,
        "protect": { "oracle": [], "governing": [] }, "owner": owner, "version": "0",
    } });
    provost_core::json::from_value(fact).unwrap()
}

pub(crate) fn ledger(facts: &[Fact]) -> Vec<Record> {
    let names = Names {
        run_id: "run_00000001".to_owned(),
        task_id: "task-1767225600000".to_owned(),
        trace_id: "trace-01".to_owned(),
    };
    let mut head = Head::genesis();
    let event = |fact: &Fact| fact.event(&names, 1, "2026-01-01T00:00:00Z".to_owned());
    facts.iter().map(|fact| head.append(event(fact))).collect()
}

pub(crate) fn edit(path: &str) -> Change {
    let side = |mode| Node {
        mode,
        oid: ObjectFormat::Sha1.oid(Kind::Blob, b"x").unwrap(),
    };
    Change {
        path: RawPath::new(path),
        before: Some(side(Mode::File)),
        after: Some(side(Mode::Executable)),
        binary: false,
        origin: None,
        link: None,
    }
}

pub(crate) fn link(path: &str, target: &str) -> Change {
    let mut change = edit(path);
    change.before = None;
    change.link = Some(RawPath::new(target));
    change.after.as_mut().unwrap().mode = Mode::Symlink;
    change
}

pub(crate) fn refused(typed: Typed, changes: &[Change]) -> Vec<Record> {
    let mut facts = vec![opened(typed)];
    let tree = ObjectFormat::Sha1.oid(Kind::Blob, b"tree").unwrap();
    facts.push(Fact::Started {
        step: Step::Capture,
    });
    facts.push(Fact::Captured(Capture {
        tree,
        kept_by: "refs/provost/x".to_owned(),
        changes: changes.to_vec(),
        findings: Vec::new(),
        ignored: Ignored::default(),
        withheld: fact::Withheld::default(),
        crossed: None,
    }));
    let state = State::fold(&ledger(&facts)).unwrap();
    let gate = Gate::Diff;
    let verdict = state.judge(gate);
    facts.push(Fact::judged(Judgement { gate, verdict }));
    ledger(&facts)
}

/// A few changes; as in every diff, no path occurs twice.
pub(crate) fn any_changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec(any_change(), 1..4).prop_map(|mut changes: Vec<Change>| {
        changes.sort_by(|one, two| one.path.cmp(&two.path));
        changes.dedup_by(|one, two| one.path == two.path);
        changes
    })
}

fn any_change() -> impl Strategy<Value = Change> {
    let path = "(a|b|ab|\\[c\\]|pytest.ini|CLAUDE.md|x y)(/(a|b|\\[c\\]|tox.ini)){0,2}";
    let how = prop_oneof![Just(Movement::Rename), Just(Movement::Copy)];
    (
        path,
        any::<bool>(),
        prop::option::of((path, how)),
        prop::option::of("(\\.\\./){0,2}(a|b)"),
    )
        .prop_map(|(path, binary, origin, target)| {
            let change = match target {
                Some(target) => link(&path, &target),
                None => edit(&path),
            };
            let origin = origin.map(|(path, how)| Origin {
                path: RawPath::new(path),
                how,
                likeness: EXACT,
            });
            Change {
                binary,
                origin,
                ..change
            }
        })
}
