//! Tests of chain documents, and of the next step in a chain.

use proptest::prelude::*;
use provost_core::contract::additions::AdditionsFrom;
use provost_core::contract::check::{Purpose, Rules};
use provost_core::contract::typed::Typed;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::object::{Kind, ObjectFormat, Oid};
use provost_core::path::RepoPath;
use provost_core::record::Head;
use provost_core::scope::Scope;
use provost_core::verdict::Verdict;
use serde_json::{Value, json};

use super::*;

fn oid(word: &str) -> Oid {
    let id = ObjectFormat::Sha256.oid(Kind::Blob, word.as_bytes());
    id.unwrap()
}

fn contract(allow: &str) -> contract::document::Document {
    let typed = Typed {
        objective: "Do it".to_owned(),
        allow: vec![allow.to_owned()],
        accept: vec!["pytest -q".to_owned()],
        timeout_sec: 60,
        ..Typed::default()
    };
    typed.document("run_1", 1_767_225_600_000)
}

/// A chain of nodes: a name, a path, and what each needs.
fn document(nodes: &[(&str, &str, &[&str])]) -> Document {
    let node = |(id, allow, needs): &(&str, &str, &[&str])| Node {
        id: (*id).to_owned(),
        needs: needs.iter().map(ToString::to_string).collect(),
        agent: None,
        contract: Some(contract(allow)),
        contract_file: None,
        drops: Vec::new(),
        package: None,
    };
    Document {
        schema_version: 1,
        parent: None,
        max_handoffs: MOST_HANDOFFS,
        nodes: nodes.iter().map(node).collect(),
    }
}

fn checked(document: &Document) -> Result<Chain, Vec<(String, Code)>> {
    let rules = Rules {
        policy: &CommandPolicy::shipped().unwrap(),
        trust: Trust::FromFile,
        purpose: Purpose::Run,
        additions: AdditionsFrom::Nowhere,
    };
    check(document, &rules)
        .map_err(|problems| problems.into_iter().map(|it| (it.path, it.code)).collect())
}

fn chain(nodes: &[(&str, &str, &[&str])]) -> Chain {
    checked(&document(nodes)).unwrap()
}

fn state() -> State {
    let fact = Fact::Opened {
        chain_sha256: String::new(),
        base_commit: oid("base"),
    };
    let event = fact.event("chain_1", "2026-01-01T00:00:00Z".to_owned());
    let record = Head::genesis().append(event);
    State::fold(&[record]).unwrap().unwrap()
}

fn begin(state: &mut State, node: &str) {
    let fact = Fact::Started {
        node: node.to_owned(),
        run_id: format!("run_{node}"),
        base_commit: oid("base"),
        contract_sha256: String::new(),
        hands: None,
    };
    state.apply(fact).unwrap();
}

fn end(state: &mut State, node: &str, verdict: Verdict) {
    let accepted = verdict.allow;
    let end = End {
        run_id: format!("run_{node}"),
        verdict,
        commit: accepted.then(|| oid(node)),
        tree: None,
        head: Some(String::new()),
    };
    let (node, end) = (node.to_owned(), Box::new(end));
    state.apply(Fact::Ended { node, end }).unwrap();
}

fn accept(state: &mut State, node: &str) {
    begin(state, node);
    end(state, node, Verdict::allow("fine"));
}

