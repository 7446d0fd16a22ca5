//! Asks a board in a simulated machine, whose power may fail at any call.

#[cfg(test)]
mod tests {
    use provost_core::board::decide::Request;
    use provost_core::board::delta::{Create, Delta};
    use provost_core::board::row::{Pulse, Status, TaskId};
    use provost_core::board::state::Board;
    use provost_core::code::Code;
    use provost_core::verdict::Verdict;
    use provost_engine::board;
    use provost_engine::ports::{Ledger as _, PortError};
    use provost_engine::sim::{Cut, Power, SimClock, SimLedger};

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

    fn ask(ledger: &mut SimLedger, request: &Request) -> Result<Verdict, PortError> {
        board::ask(
            ledger,
            &SimClock::default(),
            RUN,
            0,
            |_| Ok(request.clone()),
        )
    }

    fn walk(ledger: &mut SimLedger) -> Result<Board, PortError> {
        for request in steps() {
            let verdict = ask(ledger, &request)?;
            assert!(verdict.allow, "{verdict:?}");
        }
        board::fold(RUN, ledger)
    }

    #[test]
    fn a_board_survives_a_power_cut_at_any_call() {
        let whole = walk(&mut SimLedger::new(&Power::steady())).unwrap();
        assert_eq!(whole.version(), 3);
        for cut in [Cut::Before, Cut::After] {
            for call in 1..=3 {
                let power = Power::cut_at(call, cut);
                let mut ledger = SimLedger::new(&power);
                assert!(walk(&mut ledger).is_err(), "{cut:?} {call}");
                power.restore();
                // Repeats every request: those that were granted before change nothing.
                assert_eq!(walk(&mut ledger).unwrap(), whole, "{cut:?} {call}");
            }
        }
    }

    #[test]
    fn a_refused_request_is_no_record() {
        let mut ledger = SimLedger::new(&Power::steady());
        let verdict = ask(&mut ledger, &steps()[1]).unwrap();
        assert_eq!(verdict.code, Code::ConcurrencyConflict);
        let refuse = |_: &Board| Err(Verdict::deny(Code::SchemaInvalid, "no"));
        let verdict = board::ask(&mut ledger, &SimClock::default(), RUN, 0, refuse).unwrap();
        assert_eq!(verdict.code, Code::SchemaInvalid);
        assert!(ledger.records().is_empty());
    }

    #[test]
    fn records_of_another_run_are_no_board() {
        let mut ledger = SimLedger::new(&Power::steady());
        walk(&mut ledger).unwrap();
        let error = board::fold("another", &ledger).unwrap_err();
        assert_eq!(error.code, Code::EvidenceAltered);
    }
}
