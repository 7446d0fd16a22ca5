use proptest::prelude::*;
use serde_json::{Value, json};

use provost_core::change::{Change, EXACT, Movement, Origin};
use provost_core::contract::document::Permissions;
use provost_core::contract::resolve;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::path::RawPath;
use provost_core::run::Step;
use provost_core::run::fact::{Ending, Judgement};

use super::*;
use crate::tests::sample_runs::{any_changes, edit, ledger, link, opened, refused, typed};

/// The widening of each row, as `pointer +entry`.
fn openings(why: &Why) -> Vec<String> {
    let rows = why.refusals.iter().flat_map(|refusal| &refusal.rows);
    let words = |one: &Widening| match &one.edit {
        Edit::Add(entry) => format!("{} +{entry}", one.pointer),
        Edit::Remove(entry) => format!("{} -{entry}", one.pointer),
        Edit::Set(value) => format!("{} ={value}", one.pointer),
    };
    rows.map(|row| {
        let list: Vec<String> = row.widening.iter().map(words).collect();
        list.join(" ")
    })
    .collect()
}

#[test]
fn every_rule_of_the_diff_gate_names_what_opens_it() {
    let binary = Change {
        binary: true,
        ..edit("app/logo")
    };
    let moved = Change {
        origin: Some(Origin {
            path: RawPath::new("old/a"),
            how: Movement::Rename,
            likeness: EXACT,
        }),
        ..edit("app/a")
    };
    let permit = |kind: &str| format!("/x_provost/permit/{kind}");
    let add = |kind: &str, path: &str| format!("{} +{path}", permit(kind));
    let link_added = || add("symlink", "app/l");
    let scope = || "/allowed_paths".to_owned();
    let forbid = |at: usize| format!("/x_provost/forbid/{at}");
    let text = |text: &str| text.to_owned();
    let nothing = String::new;
    let cases: [(Change, String, Vec<String>); 13] = [
        (
            edit("docs/a"),
            scope(),
            vec![text("/allowed_paths +docs/a")],
        ),
        (
            edit("app/frozen/a"),
            forbid(0),
            vec![text("/x_provost/forbid -app/frozen")],
        ),
        (
            edit("no/b"),
            forbid(1),
            vec![text("/x_provost/forbid -no /allowed_paths +no/b")],
        ),
        (
            edit("app/pytest.ini"),
            permit("oracle"),
            vec![add("oracle", "app/pytest.ini")],
        ),
        (
            edit("app/CLAUDE.md"),
            permit("governing"),
            vec![add("governing", "app/CLAUDE.md")],
        ),
        (binary, permit("binary"), vec![add("binary", "app/logo")]),
        (link("app/l", "a"), permit("symlink"), vec![link_added()]),
        (
            link("app/l", "../docs"),
            permit("symlink"),
            vec![link_added(), link_added()],
        ),
        (
            link("app/l", "/etc"),
            permit("symlink"),
            vec![link_added(), nothing()],
        ),
        (moved, scope(), vec![text("/allowed_paths +old/a")]),
        (
            edit("web/[id].tsx"),
            scope(),
            vec![text("/allowed_paths +web")],
        ),
        (edit("app/.env"), nothing(), vec![nothing()]),
        (edit("[id].tsx"), scope(), vec![nothing()]),
    ];
    for (change, pointer, want) in cases {
        opens(&change, &pointer, &want);
    }
}

/// `change` is refused by the place `pointer` of a contract, and `want` is the widening of each
/// row.
fn opens(change: &Change, pointer: &str, want: &[String]) {
    let typed = typed(&["app"], &["app/frozen", "no"]);
    let why = Why::of(&refused(typed, std::slice::from_ref(change))).unwrap();
    assert_eq!(openings(&why), want, "{change:?}");
    let clause = why.refusals[0].rows[0].contract.as_ref();
    let found = clause.map_or("", |clause| clause.pointer.as_str());
    assert_eq!(found, pointer, "{change:?}");
    for row in &why.refusals[0].rows {
        assert!(!row.widening.is_empty() || row.note.is_some(), "{row:?}");
    }
}

proptest! {
    /// The widening permits the run, and no part of it can be left out.
    #[test]
    fn the_widening_is_enough_and_the_least(
        changes in any_changes(),
        allow in "(a|b|ab)(/(a|b))?",
        forbid in prop::option::of("(a|b|ab)(/(a|b))?"),
    ) {
        let forbid: Vec<&str> = forbid.as_deref().into_iter().collect();
        let records = refused(typed(&[&allow], &forbid), &changes);
        let why = Why::of(&records).unwrap();
        let state = State::fold(&records).unwrap();
        let Some(widening) = why.widening().filter(|_| !why.refusals.is_empty()) else {
            return Ok(());
        };
        let passes = |widening: &[Widening]| {
            let document = widened(&state.opened.contract, widening).unwrap();
            let policy = CommandPolicy::shipped().unwrap();
            let contract = resolve(document, &policy, Trust::TypedByPerson).unwrap();
            state.judge_changes(&contract, &changes, &[]).allow
        };
        prop_assert!(passes(&widening), "{widening:?}");
        for at in 0..widening.len() {
            let mut less = widening.clone();
            less.remove(at);
            prop_assert!(!passes(&less), "{widening:?} without {at}");
        }
    }
}

