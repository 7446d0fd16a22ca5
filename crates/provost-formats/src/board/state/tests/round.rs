//! Batches that bring assignments with them.

use super::*;

#[test]
fn a_batch_begins_tasks_by_the_terms_that_come_with_it() {
    let begin = |base, number, scope, dependencies: &[u8]| Request::Apply {
        base,
        deltas: vec![Delta {
            create: Create::Yes,
            ..delta(&format!("b{number}"), number, Status::InProgress)
        }],
        blockers: Vec::new(),
        terms: vec![terms(number, scope, dependencies)],
    };
    let board = after(vec![begin(0, 1, 0, &[])]);
    assert_eq!(board.terms(&task(1)), Some(&terms(1, 0, &[])));
    assert_eq!(board.held_by(&task(1)), terms(1, 0, &[]).lock_scope);
    // What an assignment alone makes is the same.
    let assigned = after(vec![assign(1, 0, &[])]);
    assert_eq!(board.row(&task(1)), assigned.row(&task(1)));
    let again = board.decide(begin(0, 1, 0, &[]), 0).unwrap();
    assert_eq!(again.fact, None);
    for (name, request, want) in [
        ("overlap", begin(1, 2, 0, &[]), Code::LockConflict),
        ("not done", begin(1, 2, 3, &[1]), Code::DependencyNotMet),
        ("stale", begin(0, 2, 3, &[]), Code::ConcurrencyConflict),
    ] {
        assert_eq!(refusal(&board, request), Some(want), "{name}");
    }
    let fact = Board::new(RUN).decide(begin(0, 1, 0, &[]), 0).unwrap().fact;
    let event = fact.unwrap().event(RUN, "t".to_owned());
    assert!(Fact::of(&event).is_ok());
}
