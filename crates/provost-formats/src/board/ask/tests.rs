use provost_core::record::{Head, Record};

use super::*;
use crate::board::delta::{Create, Delta};
use crate::board::row::{Pulse, Status, TaskId};

const RUN: &str = "7b0c2f1e-9a4d-4c3b-8f21-5d6e7a8b9c0d";

/// Three steps of one task, by deltas that are built on the version before them.
fn steps() -> Vec<Request> {
    let delta = |(base, status): (u64, Status)| Request::Apply {
        base,
        deltas: vec![Delta {
            delta_id: format!("d{base}"),
            task_id: TaskId::parse("T-1").unwrap(),
            status,
            owner: String::new(),
            reason: "because".to_owned(),
            create: Create::Unsaid,
            pulse: Pulse::default(),
        }],
        blockers: Vec::new(),
        terms: Vec::new(),
    };
    let steps = [(0, Status::Todo), (1, Status::Failed), (2, Status::Failed)];
    steps.into_iter().map(delta).collect()
}

/// A ledger whose power fails at one call.
struct Ledger {
    head: Head,
    records: Vec<Record>,
    calls: usize,
    cut: Option<(usize, Cut)>,
}

/// Whether the write of the call is lost.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    Before,
    After,
}

impl Ledger {
    fn new(cut: Option<(usize, Cut)>) -> Self {
        Self {
            head: Head::genesis(),
            records: Vec::new(),
            calls: 0,
            cut,
        }
    }

    fn append(&mut self, fact: &Fact) -> Result<(), Cut> {
        self.calls += 1;
        let cut = self.cut.filter(|(call, _)| *call == self.calls);
        if !matches!(cut, Some((_, Cut::Before))) {
            let event = fact.event(RUN, "2026-01-31T12:00:00Z".to_owned());
            self.records.push(self.head.append(event));
        }
        cut.map_or(Ok(()), |(_, cut)| Err(cut))
    }

    fn walk(&mut self) -> Result<Board, Cut> {
        for request in steps() {
            let board = Board::fold(RUN, &self.records).unwrap();
            let (verdict, fact) = ask(&board, request, 0);
            assert!(verdict.allow, "{verdict:?}");
            fact.map_or(Ok(()), |fact| self.append(&fact))?;
        }
        Ok(Board::fold(RUN, &self.records).unwrap())
    }
}

#[test]
fn a_board_survives_a_power_cut_at_any_call() {
    let whole = Ledger::new(None).walk().unwrap();
    assert_eq!(whole.version(), 3);
    for cut in [Cut::Before, Cut::After] {
        for call in 1..=3 {
            let mut ledger = Ledger::new(Some((call, cut)));
            assert_eq!(ledger.walk(), Err(cut), "{call}");
            // Repeats every request: those that were granted before change nothing.
            assert_eq!(ledger.walk(), Ok(whole.clone()), "{cut:?} {call}");
        }
    }
}

#[test]
fn a_refused_request_is_no_record() {
    let board = Board::fold(RUN, &[]).unwrap();
    let (verdict, fact) = ask(&board, steps().remove(1), 0);
    assert_eq!(verdict.code, Code::ConcurrencyConflict);
    assert_eq!(fact, None);
}

#[test]
fn records_of_another_run_are_no_board() {
    let mut ledger = Ledger::new(None);
    ledger.walk().unwrap();
    assert!(Board::fold("another", &ledger.records).is_err());
}