#[test]
fn a_limit_is_named_with_the_value_that_comes_next() {
    let limits = [
        (Ending::TimedOut, "/timeout_retry/timeout_sec", Some(120)),
        (
            Ending::MemoryLimit,
            "/x_provost/limits/memory_bytes",
            Some(16 << 30),
        ),
        (
            Ending::ProcessLimit,
            "/x_provost/limits/processes",
            Some(32),
        ),
        (Ending::InodeLimit, "/x_provost/limits/inodes", None),
    ];
    for (ending, pointer, want) in limits {
        let mut typed = typed(&["app"], &[]);
        typed.limits.processes = Some(16);
        typed.limits.inodes = Some(50_000_000);
        let state = State::fold(&ledger(&[opened(typed)])).unwrap();
        let row = limit::of(&state, ending).unwrap();
        assert_eq!(row.contract.unwrap().pointer, pointer);
        let set = row.widening.first().map(|one| one.edit.clone());
        assert_eq!(
            set,
            want.map(|value: u64| Edit::Set(json!(value))),
            "{pointer}"
        );
    }
}

#[test]
fn fewer_tests_need_one_word_and_a_failed_command_needs_to_pass() {
    let reported = |code, problem: &str| {
        let row = json!({ "path": "my-test", "name": "accept-1", "problem": problem, "log": "l" });
        let verdict = Verdict::deny(code, problem).with(json!({ "findings": [row] }));
        let gate = Gate::Acceptance;
        let facts = [
            opened(typed(&["app"], &[])),
            Fact::judged(Judgement { gate, verdict }),
        ];
        Why::of(&ledger(&facts)).unwrap()
    };
    let fewer = reported(Code::TestsFewer, "ran 1 test; 2 ran before");
    assert_eq!(openings(&fewer), ["/x_provost/permit/fewer_tests =true"]);
    let strict = "does not say that it ran a test, and `strict_acceptance` asks for proof";
    let strict = reported(Code::TestsFewer, strict);
    let want = ["/runtime_options/strict_acceptance =false"];
    assert_eq!(openings(&strict), want);
    let note = strict.refusals[0].rows[0].note.as_deref();
    assert!(note.is_some_and(|note| note.contains("runner")), "{note:?}");
    let failed = reported(Code::AcceptanceFailed, "failed with status 1");
    assert_eq!(openings(&failed), [""]);
    let row = &failed.refusals[0].rows[0];
    let clause = row.contract.as_ref().unwrap();
    assert_eq!(clause.pointer, "/acceptance_tests/0");
    assert_eq!(clause.value["cmd"], "my-test");
    assert_eq!(failed.widening(), None);
}

#[test]
fn a_step_that_failed_differs_from_a_run_that_is_active() {
    let holders = json!({ "holders": [{ "run_id": "run_2", "paths": ["app"] }] });
    let verdict = Verdict::deny(Code::LeaseHeld, "taken").with(holders);
    let step = Step::Lease;
    let facts = [
        opened(typed(&["app"], &[])),
        Fact::Started { step },
        Fact::Failed { step, verdict },
    ];
    let why = Why::of(&ledger(&facts)).unwrap();
    assert_eq!(why.refusals[0].by, "step lease");
    assert_eq!(why.refusals[0].rows[0].about.as_deref(), Some("run_2"));
    assert_eq!(why.verdict, None);
    let nothing = Why::of(&ledger(&facts[..1])).unwrap();
    assert_eq!(nothing.refusals, []);
}

#[test]
fn what_is_there_is_kept_when_a_contract_is_widened() {
    let mut typed = typed(&["app"], &["app/x"]);
    typed.permit = Permissions {
        oracle: vec!["app/tox.ini".to_owned()],
        ..Permissions::default()
    };
    let document = typed.document("run_00000001", 0);
    let changes = [
        Widening::add("/x_provost/permit/oracle", "app/pytest.ini"),
        Widening::add("/x_provost/permit/binary", "app/b"),
        Widening::remove("/x_provost/forbid", "app/x"),
        Widening::set("/timeout_retry/timeout_sec", json!(7)),
    ];
    let wide = serde_json::to_value(widened(&document, &changes).unwrap()).unwrap();
    let at = |pointer: &str| wide.pointer(pointer).cloned().unwrap_or(Value::Null);
    assert_eq!(
        at("/x_provost/permit/oracle"),
        json!(["app/tox.ini", "app/pytest.ini"])
    );
    assert_eq!(at("/x_provost/permit/binary"), json!(["app/b"]));
    assert_eq!(at("/x_provost/forbid"), Value::Null);
    assert_eq!(at("/timeout_retry/timeout_sec"), json!(7));
}
