//! Questions of a running agent, and which answers count.

use super::*;
use crate::question::{
    self, AgentQuestion, AnswerMeans, AnswerRefused, Permission, QuestionAnswer, QuestionKind,
};

const UNTIL: &str = "2026-01-01T01:00:00.000Z";

/// A run whose agent works, after these facts.
fn working(facts: &[Fact]) -> Result<State, crate::run::BadLedger> {
    let step = Step::Agent;
    let all: Vec<Fact> = [opened(), Fact::Started { step }]
        .into_iter()
        .chain(facts.iter().cloned())
        .collect();
    State::fold(&ledger(&all))
}

fn question(content: &str) -> AgentQuestion {
    let run = working(&[]).unwrap().names.run_id;
    AgentQuestion::new(&run, QuestionKind::Command, content, 1_000)
}

fn asked(content: &str) -> Fact {
    Fact::QuestionAsked(question(content))
}

fn answer(content: &str, how: AnswerMeans, allow: bool) -> QuestionAnswer {
    QuestionAnswer {
        digest: question(content).digest,
        allow,
        how,
        by: None,
        until: UNTIL.to_owned(),
        reason: String::new(),
    }
}

fn answered(content: &str, allow: bool) -> Fact {
    Fact::QuestionAnswered(answer(content, AnswerMeans::Terminal, allow))
}

#[test]
fn an_answer_counts_once_and_until_it_expires() {
    let (now, later) = (0, crate::time::parse(UNTIL).unwrap());
    let digest = question("make x").digest;
    let open = working(&[asked("make x")]).unwrap();
    assert_eq!(open.open_questions().count(), 1);
    assert_eq!(open.permission(&digest, now), Some(Permission::Open));
    let yes = working(&[asked("make x"), answered("make x", true)]).unwrap();
    let until = later;
    let given = Some(Permission::Yes { until });
    assert_eq!(yes.permission(&digest, now), given);
    assert_eq!(yes.permission(&digest, later), None, "it is asked again");
    assert_eq!(yes.open_questions().count(), 0);
    let terminal = |allow| answer("make x", AnswerMeans::Terminal, allow);
    let twice = Err(AnswerRefused::Twice("yes"));
    assert_eq!(yes.may_answer(&terminal(false)), twice);
    let other = answer("make y", AnswerMeans::Terminal, true);
    assert_eq!(open.may_answer(&other), Err(AnswerRefused::Unknown));
    let mut timeless = terminal(true);
    timeless.until = "soon".to_owned();
    assert_eq!(open.may_answer(&timeless), Err(AnswerRefused::NoTime));
    let expired = Fact::QuestionExpired { digest };
    let late = working(&[asked("make x"), expired]).unwrap();
    assert_eq!(late.may_answer(&terminal(true)), Err(AnswerRefused::Late));
}

#[test]
fn the_allow_list_answers_only_for_commands_that_it_has() {
    let listed = |content| {
        let open = working(&[asked(content)]).unwrap();
        open.may_answer(&answer(content, AnswerMeans::AllowList, true))
    };
    assert_eq!(listed("cargo test"), Ok(()));
    for other in ["curl example.com", "cargo test; curl example.com", ""] {
        assert_eq!(listed(other), Err(AnswerRefused::NotListed), "{other}");
    }
}

#[test]
fn a_ledger_with_a_question_out_of_place_does_not_fold() {
    let mut forged = question("make x");
    forged.content = "make y".to_owned();
    let long = "x".repeat(question::LONGEST + 1);
    let digest = question("make x").digest;
    for (name, facts) in [
        ("another content", vec![Fact::QuestionAsked(forged)]),
        ("twice", vec![asked("make x"), asked("make x")]),
        ("too long", vec![asked(&long)]),
        ("never asked", vec![answered("make x", true)]),
        (
            "answered twice",
            vec![
                asked("make x"),
                answered("make x", false),
                answered("make x", true),
            ],
        ),
        ("never open", vec![Fact::QuestionExpired { digest }]),
    ] {
        assert!(working(&facts).is_err(), "{name}");
    }
    let before = State::fold(&ledger(&[opened(), asked("make x")]));
    assert!(before.is_err(), "no agent runs");
}

#[test]
fn a_contract_that_asks_is_only_for_an_agent_that_can() {
    use crate::agent::Adapter;
    use crate::contract::document::Shell;

    let plain = |name| Adapter::named(name).and_then(Adapter::plain);
    for (agent, shell, want) in [
        (None, Shell::Never, true),
        (None, Shell::Deny, false),
        (None, Shell::Untrusted, false),
        (None, Shell::OnRequest, false),
        (plain("codex"), Shell::Untrusted, true),
        (plain("codex"), Shell::OnRequest, true),
        (plain("codex"), Shell::Deny, true),
        (plain("gemini"), Shell::Untrusted, false),
        (plain("gemini"), Shell::Deny, false),
        (plain("gemini"), Shell::OnRequest, false),
        (plain("claude"), Shell::Deny, true),
        (plain("claude"), Shell::Untrusted, true),
        (plain("claude"), Shell::OnRequest, true),
    ] {
        let Fact::Opened(mut opened) = opened() else {
            unreachable!("it is the first fact");
        };
        opened.adapted.clone_from(&agent);
        opened.contract.tool_permissions.shell = shell;
        let problems = opened.resolve().err().unwrap_or_default();
        let refused = problems
            .iter()
            .any(|it| it.path == "/tool_permissions/shell");
        assert_eq!(!refused, want, "{agent:?} {shell:?}");
    }
}