#[test]
fn a_chain_that_cannot_be_run_is_refused_by_its_places() {
    type Nodes = Vec<(&'static str, &'static str, &'static [&'static str])>;
    let cases: [(&str, Nodes, &[&str]); 6] = [
        ("nothing", vec![], &["/nodes"]),
        (
            "twice",
            vec![("a", "a", &[]), ("a", "b", &[])],
            &["/nodes/1/id"],
        ),
        (
            "no such node",
            vec![("a", "a", &["b"])],
            &["/nodes/0/needs/0"],
        ),
        ("itself", vec![("a", "a", &["a"])], &["/nodes/0/needs"]),
        (
            "a cycle, and one that waits for it",
            vec![("a", "a", &["b"]), ("b", "b", &["a"]), ("c", "c", &["b"])],
            &["/nodes/0/needs", "/nodes/1/needs"],
        ),
        ("a bad name", vec![("a/b", "a", &[])], &["/nodes/0/id"]),
    ];
    for (name, nodes, want) in cases {
        let problems = checked(&document(&nodes)).unwrap_err();
        let want: Vec<(String, Code)> = want
            .iter()
            .map(|path| ((*path).to_owned(), Code::ChainInvalid))
            .collect();
        assert_eq!(problems, want, "{name}");
    }
    let mut long = document(&[("a", "a", &[]), ("b", "b", &["a"]), ("c", "c", &["b"])]);
    assert!(checked(&long).is_ok());
    long.max_handoffs = 1;
    let problems = checked(&long).unwrap_err();
    assert_eq!(problems[0].0, "/nodes/2/needs");
    let broken = checked(&document(&[("a", "**", &[])])).unwrap_err();
    let place = "/nodes/0/contract/allowed_paths/0".to_owned();
    assert_eq!(broken, [(place, Code::ScopeInvalid)]);
}

#[test]
fn a_document_with_an_unknown_member_is_refused() {
    let good = serde_json::to_value(document(&[("a", "a", &[])])).unwrap();
    assert!(Document::from_value(&good).is_ok());
    let changes: [fn(&mut Value); 4] = [
        |it| it["jobs"] = json!(3),
        |it| it["schema_version"] = json!(2),
        |it| it["nodes"][0]["contract_file"] = json!("a.json"),
        |it| it["nodes"] = json!({}),
    ];
    for change in changes {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(Document::from_value(&bad).is_err(), "{bad}");
    }
}

#[test]
fn what_shares_a_path_is_never_at_work_at_once() {
    let chain = chain(&[("a", "lib", &[]), ("b", "lib/x", &[]), ("c", "doc", &[])]);
    let mut state = state();
    assert_eq!(state.next(&chain, 8), Next::Start(0));
    begin(&mut state, "a");
    assert_eq!(state.next(&chain, 8), Next::Start(2), "b has to wait");
    begin(&mut state, "c");
    assert_eq!(state.next(&chain, 8), Next::Wait);
    end(&mut state, "a", Verdict::allow("fine"));
    assert_eq!(state.next(&chain, 8), Next::Start(1));
    assert_eq!(state.next(&chain, 1), Next::Wait, "there is room for one");
}

#[test]
fn what_needs_a_refused_node_is_not_run_and_says_why() {
    let chain = chain(&[("a", "a", &[]), ("b", "b", &["a"]), ("c", "c", &["b"])]);
    let mut state = state();
    begin(&mut state, "a");
    end(
        &mut state,
        "a",
        Verdict::deny(Code::AcceptanceFailed, "red"),
    );
    let Next::PassOver(1, verdict) = state.next(&chain, 1) else {
        panic!("{:?}", state.next(&chain, 1));
    };
    assert!(verdict.reason.contains("ACCEPTANCE_FAILED"), "{verdict:?}");
    let node = "b".to_owned();
    state.apply(Fact::NotRun { node, verdict }).unwrap();
    let Next::PassOver(2, verdict) = state.next(&chain, 1) else {
        panic!("c can never be run");
    };
    let node = "c".to_owned();
    state.apply(Fact::NotRun { node, verdict }).unwrap();
    let Next::Finish(verdict) = state.next(&chain, 1) else {
        panic!("nothing is left");
    };
    assert_eq!(verdict.code, Code::AcceptanceFailed, "the first refusal");
    // In a second call a refused node stays refused, unless the user asks to run it again.
    let mut later = state.clone();
    later.apply(Fact::Resumed { again: false }).unwrap();
    assert!(matches!(later.next(&chain, 1), Next::PassOver(1, _)));
    state.apply(Fact::Resumed { again: true }).unwrap();
    assert_eq!(state.next(&chain, 1), Next::Start(0));
}

