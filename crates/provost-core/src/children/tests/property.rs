use proptest::prelude::*;

use super::*;
use crate::package::Action;
use crate::path::RepoPath;

/// `cargo xtask soak children` asks for more.
#[expect(
    clippy::disallowed_methods,
    reason = "a test, not a rule, reads how long it may take"
)]
fn rounds() -> u32 {
    let asked = std::env::var("PROVOST_TEST_FAMILIES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1_000)
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
    #![proptest_config(ProptestConfig::with_cases(rounds()))]

    #[test]
    fn a_family_never_has_more_than_the_grant(moves in moves()) {
        let grant = ChildGrant {
            count: 6,
            depth: Some(2),
            tokens: Some(100),
            micro_usd: Some(80),
            seconds: Some(120),
            processes: Some(96),
            ..ChildGrant::default()
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

    #[test]
    fn a_child_has_nothing_that_its_parent_may_not_delegate(
        granted in paths(), asked in paths(), net in places(), wanted in places(),
        kept in tools(), named in tools(), models in (any::<bool>(), any::<bool>()),
        numbers in (0..200u64, 0..200u64, 0..200u64), read_only in any::<bool>(),
        children in 0..3u32,
    ) {
        let grant = ChildGrant {
            count: 3,
            depth: Some(2),
            tokens: Some(100),
            seconds: Some(100),
            processes: Some(100),
            models: models.0.then(|| vec!["m-2".to_owned()]),
            messages: Some(kept.clone()),
            ..ChildGrant::default()
        };
        let mut opened = parent(&grant);
        opened.contract.allowed_paths.clone_from(&granted);
        opened.contract.x_provost.get_or_insert_default().net = net.clone();
        let asks = ChildTask {
            write: if read_only { Vec::new() } else { asked.clone() },
            net: wanted.clone(),
            model: models.1.then(|| "m-2".to_owned()),
            messages: named.clone(),
            budget: ChildBudget {
                tokens: numbers.0,
                seconds: numbers.1,
                processes: numbers.2,
                micro_usd: 0,
            },
            read_only,
            children,
            ..task("one")
        };
        let Ok(admitted) = asked_of(&opened, &asks) else { return Ok(()) };
        let own = package_of(&opened).unwrap();
        let (start, child) = admitted.on(base("one")).unwrap();
        let package = child.child.clone().unwrap().package;
        for authority in [&package.exercise, &package.delegate] {
            prop_assert_eq!(authority.excess(&own.delegate), Vec::<String>::new());
        }
        // The same, action by action, and by the contract that its sandbox is made from.
        for path in PATHS {
            let action = Action::Write(RepoPath::try_from(path).unwrap());
            let may = package.exercise.permits(&action);
            prop_assert!(!may || own.delegate.permits(&action), "{}", path);
        }
        let contract = child.resolve().unwrap();
        prop_assert_eq!(contract.audit, read_only);
        for path in contract.scope.entries() {
            let action = Action::Write(path.clone());
            prop_assert!(read_only || own.delegate.permits(&action), "{}", path);
        }
        for place in &contract.net {
            prop_assert!(net.contains(&place.to_string()), "{}", place);
        }
        prop_assert!(contract.time_limit.as_secs() <= 100);
        prop_assert!(contract.limits.processes <= 100);
        prop_assert!(start.messages.iter().all(|tool| kept.contains(tool)));
        let extension = child.contract.x_provost.unwrap();
        let nested = extension.children.unwrap();
        prop_assert!(nested.count < grant.count && nested.levels() < grant.levels());
        prop_assert!(extension.forbid.contains(&"app/secret".to_owned()));
    }
}

const PATHS: [&str; 6] = ["app", "app/part", "app/part/deep", "lib", "lib/x", "docs"];

fn asked_of(opened: &Opened, asks: &ChildTask) -> Result<Admitted, Verdict> {
    asked(opened, &Family::default(), asks)
}

fn some<T: Clone + std::fmt::Debug + 'static>(all: Vec<T>) -> impl Strategy<Value = Vec<T>> {
    let most = all.len();
    prop::sample::subsequence(all, 0..=most)
}

fn paths() -> impl Strategy<Value = Vec<String>> {
    let all = PATHS.map(str::to_owned).to_vec();
    some(all).prop_filter("a scope names something", |list| !list.is_empty())
}

fn places() -> impl Strategy<Value = Vec<String>> {
    some(vec!["a.example:443".to_owned(), "b.example:80".to_owned()])
}

fn tools() -> impl Strategy<Value = Vec<MessageTool>> {
    some(MessageTool::ALL.to_vec())
}
