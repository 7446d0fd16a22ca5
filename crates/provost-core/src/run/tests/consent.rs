//! A contract that widens something waits for approval.

use super::*;
use crate::approval::{Approval, Kind, Person, Rejection, Widening};
use crate::bundle::key::SigningKey;
use crate::person_key::PersonSignature;
use crate::question::{AnswerMeans, AnswerRefused, Needs};

const LATER: &str = "2026-01-01T01:00:00.000Z";

/// A run whose contract asks for a broad path, after these facts.
fn run(facts: &[Fact]) -> Result<State, crate::run::BadLedger> {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!("it is the first fact");
    };
    opened.widenings = vec![Widening {
        kind: Kind::Path,
        path: "/allowed_paths/0".to_owned(),
        problem: "is most of a repository".to_owned(),
    }];
    let all: Vec<Fact> = std::iter::once(Fact::Opened(opened))
        .chain(facts.iter().cloned())
        .collect();
    State::fold(&ledger(&all))
}

fn ann() -> Person {
    Person {
        user: "ann".to_owned(),
        uid: 1000,
        host: "here".to_owned(),
    }
}

fn asked() -> Fact {
    run(&[]).unwrap().ask()
}

fn digest() -> String {
    run(&[]).unwrap().question().unwrap().digest()
}

fn approved(digest: &str, until: &str) -> Fact {
    Fact::Approved(Approval {
        digest: digest.to_owned(),
        by: ann(),
        until: until.to_owned(),
        how: AnswerMeans::Terminal,
        reason: String::new(),
        signature: None,
    })
}

fn rejected(digest: &str) -> Fact {
    Fact::Rejected(Rejection {
        digest: digest.to_owned(),
        by: ann(),
        reason: "too wide".to_owned(),
        how: AnswerMeans::Terminal,
    })
}

#[test]
fn nothing_begins_before_a_person_said_yes() {
    let first = run(&[]).unwrap();
    assert_eq!(first.next(), Next::Ask);
    assert_eq!(first.judge(Gate::Policy).code, Code::ApprovalNeeded);
    assert!(first.unanswered().is_none(), "no question yet");
    let waits = run(&[asked()]).unwrap();
    assert_eq!(waits.next(), Next::Wait);
    assert_eq!(waits.unanswered().unwrap().code, Code::ApprovalNeeded);
    let yes = run(&[asked(), approved(&digest(), LATER)]).unwrap();
    assert_eq!(yes.next(), Next::Judge(Gate::Policy));
    let verdict = yes.judge(Gate::Policy);
    assert!(verdict.allow && verdict.reason.contains("ann@here"));
    assert!(yes.unanswered().is_none());
}

#[test]
fn an_answer_is_to_the_question_that_was_asked_or_it_is_none() {
    let other = "0".repeat(64);
    let cases: [(&str, Vec<Fact>); 8] = [
        ("not asked yet", vec![approved(&digest(), LATER)]),
        ("another question", vec![asked(), approved(&other, LATER)]),
        ("no time", vec![asked(), approved(&digest(), "later")]),
        ("no to another question", vec![asked(), rejected(&other)]),
        (
            "twice",
            vec![
                asked(),
                approved(&digest(), LATER),
                approved(&digest(), LATER),
            ],
        ),
        ("asked twice", vec![asked(), asked()]),
        ("over without a yes", vec![asked(), Fact::Expired {}]),
        (
            "asked about something else",
            vec![Fact::Asked {
                digest: other.clone(),
                reasons: Vec::new(),
            }],
        ),
    ];
    for (name, facts) in cases {
        assert!(run(&facts).is_err(), "{name}");
    }
    assert!(State::fold(&ledger(&[opened(), asked()])).is_err());
}

