//! Text about approvals: the question of a run, and who answered it.

use provost_core::approval::Approval;
use provost_core::question::{AgentQuestion, AnswerMeans, Needs};
use provost_engine::query::{QuestionView, RunView, short_branch};

use crate::report::go_on;
use crate::show::one_line;

/// The question as text: everything that its digest covers.
pub fn question(question: &QuestionView) -> String {
    let mut text = format!("waiting for approval: {}\n", question.run_id);
    let mut row = |name: &str, value: &str| text += &format!("  {name:8} {}\n", one_line(value));
    for (at, line) in objective_lines(&question.objective).iter().enumerate() {
        row(if at == 0 { "asks" } else { "" }, line);
    }
    row("contract", &question.contract_sha256);
    row("base", &question.base_commit.to_string());
    row(
        "target",
        question.target.as_deref().map_or("none", short_branch),
    );
    row("agent", &question.agent);
    if let Some(reviewer) = &question.reviewer {
        row("reviewer", reviewer);
    }
    for widening in &question.widenings {
        row(
            "widens",
            &format!("{}: {}", widening.path, widening.problem),
        );
    }
    if question.needs == Needs::PersonKey {
        row("needs", "your person key: `provost approve` signs with it");
    }
    row("digest", &question.digest);
    text
}

/// How many lines of an objective are shown.
const MOST_LINES: usize = 200;

/// All lines of an objective, so that nothing is approved unseen.
pub fn objective_lines(objective: &str) -> Vec<String> {
    let lines = objective.trim().lines();
    let mut shown: Vec<String> = lines.clone().take(MOST_LINES).map(one_line).collect();
    let more = lines.count().saturating_sub(MOST_LINES);
    if more > 0 {
        shown.push(format!("and {more} more lines, which --json has"));
    }
    shown
}

/// What an agent asks, in one line.
pub fn asked(question: &AgentQuestion) -> String {
    let AgentQuestion { kind, content, .. } = question;
    let why = match question.reason.as_str() {
        "" => String::new(),
        reason => format!(" ({})", reason.escape_debug()),
    };
    one_line(&format!(
        "{} `{}`?{why}",
        kind.words(),
        content.escape_debug()
    ))
}

/// The commands that answer the question of an agent.
pub fn answer_commands(run_id: &str, question: &AgentQuestion) -> String {
    let digest = &question.digest;
    let digest = digest.get(..SHORT_DIGEST).unwrap_or(digest);
    format!("provost approve {run_id} {digest} # or: provost reject {run_id} {digest}")
}

/// How many digits of a digest are shown.
const SHORT_DIGEST: usize = 12;

/// The question of an agent, and how it is answered.
pub(crate) fn agent_question(run_id: &str, question: &AgentQuestion) -> String {
    let until = &question.until;
    let answer = answer_commands(run_id, question);
    format!(
        "the agent asks: {} (no answer until {until} counts as no)\nnext: {answer}",
        asked(question)
    )
}

/// Who approved which widenings of the contract; empty if no approval was needed.
pub fn given(view: &RunView) -> String {
    let mut granted = String::new();
    for grant in &view.given.granted {
        granted += &format!("  GIVEN    {}\n", one_line(&grant.words()));
    }
    let Some(approval) = &view.approval else {
        return granted;
    };
    let signed = signed(Some(approval));
    let mut text = format!(
        "  approved by {}{signed}\n",
        one_line(&approval.by.to_string())
    );
    for one in view.question.iter().flat_map(|it| &it.widenings) {
        let row = one_line(&format!("{}: {}", one.path, one.problem));
        text += &format!("           {row}\n");
    }
    text + &granted
}

/// How an approval was given, if not by a command alone.
pub fn signed(approval: Option<&Approval>) -> String {
    let Some(approval) = approval.filter(|it| it.how != AnswerMeans::Terminal) else {
        return String::new();
    };
    let key = approval.signature.as_ref();
    let key = key.map_or_else(String::new, |key| format!(" {}", key.fingerprint()));
    format!(" by {}{key}", approval.how)
}

/// The next command for a run that has not ended or is another user's.
pub fn going_on(view: &RunView) -> String {
    let run_id = &view.run_id;
    if !view.own {
        return format!(
            "  foreign  you did not begin this run on this machine; it can only be read\n\
             hint: provost explain RUN_FOREIGN\nnext: provost verify {run_id}\n"
        );
    }
    format!("next: {}\n", go_on(run_id, view.stage))
}
