//! Writes the report about a chain, for programs.

use provost_core::exit::Exit;
use provost_core::verdict::Verdict;
use serde_json::{Value, json};

use super::{Chain, Standing, State};

const VERSION: u32 = 1;

pub fn compose(id: &str, chain: &Chain, state: &State) -> Value {
    let names = |places: &[usize]| -> Vec<&str> {
        let name = |at: &usize| chain.nodes[*at].id.as_str();
        places.iter().map(name).collect()
    };
    let rows: Vec<Value> = chain
        .order
        .iter()
        .map(|at| {
            let node = &chain.nodes[*at];
            let mut row = json!({
                "id": node.id,
                "needs": names(&node.needs),
                "task_id": node.contract.document.task_id,
            });
            let facts = standing(state.nodes.get(&node.id));
            if let (Value::Object(row), Value::Object(facts)) = (&mut row, facts) {
                row.extend(facts);
            }
            row
        })
        .collect();
    let mut report = json!({
        "schema_version": VERSION,
        "chain_id": id,
        "chain_sha256": state.chain_sha256,
        "base_commit": state.base_commit,
        "began": state.began,
        "verdict": state.finished,
        "nodes": rows,
    });
    if let Some(tested) = &state.tested {
        report["together"] = json!(tested);
    }
    report
}

/// The result of a node or a chain, in one word.
pub fn word(verdict: &Verdict) -> String {
    match verdict.exit() {
        Exit::Yes => "accepted".to_owned(),
        Exit::NotNow => format!("not yet[{}]", verdict.code),
        _ => format!("refused[{}]", verdict.code),
    }
}

fn standing(standing: Option<&Standing>) -> Value {
    match standing {
        None => json!({ "status": "waiting" }),
        Some(Standing::Running { run_id } | Standing::Left { run_id }) => {
            json!({ "status": "running", "run_id": run_id })
        }
        Some(Standing::NotRun(verdict)) => json!({ "status": "not_run", "verdict": verdict }),
        Some(Standing::Ended(end)) => json!({
            "status": match end.accepted() {
                Some(_) => "accepted",
                None if end.waits() => "waiting",
                None => "refused",
            },
            "run_id": end.run_id,
            "verdict": end.verdict,
            "commit": end.commit,
            "tree": end.tree,
            "ledger_head": end.head,
        }),
    }
}