#[test]
fn an_expired_approval_has_to_be_given_again() {
    let yes = run(&[asked(), approved(&digest(), LATER)]).unwrap();
    let hour = crate::time::parse(LATER).unwrap();
    assert!(!yes.consent_is_over(hour - 1));
    assert!(yes.consent_is_over(hour));
    let over = [asked(), approved(&digest(), LATER), Fact::Expired {}];
    assert_eq!(run(&over).unwrap().next(), Next::Wait);
    let again = [&over[..], &[approved(&digest(), LATER)]].concat();
    assert_eq!(run(&again).unwrap().next(), Next::Judge(Gate::Policy));
    // A step that has started continues.
    let verdict = Verdict::allow("fine");
    let gate = Gate::Policy;
    let passed = Fact::judged(Judgement { gate, verdict });
    let begun = run(&[asked(), approved(&digest(), LATER), passed]).unwrap();
    assert!(!begun.consent_is_over(hour));
}

#[test]
fn a_no_ends_the_run_with_its_reason() {
    let no = run(&[asked(), rejected(&digest())]).unwrap();
    let Next::Finish(verdict) = no.next() else {
        panic!("{:?}", no.next());
    };
    assert_eq!(verdict.code, Code::ApprovalRejected);
    assert_eq!(verdict.reason, "ann@here rejected it: too wide");
}

#[test]
fn no_question_is_asked_about_a_contract_that_breaks_a_rule() {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!("it is the first fact");
    };
    opened.contract.allowed_paths = vec!["../x".to_owned()];
    let state = State::fold(&ledger(&[Fact::Opened(opened)])).unwrap();
    assert_eq!(state.next(), Next::Judge(Gate::Policy));
    assert_eq!(state.judge(Gate::Policy).code, Code::ContractInvalid);
}

#[test]
fn the_files_of_the_user_are_given_by_a_signed_answer_with_a_reason() {
    let key = SigningKey::from_seed(&[7; 32], "ann").unwrap();
    let open = |widenings: Vec<Widening>| {
        let Fact::Opened(mut opened) = opened() else {
            unreachable!("it is the first fact");
        };
        let extension = opened.contract.x_provost.get_or_insert_default();
        extension.full_access = Some("the notes".to_owned());
        opened.widenings = widenings;
        opened.ask.person_keys = vec![key.named().to_string()];
        Fact::Opened(opened)
    };
    let widened = vec![Widening {
        kind: Kind::FullAccess,
        path: crate::approval::FULL_ACCESS.to_owned(),
        problem: "everything".to_owned(),
    }];
    // A first record without the widening gets nowhere.
    let silent = State::fold(&ledger(&[open(Vec::new())])).unwrap();
    assert_eq!(silent.judge(Gate::Policy).code, Code::ApprovalNeeded);
    let first = State::fold(&ledger(&[open(widened.clone())])).unwrap();
    assert_eq!(first.approval_needs(), Needs::PersonKey);
    let digest = first.question().unwrap().digest();
    let mut approval = Approval {
        digest,
        by: self::ann(),
        until: LATER.to_owned(),
        how: AnswerMeans::Terminal,
        reason: "fix them".to_owned(),
        signature: None,
    };
    let weak = AnswerRefused::TooWeak(AnswerMeans::Terminal);
    assert_eq!(first.may_approve(&approval), Err(weak));
    approval.how = AnswerMeans::Case;
    assert!(
        first.may_approve(&approval).is_err(),
        "it is no part of a case"
    );
    approval.how = AnswerMeans::PersonKey;
    let bytes = key.sign(&approval.statement().signed_bytes());
    approval.signature = Some(PersonSignature::of(&key.public(), &bytes));
    assert_eq!(first.may_approve(&approval), Ok(()));
    let reasonless = Approval {
        reason: " ".to_owned(),
        ..approval.clone()
    };
    assert_eq!(first.may_approve(&reasonless), Err(AnswerRefused::NoReason));
    let all = [open(widened), first.ask(), Fact::Approved(approval)];
    let approved = State::fold(&ledger(&all)).unwrap();
    assert!(approved.judge(Gate::Policy).allow);
    assert_eq!(approved.full_access_until(), crate::time::parse(LATER).ok());
}
