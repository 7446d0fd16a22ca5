mod messages;
mod property;

use super::*;
use crate::code::Code;
use crate::object::{Oid, sha256};
use crate::run::fact::{Fact, Opened};
use crate::run::tests::opened;
use crate::verdict::Verdict;

fn parent(grant: &ChildGrant) -> Opened {
    let Fact::Opened(opened) = opened() else {
        panic!("the first fact opens a run");
    };
    let mut opened = *opened;
    let extension = opened.contract.x_provost.get_or_insert_default();
    extension.children = Some(grant.clone());
    extension.forbid = vec!["app/secret".to_owned()];
    opened
}

fn grant() -> ChildGrant {
    ChildGrant {
        count: 2,
        seconds: Some(100),
        processes: Some(64),
        ..ChildGrant::default()
    }
}

fn task(key: &str) -> ChildTask {
    ChildTask {
        key: key.to_owned(),
        task: "Do it".to_owned(),
        write: vec!["app/part".to_owned()],
        ..ChildTask::default()
    }
}

fn asked(opened: &Opened, family: &Family, task: &ChildTask) -> Result<Admitted, Verdict> {
    admit(&Asking {
        run_id: "run_00000001",
        opened,
        family,
        task,
        request_sha256: &sha256(task.key.as_bytes()),
        child: &format!("run_child_{}", task.key),
    })
}

fn base(name: &str) -> ChildBase {
    let oid = |text: &str| Oid::try_from(&sha256(text.as_bytes())[..40]).unwrap();
    ChildBase {
        commit: oid(&format!("{name} commit")),
        tree: oid(&format!("{name} tree")),
    }
}

fn ended(start: &ChildStart, spent: ChildBudget) -> ChildEnd {
    ChildEnd {
        run_id: start.run_id.clone(),
        verdict: Verdict::allow("done"),
        spent,
        children: 0,
        tree: None,
        attestation_sha256: None,
    }
}

#[test]
fn what_is_not_granted_is_refused_with_its_code() {
    let with = |change: fn(&mut ChildTask)| {
        let mut task = task("one");
        change(&mut task);
        task
    };
    let cases: [(&str, ChildTask, Code); 10] = [
        (
            "a path beyond the scope",
            with(|it| it.write = vec!["lib".into()]),
            Code::PackageExceedsGrant,
        ),
        (
            "an alias of a path",
            with(|it| it.write = vec!["app/../lib".into()]),
            Code::ChildRequestInvalid,
        ),
        (
            "a place of the network",
            with(|it| it.net = vec!["a.example:443".into()]),
            Code::PackageExceedsGrant,
        ),
        (
            "a tool",
            with(|it| it.tools = Some(vec!["Bash".into()])),
            Code::PackageExceedsGrant,
        ),
        (
            "too many seconds",
            with(|it| it.budget.seconds = 101),
            Code::ChildBudgetExhausted,
        ),
        (
            "tokens",
            with(|it| it.budget.tokens = 1),
            Code::ChildBudgetExhausted,
        ),
        (
            "a grandchild too many",
            with(|it| it.children = 2),
            Code::ChildrenExhausted,
        ),
        (
            "no task",
            with(|it| it.task.clear()),
            Code::ChildRequestInvalid,
        ),
        (
            "a reader that writes",
            with(|it| it.read_only = true),
            Code::ChildRequestInvalid,
        ),
        (
            "a key with a line",
            with(|it| it.key = "a\nb".into()),
            Code::ChildRequestInvalid,
        ),
    ];
    let opened = parent(&grant());
    asked(&opened, &Family::default(), &task("one")).unwrap();
    for (name, task, code) in cases {
        let refused = asked(&opened, &Family::default(), &task).unwrap_err();
        assert_eq!(refused.code, code, "{name}: {}", refused.reason);
    }
}

#[test]
fn a_third_child_and_a_grandchild_beyond_the_depth_are_refused() {
    let opened = parent(&grant());
    let mut family = Family::default();
    for key in ["one", "two"] {
        let admitted = asked(&opened, &family, &task(key)).unwrap();
        assert!(family.start(admitted.on(base(key)).unwrap().0));
    }
    let third = asked(&opened, &family, &task("three")).unwrap_err();
    assert_eq!(third.code, Code::ChildrenExhausted);

    let admitted = asked(&opened, &Family::default(), &task("one")).unwrap();
    let (_, child) = admitted.on(base("one")).unwrap();
    let grandchild = asked(&child, &Family::default(), &task("one")).unwrap_err();
    assert_eq!(grandchild.code, Code::DepthExhausted);
}

#[test]
fn a_child_keeps_what_its_parent_may_not_touch_and_reads_only_if_asked() {
    let opened = parent(&grant());
    let (start, child) = asked(&opened, &Family::default(), &task("one"))
        .map(|admitted| admitted.on(base("one")).unwrap())
        .unwrap();
    let contract = child.resolve().unwrap();
    assert_eq!(child.base_tree, start.base_tree);
    assert_eq!(contract.forbid.entries()[0].as_str(), "app/secret");
    assert_eq!(contract.time_limit.as_secs(), 25);
    let reader = ChildTask {
        read_only: true,
        write: Vec::new(),
        ..task("reader")
    };
    let admitted = asked(&opened, &Family::default(), &reader).unwrap();
    let (_, child) = admitted.on(base("reader")).unwrap();
    assert!(child.resolve().unwrap().audit);
    assert!(child.child.unwrap().package.exercise.write.is_empty());
}

#[test]
fn what_a_child_did_not_use_comes_back_and_what_a_lost_one_had_does_not() {
    let opened = parent(&grant());
    let mut family = Family::default();
    let mut asks = task("one");
    asks.budget.seconds = 90;
    let admitted = asked(&opened, &family, &asks).unwrap();
    let (start, _) = admitted.on(base("one")).unwrap();
    assert!(family.start(start.clone()));
    assert_eq!(family.left(&grant(), 60).budget.seconds, 10);
    let mut lost = family.clone();
    let spent = ChildBudget {
        seconds: 5,
        ..ChildBudget::default()
    };
    assert!(family.end(ended(&start, spent)));
    assert!(!family.end(ended(&start, spent)), "an end counts once");
    assert_eq!(family.left(&grant(), 60).budget.seconds, 95);
    lost.lose();
    assert_eq!(lost.left(&grant(), 60).budget.seconds, 10);
    assert_eq!(lost.left(&grant(), 60).budget.processes, 64);
}
