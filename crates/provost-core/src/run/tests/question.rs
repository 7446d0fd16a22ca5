//! Questions of a running agent, and which answers count.

use super::*;
use crate::bundle::key::SigningKey;
use crate::person_key::{AnswerStatement, PersonSignature};
use crate::question::{
    self, AgentQuestion, AnswerMeans, AnswerRefused, Needs, Permission, QuestionAnswer,
    QuestionKind,
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
        signature: None,
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
    let reason = String::new();
    let expired = Fact::QuestionExpired { digest, reason };
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
        (
            "never open",
            vec![Fact::QuestionExpired {
                digest,
                reason: String::new(),
            }],
        ),
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

/// A run that asks as `change` says, whose agent works, after these facts.
fn asking(change: impl Fn(&mut Opened), facts: &[Fact]) -> Result<State, crate::run::BadLedger> {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!("it is the first fact");
    };
    change(&mut opened);
    let first = [Fact::Opened(opened), Fact::Started { step: Step::Agent }];
    let all: Vec<Fact> = first.into_iter().chain(facts.iter().cloned()).collect();
    State::fold(&ledger(&all))
}

fn ann() -> SigningKey {
    SigningKey::from_seed(&[7; 32], "ann").unwrap()
}

fn needs_key(opened: &mut Opened) {
    opened.ask.needs = Needs::PersonKey;
    opened.ask.person_keys = vec![ann().named().to_string()];
}

fn signed(mut answer: QuestionAnswer, key: &SigningKey) -> QuestionAnswer {
    let bytes = answer.statement().signed_bytes();
    answer.how = AnswerMeans::PersonKey;
    answer.signature = Some(PersonSignature::of(&key.public(), &key.sign(&bytes)));
    answer
}

#[test]
fn where_a_person_key_is_needed_no_weaker_yes_counts() {
    let question = AgentQuestion {
        needs: Needs::PersonKey,
        ..question("make x")
    };
    let open = asking(needs_key, &[Fact::QuestionAsked(question)]).unwrap();
    let plain = |how, allow| answer("make x", how, allow);
    for how in [
        AnswerMeans::Terminal,
        AnswerMeans::ServeSession,
        AnswerMeans::Token,
    ] {
        let weak = Err(AnswerRefused::TooWeak(how));
        assert_eq!(open.may_answer(&plain(how, true)), weak);
        assert_eq!(
            open.may_answer(&plain(how, false)),
            Ok(()),
            "a no gives nothing"
        );
    }
    let unsigned = open.may_answer(&plain(AnswerMeans::PersonKey, true));
    assert_eq!(unsigned, Err(AnswerRefused::Unsigned));
    let case = open.may_answer(&plain(AnswerMeans::Case, true));
    assert_eq!(case, Err(AnswerRefused::TooWeak(AnswerMeans::Case)));
    let yes = signed(plain(AnswerMeans::PersonKey, true), &ann());
    assert_eq!(open.may_answer(&yes), Ok(()));
    // The signature of one answer is none of another.
    for altered in [
        QuestionAnswer {
            until: "2027-01-01T00:00:00.000Z".to_owned(),
            ..yes.clone()
        },
        QuestionAnswer {
            reason: "because".to_owned(),
            ..yes.clone()
        },
    ] {
        assert!(matches!(
            open.may_answer(&altered),
            Err(AnswerRefused::Signature(_))
        ));
    }
    let renamed = QuestionAnswer {
        how: AnswerMeans::Terminal,
        ..yes.clone()
    };
    assert_eq!(
        open.may_answer(&renamed),
        Err(AnswerRefused::SignedOtherwise)
    );
    let stranger = SigningKey::from_seed(&[8; 32], "eve").unwrap();
    let eve = signed(plain(AnswerMeans::PersonKey, true), &stranger);
    assert!(matches!(
        open.may_answer(&eve),
        Err(AnswerRefused::Signature(_))
    ));
    // A question that claims to need less does not fold.
    let lesser = asking(needs_key, &[asked("make x")]);
    assert!(lesser.is_err());
    let statement: AnswerStatement<'_> = yes.statement();
    assert!(statement.text().contains(&yes.digest));
}

fn may_ask(opened: &mut Opened) {
    opened.contract.allowed_paths = vec!["src/a.txt".to_owned()];
    let extension = opened.contract.x_provost.get_or_insert_default();
    extension.may_ask = Some(true);
    extension.forbid = vec!["src/secret".to_owned()];
}

fn widening(kind: QuestionKind, content: &str) -> (Fact, String) {
    let run = working(&[]).unwrap().names.run_id;
    let question = AgentQuestion::new(&run, kind, content, 1_000);
    (Fact::QuestionAsked(question.clone()), question.digest)
}

#[test]
fn a_yes_about_a_path_widens_the_contract_for_this_run() {
    let (asked, digest) = widening(QuestionKind::Path, "src/c.txt");
    let path = crate::path::RepoPath::try_from("src/c.txt").unwrap();
    let covers = |state: &State| state.contract.as_ref().unwrap().scope.covers(&path);
    let say = |allow| {
        let answer = QuestionAnswer {
            digest: digest.clone(),
            ..answer("x", AnswerMeans::Terminal, allow)
        };
        asking(may_ask, &[asked.clone(), Fact::QuestionAnswered(answer)]).unwrap()
    };
    let (yes, no) = (say(true), say(false));
    assert!(covers(&yes) && !covers(&no));
    assert_eq!(yes.granted_widenings().count(), 1);
    assert_eq!(yes.opened.contract.allowed_paths, ["src/a.txt"]);
    // It holds to the end of the run, also after the time of the answer.
    let later = crate::time::parse(UNTIL).unwrap() + 1;
    assert!(matches!(
        yes.permission(&digest, later),
        Some(Permission::Yes { .. })
    ));
    assert_eq!(no.permission(&digest, later), None);
    let (asked, fewer) = widening(QuestionKind::Widening, "fewer-tests");
    let answer = QuestionAnswer {
        digest: fewer,
        ..answer("x", AnswerMeans::Terminal, true)
    };
    let fewer = asking(may_ask, &[asked, Fact::QuestionAnswered(answer)]).unwrap();
    assert!(fewer.contract.unwrap().may_lose_tests);
}

#[test]
fn what_no_person_can_give_is_not_asked() {
    let state = asking(may_ask, &[]).unwrap();
    let path = |content: &str| state.may_ask(QuestionKind::Path, content);
    assert_eq!(path("src/c.txt"), Ok(()));
    for content in [
        "src/a.txt",
        "src/secret/x",
        ".git/config",
        "../x",
        "/etc",
        "*",
        "src/c.txt/",
        "",
    ] {
        assert!(path(content).is_err(), "{content}");
    }
    let widening = |content: &str| state.may_ask(QuestionKind::Widening, content);
    assert_eq!(widening("oracle Cargo.lock"), Ok(()));
    for content in ["oracle", "everything", "symlink x", "oracle .git"] {
        assert!(widening(content).is_err(), "{content}");
    }
    let without = working(&[]).unwrap();
    assert!(without.may_ask(QuestionKind::Path, "src/c.txt").is_err());
    let part = asking(
        |opened| {
            may_ask(opened);
            let (chain, node) = ("case_1".to_owned(), "a".to_owned());
            opened.part = Some(crate::run::fact::Part { chain, node });
        },
        &[],
    );
    assert!(
        part.unwrap()
            .may_ask(QuestionKind::Path, "src/c.txt")
            .is_err()
    );
}
