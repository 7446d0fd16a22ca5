use super::*;
use crate::agent::Adapter;
use crate::run::fact::{ReviewRun, Reviewer};

pub(super) fn reviewed_opening() -> Fact {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!("it is the first fact");
    };
    opened.review = Some(Reviewer {
        name: "strict".to_owned(),
        argv: vec!["reviewer".to_owned()],
        typed: true,
        adapted: None,
        credentials: Vec::new(),
    });
    Fact::Opened(opened)
}

pub(super) fn review(
    tree: &str,
    ending: Ending,
    result: ResultFile,
    altered: &[&str],
) -> Vec<Fact> {
    let run = ReviewRun {
        tree: oid(tree),
        ended_at: "2026-01-01T00:00:00Z".to_owned(),
        altered: altered.iter().map(|path| RawPath::new(*path)).collect(),
        probed: probed(true),
        run: AgentRun {
            ending,
            wall_ms: 1,
            stdout: stream(),
            stderr: stream(),
            result,
            redacted: 0,
            refused: std::collections::BTreeMap::new(),
            network: Vec::new(),
            claims: None,
            model: None,
        },
    };
    vec![started(Step::Review), Fact::Reviewed(Box::new(run))]
}

/// One probe of the reviewer's sandbox.
fn probed(held: bool) -> Probed {
    Probed {
        attempts: vec![Probe {
            name: "write outside".to_owned(),
            walls: Vec::new(),
            tried: String::new(),
            held,
            errno: None,
        }],
        ..Probed::default()
    }
}

#[test]
fn a_reviewer_in_a_sandbox_that_was_not_attacked_or_leaks_has_no_word() {
    for (sandboxed, want) in [
        (probed(true), Code::Ok),
        (probed(false), Code::SandboxLeaks),
        (Probed::default(), Code::SandboxLeaks),
    ] {
        let mut facts = review("captured", Ending::Exited(0), says("PASS", &[]), &[]);
        if let Some(Fact::Reviewed(run)) = facts.get_mut(1) {
            run.probed = sandboxed;
        }
        let mut state = folded(&[]);
        let Some(Fact::Reviewed(run)) = facts.pop() else {
            unreachable!("it is the last one")
        };
        let verdict = state.judge_merge_review(&run, &oid("captured"));
        assert_eq!(verdict.code, want);
        state.reviewed = Some(*run);
        assert_eq!(
            state
                .judge_merge_review(state.reviewed.as_ref().unwrap(), &oid("other"))
                .code,
            Code::ReviewInvalid
        );
    }
}

pub(super) fn says(verdict: &str, violations: &[&str]) -> ResultFile {
    let report = json!({ "verdict": verdict, "summary": "I looked.\nTwice.",
        "violations": violations, "findings": [{ "path": "", "problem": "odd" }] });
    ResultFile::Text(report.to_string())
}

fn folded(facts: &[Fact]) -> State {
    let all: Vec<Fact> = std::iter::once(reviewed_opening())
        .chain(facts.iter().cloned())
        .collect();
    State::fold(&ledger(&all)).unwrap()
}

#[test]
fn only_a_whole_report_of_a_good_end_passes() {
    use Code::{ReviewInvalid, ReviewRefused};
    use Ending::Exited;
    use ResultFile::{Absent, Text, Unusable};
    let pass = || says("PASS", &[]);
    let (fail, blocked) = (says("FAIL", &[]), says("BLOCKED", &["x"]));
    let (fifo, prose) = (Unusable("is a fifo".into()), Text("fine".into()));
    let cases = [
        ("passes", "tree", Exited(0), pass(), Code::Ok),
        ("fails", "tree", Exited(0), fail, ReviewRefused),
        ("blocked", "tree", Exited(0), blocked, ReviewRefused),
        (
            "contradicts",
            "tree",
            Exited(0),
            says("PASS", &["x"]),
            ReviewInvalid,
        ),
        ("other tree", "another", Exited(0), pass(), ReviewInvalid),
        ("status", "tree", Exited(1), pass(), ReviewInvalid),
        ("late", "tree", Ending::TimedOut, pass(), ReviewInvalid),
        (
            "not started",
            "tree",
            Ending::NotStarted,
            Absent,
            ReviewInvalid,
        ),
        (
            "cancelled",
            "tree",
            Ending::Cancelled,
            pass(),
            Code::Cancelled,
        ),
        (
            "lease lost",
            "tree",
            Ending::LeaseLost,
            pass(),
            Code::LeaseLost,
        ),
        (
            "overspent",
            "tree",
            Ending::Overspent,
            pass(),
            Code::TokenLimit,
        ),
        ("nothing", "tree", Exited(0), Absent, ReviewInvalid),
        ("a pipe", "tree", Exited(0), fifo, ReviewInvalid),
        ("prose", "tree", Exited(0), prose, ReviewInvalid),
    ];
    for (name, tree, ending, result, want) in cases {
        let mut facts = captured(&["app/a"]);
        facts.extend(review(tree, ending, result, &[]));
        let state = folded(&facts);
        assert_eq!(state.judge(Gate::Review).code, want, "{name}");
        let counts = matches!(want, Code::Ok | Code::ReviewRefused);
        assert_eq!(state.review_report().is_some(), counts, "{name}");
    }
    let mut facts = captured(&["app/a"]);
    facts.extend(review("tree", Exited(0), says("PASS", &[]), &["app/a"]));
    let verdict = folded(&facts).judge(Gate::Review);
    assert_eq!(verdict.code, Code::ReviewInvalid, "it changed the tree");
}

#[test]
fn a_known_program_has_to_report_that_it_finished() {
    let Fact::Opened(mut opened) = reviewed_opening() else {
        unreachable!("it is the first fact");
    };
    if let Some(reviewer) = &mut opened.review {
        reviewer.adapted = Adapter::named("claude").and_then(Adapter::plain);
    }
    let mut facts = vec![Fact::Opened(opened)];
    facts.extend(captured(&["app/a"]));
    facts.extend(review("tree", Ending::Exited(0), says("PASS", &[]), &[]));
    let state = State::fold(&ledger(&facts)).unwrap();
    assert_eq!(state.judge(Gate::Review).code, Code::ReviewInvalid);
}

#[test]
fn a_refusal_lists_what_the_reviewer_holds_against_the_change() {
    let mut facts = captured(&["app/a"]);
    facts.extend(review(
        "tree",
        Ending::Exited(0),
        says("FAIL", &["elsewhere"]),
        &[],
    ));
    let verdict = folded(&facts).judge(Gate::Review);
    assert_eq!(verdict.reason, "the reviewer refuses the change: I looked.");
    let rows = &verdict.details.unwrap()["findings"];
    assert_eq!(rows[0]["problem"], "elsewhere");
    assert_eq!(rows[1], json!({ "path": "in general", "problem": "odd" }));
}
