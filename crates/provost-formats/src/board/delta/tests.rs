use proptest::prelude::*;

use super::*;

fn task(number: u8) -> TaskId {
    TaskId::parse(&format!("T-{number}")).unwrap()
}

fn row(number: u8, status: Status, owner: &str) -> Row {
    Row {
        task_id: task(number),
        status,
        owner: owner.to_owned(),
        dependencies: Vec::new(),
        pulse: Pulse::default(),
    }
}

fn delta(id: &str, number: u8, status: Status, owner: &str) -> Delta {
    Delta {
        delta_id: id.to_owned(),
        task_id: task(number),
        status,
        owner: owner.to_owned(),
        reason: "r".to_owned(),
        create: Create::Unsaid,
        pulse: Pulse::default(),
    }
}

fn board(rows: Vec<Row>) -> Ledger {
    Ledger::new(5, rows, []).unwrap()
}

#[test]
fn a_batch_is_applied_in_its_order_or_not_at_all() {
    let start = board(vec![row(1, Status::Todo, "")]);
    let begin = delta("a", 1, Status::InProgress, "x");
    let finish = delta("b", 1, Status::Done, "x");
    let done = start
        .apply(&[begin.clone(), finish.clone()], Reuse::Refuse)
        .unwrap();
    assert_eq!(done.rows(), [row(1, Status::Done, "x")]);
    assert_eq!(done.version(), 6);
    let refused = start.apply(&[finish, begin], Reuse::Refuse).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidTransition);
}

