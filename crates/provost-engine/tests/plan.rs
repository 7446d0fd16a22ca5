//! Plans and divisions that fail or crash at any call.
//!
//! A plan is never resumed: the user asks again, under another id. So what a crash leaves must not
//! be mistaken for a plan.

#[cfg(test)]
mod tests {
    use provost_core::agent::provider::FoundLogins;
    use provost_core::code::Code;
    use provost_core::contract::typed::Typed;
    use provost_core::object::sha256;
    use provost_core::run::effect::{InputFile, ReadOnlyRun};
    use provost_core::run::fact::{AgentRun, Ending, Probe, Probed, ResultFile, ReviewRun, Stream};
    use provost_engine::bundle::sealed::SEAL;
    use provost_engine::opening::RequestedAgent;
    use provost_engine::plan::{
        Made, Opened, Planned, PlannerHost, Ports, Request, Task, layout, open, plan,
    };
    use provost_engine::ports::{Control, PortError, Progress, Watch};
    use provost_engine::sim::{Cut, Power, SimBundle, SimClock, SimOrigin, SimSigner};
    use serde_json::{Value, json};

    /// A planner that answers at once.
    struct SimPlannerHost {
        power: Power,
        answer: Value,
        looked: u32,
    }

    impl PlannerHost for SimPlannerHost {
        fn look(
            &mut self,
            order: &ReadOnlyRun,
            _: &[InputFile],
            _: &[u8],
            _: &mut dyn Watch,
        ) -> Result<ReviewRun, PortError> {
            let Self {
                power,
                answer,
                looked,
            } = self;
            let stream = |file: &str| Stream {
                file: file.to_owned(),
                bytes: 0,
                kept: 0,
                sha256: sha256(b""),
                redacted: 0,
                cut: false,
            };
            power.call(|| {
                *looked += 1;
                ReviewRun {
                    tree: order.tree.clone(),
                    ended_at: "2026-01-01T00:00:00Z".to_owned(),
                    altered: Vec::new(),
                    probed: Probed {
                        shape: sha256(b"shape"),
                        cached: false,
                        attempts: vec![Probe {
                            name: "write".to_owned(),
                            walls: vec!["root".to_owned()],
                            tried: "write outside".to_owned(),
                            held: true,
                            errno: Some(2),
                        }],
                    },
                    run: AgentRun {
                        ending: Ending::Exited(0),
                        wall_ms: 1,
                        stdout: stream(&order.stdout),
                        stderr: stream(&order.stderr),
                        result: ResultFile::Text(answer.to_string()),
                        redacted: 0,
                        refused: std::collections::BTreeMap::new(),
                        network: Vec::new(),
                        claims: None,
                        model: None,
                    },
                }
            })
        }
    }

    struct Patient;

    impl Watch for Patient {
        fn tick(&mut self, _: &Progress) -> Control {
            Control::Continue
        }
    }

    /// A task, and the answer of the planner to it.
    fn asked(task: &str) -> (Task, Value) {
        let typed = Typed {
            objective: "Fix it".to_owned(),
            allow: vec!["app/a".to_owned(), "app/b".to_owned()],
            accept: vec!["pytest -q".to_owned()],
            timeout_sec: 1200,
            ..Typed::default()
        };
        let part = |id: &str, needs: &[&str]| {
            json!({ "id": id, "objective": "do it", "allow": [format!("app/{id}")],
                "accept": ["pytest -q"], "drops": [], "net": [], "minutes": 5, "needs": needs, "shares": [], "tools": [] })
        };
        match task {
            "plan" => (
                Task::Plan {
                    request: "fix it".to_owned(),
                },
                json!({ "verdict": "PLAN", "summary": "one file", "objective": "fix it",
                    "allow": ["app/a"], "forbid": [], "accept": ["pytest -q"],
                    "forbidden_actions": [], "permit_oracle": [], "permit_governing": [],
                    "net": [], "minutes": 5 }),
            ),
            _ => (
                Task::Split {
                    contract: Box::new(typed.document("run-00000001", 1_767_225_600_000)),
                },
                json!({ "verdict": "PLAN", "summary": "s",
                    "children": [part("a", &[]), part("b", &["a"])] }),
            ),
        }
    }

