//! `provost explain CODE`: the page behind a code.

use clap::Args;
use provost_core::code::Code;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};

/// Every field of a contract, with examples.
const CONTRACT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/contract.md"
));

/// What a box can reach, and how it is granted more.
const NETWORK: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/network.md"
));

/// Say what a code means and what to do, how a contract is written, or how the network is granted.
#[derive(Args)]
pub(super) struct Explain {
    /// The code, `contract` for every field of a contract file, or `network`; without one, all
    /// codes.
    #[arg(value_name = "CODE|contract|network")]
    code: Option<String>,
}

pub(super) fn run(explain: &Explain) -> Outcome {
    let Some(name) = &explain.code else {
        return Ok(list());
    };
    if name == "contract" {
        return Ok(Answer::data(json!({ "page": CONTRACT }), CONTRACT));
    }
    if name == "network" {
        return Ok(Answer::data(json!({ "page": NETWORK }), NETWORK));
    }
    let code = Code::parse(name).ok_or_else(|| {
        Failure::new(Code::NotFound, format!("there is no code `{name}`"))
            .hint("`provost explain` lists all codes")
    })?;
    let json = json!({ "code": code, "exit": u8::from(code.exit()), "page": code.page() });
    Ok(Answer::data(json, code.page()))
}

fn list() -> Answer {
    let summary = |code: Code| code.page().lines().nth(2).unwrap_or_default();
    let width = Code::ALL
        .iter()
        .map(|code| code.name().len())
        .max()
        .unwrap_or_default();
    let row = |code: &Code| {
        format!(
            "{:width$}  {}  {}\n",
            code.name(),
            u8::from(code.exit()),
            summary(*code)
        )
    };
    let entry = |code: &Code| json!({ "code": code, "exit": u8::from(code.exit()), "summary": summary(*code) });
    let text: String = Code::ALL.iter().map(row).collect();
    Answer::data(Code::ALL.iter().map(entry).collect(), text)
}