#[test]
fn what_did_not_come_about_is_tried_again_and_what_was_left_is_taken_up() {
    let chain = chain(&[("a", "a", &[]), ("b", "b", &[]), ("c", "c", &[])]);
    let mut state = state();
    accept(&mut state, "a");
    begin(&mut state, "b");
    end(&mut state, "b", Verdict::deny(Code::LeaseHeld, "taken"));
    begin(&mut state, "c");
    state.apply(Fact::Resumed { again: false }).unwrap();
    assert_eq!(state.next(&chain, 1), Next::Start(1));
    begin(&mut state, "b");
    let taken = Next::TakeUp(2, "run_c".to_owned());
    assert_eq!(state.next(&chain, 2), taken);
}

#[test]
fn results_are_merged_on_what_they_have_in_common() {
    let chain = chain(&[
        ("a", "a", &[]),
        ("b", "b", &["a"]),
        ("c", "c", &["a"]),
        ("d", "d", &["b", "c"]),
        ("e", "e", &["a", "b"]),
        ("f", "f", &[]),
        ("g", "g", &["b", "f"]),
    ]);
    let mut state = state();
    for node in ["a", "b", "c", "f"] {
        accept(&mut state, node);
    }
    let base = |node: usize| state.base(&chain, node).unwrap();
    assert_eq!(base(0).first, oid("base"));
    assert_eq!((base(1).first, base(1).others), (oid("a"), vec![]));
    assert_eq!(base(3).others, [(oid("a"), oid("c"))], "on a");
    assert_eq!(
        (base(4).first, base(4).others),
        (oid("b"), vec![]),
        "b has a"
    );
    assert_eq!(base(6).others, [(oid("base"), oid("f"))]);
    let mut early = state.clone();
    early.nodes.remove("c");
    assert_eq!(early.base(&chain, 3), None);
}

#[test]
fn gaps_are_the_paths_that_no_child_has() {
    let scope = |paths: &[&str]| Scope::parse(paths).unwrap();
    let whole = scope(&["lib", "docs/x", "new"]);
    let [one, two] = [scope(&["lib/a"]), scope(&["docs/x"])];
    let files: Vec<RepoPath> = ["lib/a/1", "lib/b/2", "docs/x", "other"]
        .iter()
        .map(|path| RepoPath::try_from(*path).unwrap())
        .collect();
    let gaps = grant::gaps(&whole, &[&one, &two], files.iter());
    let gaps: Vec<&str> = gaps.iter().map(RepoPath::as_str).collect();
    assert_eq!(gaps, ["lib/b/2", "new"]);
}

/// A parent, and a chain of one node with the same contract.
fn within(change: impl FnOnce(&mut Value)) -> Result<Chain, Vec<(String, Code)>> {
    let typed = Typed {
        objective: "Do all of it".to_owned(),
        allow: vec!["lib".to_owned()],
        forbid: vec!["lib/frozen".to_owned()],
        accept: vec!["pytest -q".to_owned()],
        timeout_sec: 60,
        max_retries: 1,
        ..Typed::default()
    };
    let mut parent = typed.document("run_1", 1_767_225_600_000);
    parent.x_provost.as_mut().unwrap().loopback = Some(false);
    parent.forbidden_actions = vec!["push".to_owned()];
    let mut written = document(&[("a", "lib", &[])]);
    written.nodes[0].contract = Some(parent.clone());
    written.parent = Some(parent);
    let mut value = serde_json::to_value(&written).unwrap();
    change(&mut value["nodes"][0]);
    checked(&Document::from_value(&value).unwrap())
}

