//! Verdicts about an agent whose model did not work, and what attempts spent.

use super::*;
use crate::agent::event::Usage;
use crate::agent::sum::{End, Sum};
use crate::agent::{Adapted, Adapter};
use crate::net::model_traffic::{ModelTraffic, ModelTrouble};
use crate::run::fact::AgentClaims;

pub(super) fn agent(ending: Ending, result: ResultFile) -> Vec<Fact> {
    let run = AgentRun {
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
    };
    vec![started(Step::Agent), Fact::AgentEnded(run)]
}

fn run(ending: Ending, model: ModelTraffic, claimed: Usage, thread: &str) -> AgentRun {
    let [_, Fact::AgentEnded(run)] = &agent(ending, ResultFile::Absent)[..] else {
        unreachable!("it is made so");
    };
    let sum = Sum {
        usage: claimed,
        thread: Some(thread.to_owned()),
        ..Sum::default()
    };
    AgentRun {
        claims: Some(Box::new(AgentClaims {
            events: stream(),
            sum,
        })),
        model: Some(Box::new(model)),
        ..run.clone()
    }
}

fn used(input: u64, output: u64, micro_usd: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        micro_usd,
        ..Usage::default()
    }
}

fn adapted(adapter: &str, most: Option<u64>) -> Adapted {
    let mut plain = Adapter::named(adapter).and_then(Adapter::plain).unwrap();
    plain.budget.tokens = most;
    plain
}

#[test]
fn the_cause_is_said_and_not_how_the_program_ended() {
    let trouble = |code| ModelTraffic {
        trouble: Some(ModelTrouble {
            code,
            reason: "the model answered 401".to_owned(),
        }),
        ..ModelTraffic::default()
    };
    let spent = ModelTraffic {
        usage: used(8, 2, 0),
        refused: 1,
        ..ModelTraffic::default()
    };
    let unknown = ModelTraffic {
        uncounted: 1,
        ..ModelTraffic::default()
    };
    let cases = [
        (Ending::Exited(0), unknown, Code::TokenLimit),
        (
            Ending::NoModel,
            trouble(Code::ModelUnauthorized),
            Code::ModelUnauthorized,
        ),
        (
            Ending::Exited(1),
            trouble(Code::ModelUnreachable),
            Code::ModelUnreachable,
        ),
        (Ending::NoModel, ModelTraffic::default(), Code::AgentFailed),
        // The budget was used up and it asked for more; or it exited on its own.
        (Ending::Overspent, spent.clone(), Code::TokenLimit),
        (Ending::Exited(1), spent.clone(), Code::TokenLimit),
        (Ending::Exited(0), spent, Code::TokenLimit),
    ];
    for (ending, model, code) in cases {
        let mut state = state(&[]);
        state.opened.adapted = Some(adapted("claude", Some(10)));
        state.agent = Some(run(ending, model, Usage::default(), "t"));
        let verdict = state.judge(Gate::Agent);
        assert_eq!((verdict.allow, verdict.code), (false, code), "{ending:?}");
    }
}

#[test]
fn attempts_are_added_up_and_no_claim_is_added_twice() {
    let counted = |input, output| ModelTraffic {
        usage: used(input, output, 0),
        requests: 1,
        ..ModelTraffic::default()
    };
    // Claude repeats the price of the conversation, Codex its tokens.
    let cases = [
        (
            "claude",
            used(6, 2, 5),
            used(6, 2, 10),
            "t",
            used(12, 4, 10),
        ),
        ("claude", used(6, 2, 5), used(6, 2, 7), "u", used(12, 4, 12)),
        ("codex", used(6, 2, 0), used(12, 4, 0), "t", used(12, 4, 0)),
        ("gemini", used(6, 2, 0), used(6, 2, 0), "t", used(12, 4, 0)),
    ];
    for (adapter, first, second, thread, claimed) in cases {
        let mut state = state(&[]);
        state.opened.adapted = Some(adapted(adapter, None));
        let before = run(Ending::Exited(0), counted(7, 3), first, "t");
        state.past.push(crate::run::fix::EarlierAttempt {
            attempt: 1,
            task_id: "task".to_owned(),
            refusal: Verdict::deny(Code::AcceptanceFailed, "no"),
            gates: BTreeMap::new(),
            agent: Some(before),
            captured: None,
            reviewed: None,
            tests: None,
        });
        state.agent = Some(run(Ending::Exited(0), counted(7, 3), second, thread));
        let spent = state.spent(None).unwrap();
        assert_eq!(spent.claimed, claimed, "{adapter}");
        let want = used(14, 6, claimed.micro_usd);
        assert_eq!(
            (spent.usage, spent.counted, spent.requests),
            (want, true, 2)
        );
        // An agent that is still running counts with its traffic so far.
        state.agent = None;
        let live = state.spent(Some(&counted(1, 1))).unwrap();
        assert_eq!(live.usage.tokens(), 12, "{adapter}");
    }
}

#[test]
fn a_form_of_command_refuses_only_where_the_contract_lists_it() {
    let judged = |listed: &[&str], seen: &[&str]| {
        let mut state = state(&[]);
        state.opened.adapted = Some(adapted("claude", None));
        let mut run = run(
            Ending::Exited(0),
            ModelTraffic::default(),
            Usage::default(),
            "t",
        );
        let sum = &mut run.claims.as_mut().unwrap().sum;
        sum.end = Some(End::Done);
        sum.shapes = seen.iter().map(|shape| ((*shape).to_owned(), 1)).collect();
        state.agent = Some(run);
        let listed = listed.iter().map(|action| (*action).to_owned());
        state.contract.as_mut().unwrap().document.forbidden_actions = listed.collect();
        let verdict = state.judge(Gate::Agent);
        (verdict.allow, verdict.code)
    };
    assert_eq!(judged(&[], &["rm -rf"]), (true, Code::Ok));
    assert_eq!(judged(&["git push"], &["rm -rf"]), (true, Code::Ok));
    assert_eq!(judged(&["rm -rf"], &[]), (true, Code::Ok));
    assert_eq!(
        judged(&["rm  -rf"], &["rm -rf"]),
        (false, Code::ForbiddenAction)
    );
}
