//! Commands that could never start are found before the agent works.

use super::*;
use crate::path::RepoPath;
use crate::prepare;
use crate::run::effect::{Effect, Selftest};
use crate::run::judge::{Lack, judge_programs};
use crate::scope::Scope;

fn order(argvs: &[&str], must_pass: bool) -> Selftest {
    let Ok(Effect::Selftest(order)) = state(&[]).effect(Step::Selftest) else {
        unreachable!("the contract is a good one");
    };
    let mut order = *order;
    let test = order.acceptance.tests[0].clone();
    let tests = argvs.iter().map(|argv| crate::contract::Test {
        argv: vec![(*argv).to_owned()],
        must_pass,
        ..test.clone()
    });
    order.acceptance.tests = tests.collect();
    order
}

#[test]
fn only_a_command_that_can_never_start_is_refused() {
    let path = |text: &str| RepoPath::try_from(text).unwrap();
    let cases: [(&str, &[&str], bool); 9] = [
        ("a name", &["pytest"], true),
        ("a second name", &["sh", "pytest"], true),
        ("a place of the machine", &["/opt/tool/run"], true),
        ("a file outside the scope", &["./tests/run"], true),
        (
            "the same by its whole path",
            &["/workspace/tests/run"],
            true,
        ),
        ("a file inside the scope", &["./app/run"], false),
        ("the same by its whole path", &["/workspace/app/run"], false),
        (
            "what an earlier command may build",
            &["sh", "build/run"],
            false,
        ),
        ("a path that climbs", &["../run"], false),
    ];
    for (name, argvs, refused) in cases {
        let mut lacks = vec![None; argvs.len() - 1];
        lacks.push(Some(Lack::Missing));
        let order = order(argvs, true);
        let said = judge_programs(&order, &lacks);
        assert_eq!(said.is_some(), refused, "{name}: {said:?}");
        let all_there = vec![None; argvs.len()];
        assert_eq!(judge_programs(&order, &all_there), None, "{name}");
        let optional = self::order(argvs, false);
        assert_eq!(judge_programs(&optional, &lacks), None, "{name}");
    }
    let lacks = [Some(Lack::NotExecutable)];
    let mut prepared = order(&["pytest"], true);
    prepared.acceptance.prepare.steps = vec![prepare::Step {
        name: "deps".to_owned(),
        run: vec![vec!["make".to_owned()]],
        inputs: vec![path("lock")],
        outputs: vec![prepare::Output::Tree(path("deps"))],
        net: Vec::new(),
        env: BTreeMap::new(),
        mount: None,
    }];
    assert!(judge_programs(&prepared, &lacks).is_some());
    prepared.scope = Scope::of(vec![path("lock")]);
    assert_eq!(judge_programs(&prepared, &lacks), None, "it may change");
}