#[test]
fn how_a_row_comes_to_be() {
    let create = |status, create| Delta {
        create,
        ..delta("a", 2, status, "x")
    };
    let there = |create| Delta {
        create,
        ..delta("a", 1, Status::InProgress, "x")
    };
    let cases = [
        ("todo makes it", create(Status::Todo, Create::Unsaid), Ok(2)),
        ("said so", create(Status::Todo, Create::Yes), Ok(2)),
        ("and begins", create(Status::InProgress, Create::Yes), Ok(2)),
        (
            "not as done",
            create(Status::Done, Create::Yes),
            Err(Code::InvalidTransition),
        ),
        (
            "said no",
            create(Status::Todo, Create::No),
            Err(Code::LedgerInconsistent),
        ),
        (
            "unknown",
            create(Status::Blocked, Create::Unsaid),
            Err(Code::LedgerInconsistent),
        ),
        (
            "there already",
            there(Create::Yes),
            Err(Code::ConcurrencyConflict),
        ),
        ("there, and known to be", there(Create::No), Ok(1)),
    ];
    for (name, delta, want) in cases {
        let start = board(vec![row(1, Status::Todo, "")]);
        let got = start.apply(&[delta], Reuse::Refuse);
        let got = got
            .map(|board| board.rows().len())
            .map_err(|error| error.code());
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn an_id_counts_once_and_for_one_change() {
    let start = Ledger::new(5, vec![row(1, Status::Todo, "")], ["old".to_owned()]).unwrap();
    let first = delta("a", 1, Status::InProgress, "x");
    let other = delta("a", 1, Status::InProgress, "y");
    let old = delta("old", 1, Status::Done, "z");
    let after = start
        .apply(&[first.clone(), first.clone(), old], Reuse::Refuse)
        .unwrap();
    assert_eq!(after.rows(), [row(1, Status::InProgress, "x")]);
    let ignored = start
        .apply(&[first.clone(), other.clone()], Reuse::Ignore)
        .unwrap();
    assert_eq!(ignored.rows(), after.rows());
    let refused = start.apply(&[first, other], Reuse::Refuse).unwrap_err();
    assert_eq!(refused.code(), Code::ConcurrencyConflict);
}

#[test]
fn a_heartbeat_leaves_a_task_where_it_is() {
    let start = board(vec![row(1, Status::InProgress, "x")]);
    let mut beat = delta("a", 1, Status::InProgress, "x");
    let silent = start.apply(std::slice::from_ref(&beat), Reuse::Refuse);
    assert_eq!(silent.unwrap_err().code(), Code::InvalidTransition);
    beat.pulse.last_heartbeat_at = Some("2026-03-01T12:00:00Z".to_owned());
    let after = start
        .apply(std::slice::from_ref(&beat), Reuse::Refuse)
        .unwrap();
    assert_eq!(after.rows()[0].pulse, beat.pulse);
    // An open task may get another owner, but not none while it is in progress.
    let named =
        |owner: &str| start.apply(&[delta("o", 1, Status::InProgress, owner)], Reuse::Refuse);
    assert_eq!(named("y").unwrap().rows()[0].owner, "y");
    assert_eq!(named(" ").unwrap_err().code(), Code::LedgerInconsistent);
}

#[test]
fn an_ended_task_keeps_its_owner_and_one_in_progress_has_one() {
    let start = board(vec![row(1, Status::Done, "x"), row(2, Status::Todo, "")]);
    let cases = [
        (delta("a", 1, Status::Done, "x"), Ok(())),
        (
            delta("a", 1, Status::Done, "y"),
            Err(Code::InvalidTransition),
        ),
        (
            delta("a", 2, Status::InProgress, " "),
            Err(Code::LedgerInconsistent),
        ),
    ];
    for (delta, want) in cases {
        let got = start.apply(std::slice::from_ref(&delta), Reuse::Refuse);
        assert_eq!(
            got.map(|_| ()).map_err(|error| error.code()),
            want,
            "{delta:?}"
        );
    }
}

#[test]
fn a_batch_for_another_version_is_refused_unless_all_of_it_is_known() {
    let start = board(vec![row(1, Status::Todo, ""), row(2, Status::Todo, "")]);
    let first = [delta("a", 1, Status::InProgress, "x")];
    let second = [delta("b", 2, Status::InProgress, "y")];
    let after = start.apply_on(5, &first, Reuse::Refuse).unwrap();
    assert_eq!(after.version(), 6);
    for base in [5, 7] {
        let refused = after.apply_on(base, &second, Reuse::Refuse).unwrap_err();
        assert_eq!(refused.code(), Code::ConcurrencyConflict);
    }
    assert!(after.apply_on(6, &second, Reuse::Refuse).is_ok());
    assert_eq!(after.apply_on(5, &first, Reuse::Refuse), Ok(after.clone()));
    assert!(start.apply_on(4, &[], Reuse::Refuse).is_err());
}

fn any_delta() -> impl Strategy<Value = Delta> {
    (0_u8..5, 0_u8..3, 0_usize..6, 0_u8..2, 0_u8..3).prop_map(|(id, number, to, owner, create)| {
        let owner = if owner == 0 { "x" } else { "y" };
        let create = [Create::Yes, Create::No, Create::Unsaid][usize::from(create)];
        Delta {
            create,
            ..delta(&format!("d{id}"), number, Status::ALL[to], owner)
        }
    })
}

proptest! {
    #[test]
    fn replaying_what_was_applied_changes_nothing(
        batch in prop::collection::vec(any_delta(), 0..8)
    ) {
        let start = board(vec![row(0, Status::Todo, "")]);
        if let Ok(after) = start.apply(&batch, Reuse::Ignore) {
            prop_assert_eq!(after.apply(&batch, Reuse::Ignore), Ok(after));
        }
    }

    #[test]
    fn one_batch_is_what_its_deltas_are_one_by_one(
        batch in prop::collection::vec(any_delta(), 0..8)
    ) {
        let start = board(vec![row(0, Status::Todo, "")]);
        let mut single = Ok(start.clone());
        for one in &batch {
            single = single.and_then(|board: Ledger| {
                board.apply(std::slice::from_ref(one), Reuse::Refuse)
            });
        }
        let whole = start.apply(&batch, Reuse::Refuse);
        prop_assert_eq!(whole.is_ok(), single.is_ok());
        if let (Ok(whole), Ok(single)) = (whole, single) {
            prop_assert_eq!(whole.rows(), single.rows());
        }
    }
}