#[test]
fn a_node_that_does_more_than_its_parent_is_refused_on_every_axis() {
    type Change = fn(&mut Value);
    assert!(within(|_| ()).is_ok());
    let changes: [(&str, Change); 11] = [
        ("accept_mode", |it| {
            it["contract"]["x_provost"]["accept_mode"] = json!("no-regression");
        }),
        ("loopback", |it| {
            it["contract"]["x_provost"]["loopback"] = json!(true);
        }),
        ("write", |it| {
            it["contract"]["allowed_paths"] = json!(["lib", "doc"]);
        }),
        ("forbid", |it| {
            it["contract"]["x_provost"]["forbid"] = json!([]);
        }),
        ("permit", |it| {
            it["contract"]["x_provost"]["permit"] = json!({ "oracle": ["lib/tox.ini"] });
        }),
        ("fewer tests", |it| {
            it["contract"]["x_provost"]["permit"] = json!({ "fewer_tests": true });
        }),
        ("retries", |it| {
            it["contract"]["timeout_retry"]["max_retries"] = json!(2);
        }),
        ("seconds", |it| {
            it["contract"]["timeout_retry"]["timeout_sec"] = json!(61);
        }),
        ("memory", |it| {
            let more: u64 = 9 << 30;
            it["contract"]["x_provost"]["limits"] = json!({ "memory_bytes": more });
        }),
        ("words", |it| {
            it["contract"]["forbidden_actions"] = json!([]);
        }),
        ("network", |it| {
            it["contract"]["tool_permissions"]["network"] = json!("allow");
            it["contract"]["x_provost"]["net"] = json!(["a.example:443"]);
        }),
    ];
    for (name, change) in changes {
        let problems = within(change).unwrap_err();
        let want = ("/nodes/0".to_owned(), Code::PackageExceedsGrant);
        assert_eq!(problems, [want], "{name}");
    }
    // Less is fine, and so is a package that follows from both; another one is not.
    let less = within(|it| it["contract"]["allowed_paths"] = json!(["lib/x"]));
    assert!(less.is_ok(), "{less:?}");
    let alien = within(|it| it["package"] = json!({ "schema_version": 2, "agent": "other" }));
    let want = (
        "/nodes/0/package".to_owned(),
        Code::ParentFingerprintMismatch,
    );
    assert_eq!(alien.unwrap_err(), [want]);
}

/// One step of the driver in a random course of a chain.
#[derive(Debug, Clone, Copy)]
enum Stroke {
    /// The oldest run is accepted.
    Accepts,
    Refuses,
    /// The driver dies, and another one takes over.
    Dies,
}

