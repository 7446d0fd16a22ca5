//! Text about approvals: the question of a run, and who answered it.

use provost_core::gate::command;
use provost_core::run::State;

use crate::history::{Beside, go_on};
use crate::report::short;
use crate::show::{headline, neutralise, one_line};

/// The question of `state` as text: everything that its digest covers.
pub(crate) fn question(state: &State) -> String {
    let Some(question) = state.question() else {
        return String::new();
    };
    let mut text = format!("waiting for approval: {}\n", question.run_id);
    let mut row = |name: &str, value: &str| text += &format!("  {name:8} {}\n", neutralise(value));
    row("asks", &headline(&state.opened.contract.inputs.spec, 11));
    row("contract", question.contract_sha256);
    row("base", &question.base_commit.to_string());
    row("target", question.target.map_or("none", short));
    row("agent", &command::line(question.agent));
    if let Some(review) = question.review {
        row("reviewer", &command::line(review));
    }
    for widening in question.widenings {
        row(
            "widens",
            &format!("{}: {}", widening.path, widening.problem),
        );
    }
    row("digest", &question.digest());
    text
}

/// Who approved which widenings of the contract; empty if no approval was needed.
pub(crate) fn given(state: &State) -> String {
    let Some(approval) = &state.approval else {
        return String::new();
    };
    let mut text = format!("  approved by {}\n", neutralise(&approval.by.to_string()));
    for one in &state.opened.widenings {
        let row = one_line(&format!("{}: {}", one.path, one.problem));
        text += &format!("           {row}\n");
    }
    text
}

/// The next command for the run `run_id`, which has not ended or is another user's.
pub(crate) fn going_on(run_id: &str, beside: &Beside) -> String {
    if beside.foreign {
        return format!(
            "  foreign  you did not begin this run on this machine; it can only be read\n\
             hint: provost explain RUN_FOREIGN\nnext: provost verify {run_id}\n"
        );
    }
    format!("next: {}\n", go_on(run_id, beside.stage))
}