    fn opened(task: Task) -> Opened {
        let request = Request {
            plan_id: "plan_00000001".to_owned(),
            task,
            revision: "HEAD".to_owned(),
            agent: RequestedAgent::Typed("planner".to_owned()),
            net: Vec::new(),
            credentials: Vec::new(),
            logins: FoundLogins::default(),
            workspace: None,
            timeout_sec: 60,
            version: "0".to_owned(),
        };
        open(&SimOrigin::default(), &SimClock::default(), request).unwrap()
    }

    /// Makes one plan on a machine with this power; also gives the files on its disk afterwards.
    fn attempt(task: &str, power: &Power) -> (Result<Planned, PortError>, SimBundle, u32) {
        let (task, answer) = asked(task);
        let opened = opened(task);
        let mut host = SimPlannerHost {
            power: power.clone(),
            answer,
            looked: 0,
        };
        let mut bundle = SimBundle::new(power);
        let planned = plan(
            &mut Ports {
                host: &mut host,
                bundle: &mut bundle,
                signer: &SimSigner,
                clock: &SimClock::striding(1_000_000_000),
                watch: &mut Patient,
            },
            &opened,
        );
        (planned, bundle, host.looked)
    }

    /// A sealed plan is whole: every file, unchanged, with the verdict that was given.
    fn check_seal(bundle: &SimBundle, place: &str) -> Option<Value> {
        // The simulated signature is the statement itself.
        let seal = bundle.files.get(SEAL)?;
        let statement: Value = serde_json::from_slice(seal).unwrap();
        let subjects = statement["subject"].as_array().unwrap();
        assert_eq!(subjects.len(), bundle.files.len() - 1, "{place}");
        for subject in subjects {
            let name = subject["name"].as_str().unwrap();
            let digest = sha256(&bundle.files[name]);
            assert_eq!(subject["digest"]["sha256"], digest, "{place}: {name}");
        }
        let verdict: Value = serde_json::from_slice(&bundle.files[layout::VERDICT]).unwrap();
        let sealed = &statement["predicate"]["verdict"];
        assert_eq!(sealed["code"], verdict["code"], "{place}");
        Some(sealed["code"].clone())
    }

    #[test]
    fn what_a_plan_leaves_at_any_call_is_sealed_or_is_no_plan() {
        for task in ["plan", "split"] {
            for cut in [Cut::Before, Cut::After, Cut::Flicker] {
                let calls = sweep(task, cut);
                assert!(calls > 8, "{task}: only {calls} calls were cut");
            }
        }
    }

    fn sweep(task: &str, cut: Cut) -> u32 {
        for call in 1.. {
            let power = Power::cut_at(call, cut);
            let (planned, bundle, looked) = attempt(task, &power);
            let place = format!("{task}, cut {cut:?} call {call}");
            let sealed = check_seal(&bundle, &place);
            assert!(looked <= 1, "{place}: a planner was asked twice");
            if !power.has_struck() {
                let planned = planned.unwrap();
                assert_eq!(planned.verdict.code, Code::Ok, "{:?}", planned.verdict);
                let contract = matches!(planned.made, Some(Made::Contract(_)));
                assert_eq!(contract, task == "plan");
                assert_eq!(sealed, Some(json!("OK")), "{place}");
                return call;
            }
            match planned {
                // A planner that could not be asked is an answer of its own, which is sealed.
                Ok(planned) => {
                    assert!(!planned.verdict.allow && planned.made.is_none(), "{place}");
                    assert_eq!(sealed, Some(json!(planned.verdict.code)), "{place}");
                }
                Err(_) if cut == Cut::After => {}
                Err(_) => assert_eq!(sealed, None, "{place}"),
            }
            let (again, bundle, _) = attempt(task, &Power::steady());
            let again = again.unwrap().verdict;
            assert_eq!(again.code, Code::Ok, "{place}: {again:?}");
            assert!(check_seal(&bundle, &place).is_some(), "{place}");
        }
        unreachable!("a plan has an end")
    }
}