fn strokes() -> impl Strategy<Value = Vec<Stroke>> {
    let one = prop_oneof![
        6 => Just(Stroke::Accepts),
        1 => Just(Stroke::Refuses),
        1 => Just(Stroke::Dies),
    ];
    prop::collection::vec(one, 60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_course_comes_to_an_end_and_no_rule_is_broken_on_the_way(
        needs in prop::collection::vec(prop::collection::btree_set(0_usize..8, 0..3), 1..8),
        places in prop::collection::vec(0_usize..4, 8),
        jobs in 1_usize..4,
        strokes in strokes(),
    ) {
        let names: Vec<String> = (0..needs.len()).map(|at| format!("n{at}")).collect();
        let paths: Vec<String> = places.iter().map(|place| format!("p{place}")).collect();
        let mut written = document(&[]);
        for (at, needs) in needs.iter().enumerate() {
            let mut node = document(&[(&names[at], &paths[at], &[])]).nodes.remove(0);
            // Only earlier nodes, so that there is no cycle.
            node.needs = needs.iter().filter(|need| **need < at).map(|it| names[*it].clone()).collect();
            written.nodes.push(node);
        }
        let chain = checked(&written).unwrap();
        let mut state = state();
        let mut strokes = strokes.into_iter();
        let mut running: Vec<usize> = Vec::new();
        let mut begun = 0;
        let verdict = loop {
            match state.next(&chain, jobs) {
                Next::Start(at) => {
                    begun += 1;
                    prop_assert!(running.len() < jobs);
                    let scope = &chain.nodes[at].contract.scope;
                    prop_assert!(!running.iter().any(|it| chain.nodes[*it].contract.scope.overlaps(scope)));
                    prop_assert!(state.base(&chain, at).is_some(), "all needs are accepted");
                    begin(&mut state, &names[at]);
                    running.push(at);
                }
                Next::TakeUp(at, run_id) => {
                    prop_assert_eq!(&run_id, &format!("run_{}", names[at]));
                    state.nodes.insert(names[at].clone(), Standing::Running { run_id });
                    running.push(at);
                }
                Next::Test => prop_assert!(false, "nothing was divided"),
                Next::PassOver(at, verdict) => {
                    let node = names[at].clone();
                    state.apply(Fact::NotRun { node, verdict }).unwrap();
                }
                Next::Wait => match strokes.next().unwrap_or(Stroke::Accepts) {
                    Stroke::Accepts => {
                        let at = running.remove(0);
                        end(&mut state, &names[at], Verdict::allow("fine"));
                    }
                    Stroke::Refuses => {
                        let at = running.remove(0);
                        end(&mut state, &names[at], Verdict::deny(Code::EmptyDiff, "no"));
                    }
                    Stroke::Dies => {
                        running.clear();
                        state.apply(Fact::Resumed { again: false }).unwrap();
                    }
                },
                Next::Finish(verdict) => break verdict,
            }
        };
        prop_assert!(running.is_empty());
        let all = chain.nodes.iter().all(|node| matches!(
            state.nodes.get(&node.id),
            Some(Standing::Ended(end)) if end.accepted().is_some()
        ));
        prop_assert_eq!(verdict.allow, all);
        prop_assert!(begun <= chain.nodes.len(), "nothing is run twice");
    }
}

#[test]
fn what_is_taken_from_a_parent_needs_one() {
    let mut alone = document(&[("a", "a", &[])]);
    let whole = contract::resolve(
        contract("a"),
        &CommandPolicy::shipped().unwrap(),
        Trust::FromFile,
    );
    let package = grant::parent(&whole.unwrap(), 1).unwrap();
    alone.nodes[0].package = Some(package);
    alone.nodes[0].drops = vec![Dropped {
        cmd: "pytest -q".to_owned(),
        reason: "slow".to_owned(),
    }];
    let want = ["/nodes/0/package", "/nodes/0/drops"];
    let want = want.map(|path| (path.to_owned(), Code::ChainInvalid));
    assert_eq!(checked(&alone).unwrap_err(), want);
}

#[test]
fn a_part_lands_only_as_the_result_that_was_accepted_with_all_others() {
    let mut state = state();
    begin(&mut state, "a");
    let end = Box::new(End {
        run_id: "run_a".to_owned(),
        verdict: Verdict::allow("fine"),
        commit: Some(oid("a")),
        tree: Some(oid("tree")),
        head: Some("head".to_owned()),
    });
    let node = "a".to_owned();
    state.apply(Fact::Ended { node, end }).unwrap();
    let withheld = |state: &State| state.withholds("a", "run_a", "head", &oid("tree"));
    let tested = |verdict| Fact::Tested {
        commit: None,
        verdict,
    };
    assert!(withheld(&state).unwrap().contains("not tested"));
    let refused = Verdict::deny(Code::AcceptanceFailed, "red");
    state.apply(tested(refused)).unwrap();
    assert!(withheld(&state).unwrap().contains("red"));
    state.apply(tested(Verdict::allow("fine"))).unwrap();
    assert!(withheld(&state).unwrap().contains("not accepted"));
    let verdict = Verdict::allow("fine");
    state.apply(Fact::Finished { verdict }).unwrap();
    assert_eq!(withheld(&state), None);
    for (node, run, head, tree) in [
        ("b", "run_a", "head", "tree"),
        ("a", "run_b", "head", "tree"),
        ("a", "run_a", "other", "tree"),
        ("a", "run_a", "head", "other"),
    ] {
        assert!(state.withholds(node, run, head, &oid(tree)).is_some());
    }
    // A run that begins later was not tested with the others.
    begin(&mut state, "b");
    assert!(withheld(&state).is_some());
    assert_eq!(state.tested, None);
}
