use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn request(run: &str, paths: &[&str]) -> ScopeRequest {
    ScopeRequest {
        run: run.to_owned(),
        scope: Scope::parse(paths).unwrap(),
    }
}

fn granted(number: u64) -> ScopeAnswer {
    ScopeAnswer::Granted { number }
}

#[test]
fn numbers_grow_and_asking_again_changes_nothing() {
    let mut leases = ScopeLeases::default();
    assert_eq!(leases.acquire(request("a", &["src"])), granted(1));
    assert_eq!(leases.acquire(request("a", &["src"])), granted(1));
    let queued = ScopeAnswer::Queued { before: 0 };
    assert_eq!(leases.acquire(request("b", &["src/x"])), queued);
    assert_eq!(leases.acquire(request("b", &["src/x"])), queued);
    assert_eq!(leases.acquire(request("c", &["doc"])), granted(2));
    let next = Grant {
        run: "b".to_owned(),
        number: 3,
    };
    assert_eq!(leases.release("a"), [next]);
    assert_eq!(leases.release("a"), []);
    assert_eq!(leases.acquire(request("a", &["web"])), granted(4));
}

#[test]
fn a_request_waits_behind_every_earlier_one_that_it_overlaps() {
    let mut leases = ScopeLeases::default();
    leases.acquire(request("a", &["src/a"]));
    // The whole of `src` waits for `a`; `src/b` is free, and must not delay the whole for ever.
    assert_eq!(
        leases.acquire(request("whole", &["src"])),
        ScopeAnswer::Queued { before: 0 }
    );
    assert_eq!(
        leases.acquire(request("b", &["src/b"])),
        ScopeAnswer::Queued { before: 1 }
    );
    assert_eq!(leases.release("a").len(), 1);
    assert_eq!(leases.number_of("whole"), Some(2));
}

#[test]
fn an_empty_scope_and_an_endless_queue_are_refused() {
    let mut leases = ScopeLeases::default();
    let empty = ScopeRequest {
        run: "a".to_owned(),
        scope: Scope::of(Vec::new()),
    };
    assert_eq!(leases.acquire(empty), ScopeAnswer::Refused);
    for number in 0..MOST {
        leases.acquire(request(&format!("run-{number}"), &["src"]));
    }
    assert_eq!(
        leases.acquire(request("late", &["doc"])),
        ScopeAnswer::Refused
    );
}

#[derive(Debug, Clone)]
enum Message {
    Acquire(u8, Vec<u8>),
    Release(u8),
    /// The workflow continues as a new one: the value is written and read back.
    Continue,
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        4 => (0..12u8, prop::collection::vec(0..5u8, 1..3))
            .prop_map(|(run, at)| Message::Acquire(run, at)),
        4 => (0..12u8).prop_map(Message::Release),
        1 => Just(Message::Continue),
    ]
}

proptest! {
    #[test]
    fn holders_are_disjoint_and_numbers_unique(
        messages in prop::collection::vec(message(), 1..120),
    ) {
        const PATHS: [&str; 5] = ["src", "src/a", "src/a/b", "doc", "web/x"];
        let mut leases = ScopeLeases::default();
        let mut numbers = BTreeSet::new();
        for message in messages {
            match message {
                Message::Acquire(run, at) => {
                    let paths: Vec<&str> = at.iter().map(|at| PATHS[usize::from(*at)]).collect();
                    let before = leases.number_of(&run.to_string());
                    let answer = leases.acquire(request(&run.to_string(), &paths));
                    if let (ScopeAnswer::Granted { number }, None) = (answer, before) {
                        prop_assert!(numbers.insert(number));
                    }
                }
                Message::Release(run) => {
                    for grant in leases.release(&run.to_string()) {
                        prop_assert!(numbers.insert(grant.number));
                        prop_assert_eq!(leases.number_of(&grant.run), Some(grant.number));
                    }
                }
                Message::Continue => {
                    let text = serde_json::to_string(&leases).unwrap();
                    leases = serde_json::from_str(&text).unwrap();
                }
            }
            for (at, one) in leases.held.iter().enumerate() {
                for other in &leases.held[at + 1..] {
                    prop_assert!(!one.scope.overlaps(&other.scope));
                }
            }
        }
        // Once every holder is released, nothing waits.
        loop {
            let Some(run) = leases.holders().next().map(str::to_owned) else {
                break;
            };
            leases.release(&run);
        }
        prop_assert_eq!(leases.waiting().count(), 0);
    }
}
