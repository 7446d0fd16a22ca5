use proptest::prelude::*;

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

/// One step of a family: a start, the end of the nth child, or the death of the driver.
#[derive(Debug, Clone)]
enum Move {
    Start(ChildBudget, u32),
    End(prop::sample::Index, u8),
    Kill,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let budget = (0..60u64, 0..40u64, 0..60u64, 0..48u64);
    let budget = budget.prop_map(|(tokens, micro_usd, seconds, processes)| ChildBudget {
        tokens,
        micro_usd,
        seconds,
        processes,
    });
    let step = prop_oneof![
        6 => (budget, 0..3u32).prop_map(|(budget, children)| Move::Start(budget, children)),
        4 => (any::<prop::sample::Index>(), 0..=100u8).prop_map(|(at, part)| Move::End(at, part)),
        1 => Just(Move::Kill),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_family_never_has_more_than_the_grant(moves in moves()) {
        let grant = ChildGrant {
            count: 6,
            depth: Some(2),
            tokens: Some(100),
            micro_usd: Some(80),
            seconds: Some(120),
            processes: Some(96),
            models: None,
        };
        let opened = parent(&grant);
        let whole = grant.budget(60);
        let mut family = Family::default();
        for (number, step) in moves.into_iter().enumerate() {
            match step {
                Move::Start(budget, children) => {
                    let mut task = task(&number.to_string());
                    (task.budget, task.children) = (budget, children);
                    if let Ok(admitted) = asked(&opened, &family, &task) {
                        let (start, child) = admitted.on(base("one")).unwrap();
                        let package = child.child.unwrap().package;
                        let parent = package_of(&opened).unwrap();
                        prop_assert!(package.exercise.excess(&parent.delegate).is_empty());
                        prop_assert!(package.delegate.excess(&parent.delegate).is_empty());
                        prop_assert!(family.start(start));
                    }
                }
                Move::End(at, part) => {
                    let running: Vec<ChildStart> =
                        family.running().map(|it| it.start.clone()).collect();
                    if !running.is_empty() {
                        let start = at.get(&running);
                        let of = |given: u64| given * u64::from(part) / 100;
                        let spent = ChildBudget {
                            tokens: of(start.given.tokens),
                            micro_usd: of(start.given.micro_usd),
                            seconds: of(start.given.seconds),
                            processes: 0,
                        };
                        prop_assert!(family.end(ended(start, spent)));
                    }
                }
                Move::Kill => family.lose(),
            }
            let used = family.used();
            prop_assert!(used.tokens <= whole.tokens, "{used:?}");
            prop_assert!(used.micro_usd <= whole.micro_usd, "{used:?}");
            prop_assert!(used.seconds <= whole.seconds, "{used:?}");
            let held: u64 = family.running().map(|it| it.start.given.processes).sum();
            prop_assert!(held <= whole.processes, "{held}");
            prop_assert!(family.count() <= grant.count);
        }
    }
}
