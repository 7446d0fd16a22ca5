//! Writes SARIF 2.1.0 about a run, as code scanners and their viewers read it.
//!
//! A rule is a code of Provost, with its page as help. A result is one refusal. It has a location
//! if it is about a file of the repository.

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::State;
use serde::Serialize;

use crate::why::{Clause, Refusal, Row, Why, Widening};

pub mod document;

use document::{
    ColumnKind, Level, SarifAutomation, SarifInvocation, SarifLocation, SarifLog, SarifResult,
    SarifRule, SarifRun, SarifText, SarifTool,
};

/// The log about a finished run.
pub type RunSarif<'a> = SarifLog<RunProperties<'a>, CodePage, RefusalFacts<'a>>;

#[derive(Debug, Serialize)]
pub struct RunProperties<'a> {
    accepted: bool,
    base_commit: &'a Oid,
    tree: Option<&'a Oid>,
    contract_sha256: &'a str,
}

/// The page of a code.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CodePage {
    full_description: SarifText,
    help: SarifHelp,
    default_configuration: SarifConfiguration,
}

#[derive(Debug, Serialize)]
struct SarifHelp {
    text: &'static str,
    markdown: &'static str,
}

#[derive(Debug, Serialize)]
struct SarifConfiguration {
    level: Level,
}

#[derive(Debug, Serialize)]
pub struct RefusalFacts<'a> {
    kind: ResultKind,
    properties: RefusalProperties<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum ResultKind {
    Fail,
}

#[derive(Debug, Serialize)]
struct RefusalProperties<'a> {
    by: &'a str,
    rule: Option<&'a str>,
    contract: Option<&'a Clause>,
    widening: &'a [Widening],
}

/// The log about a finished run, and the reasons for its verdict.
pub fn render<'a>(state: &'a State, why: &'a Why) -> RunSarif<'a> {
    let mut codes: Vec<Code> = why.refusals.iter().map(|refusal| refusal.code).collect();
    if !why.network.is_empty() {
        codes.push(Code::NetworkRefused);
    }
    codes.sort_unstable();
    codes.dedup();
    let index = |code: Code| codes.iter().position(|one| *one == code);
    let rule = |code: Code| (code, index(code).unwrap_or_default());
    let mut results = Vec::new();
    for Refusal { by, code, rows, .. } in &why.refusals {
        let rows = rows.iter();
        results.extend(rows.map(|row| result(by, row, rule(*code), Level::Error)));
    }
    // No gate refuses a run because of a network request that was refused.
    let code = rule(Code::NetworkRefused);
    let network = why.network.iter();
    results.extend(network.map(|row| result("network", row, code, Level::Note)));
    let opened = &state.opened;
    SarifLog::of(SarifRun {
        tool: SarifTool::new(
            &opened.version,
            codes.iter().map(|code| described(*code)).collect(),
        ),
        automation_details: Some(SarifAutomation {
            id: format!("provost/{}", state.names.run_id),
        }),
        invocations: Some([SarifInvocation {
            execution_successful: true,
            start_time_utc: state.began.clone(),
            end_time_utc: state.latest.clone(),
        }]),
        column_kind: ColumnKind::UnicodeCodePoints,
        results,
        properties: RunProperties {
            accepted: why.verdict.as_ref().is_some_and(|verdict| verdict.allow),
            base_commit: &opened.base_commit,
            tree: state.captured.as_ref().map(|captured| &captured.tree),
            contract_sha256: &opened.contract_sha256,
        },
    })
}

fn described(code: Code) -> SarifRule<CodePage> {
    let page = code.page();
    let summary = || SarifText {
        text: page.lines().nth(2).unwrap_or_default().to_owned(),
    };
    SarifRule {
        id: code.name().to_owned(),
        name: code.name().to_owned(),
        short_description: summary(),
        more: CodePage {
            full_description: summary(),
            help: SarifHelp {
                text: page,
                markdown: page,
            },
            default_configuration: SarifConfiguration {
                level: Level::Error,
            },
        },
    }
}

fn result<'a>(
    by: &'a str,
    row: &'a Row,
    (code, rule_index): (Code, usize),
    level: Level,
) -> SarifResult<RefusalFacts<'a>> {
    let about = row.about.as_deref().unwrap_or_default();
    let text = match about {
        "" => row.problem.clone(),
        about => format!("`{about}` {}", row.problem),
    };
    let about_files = [Code::DiffRefused, Code::SecretInPatch, Code::TreeChanged];
    let is_file = about_files.contains(&code) && !about.is_empty();
    SarifResult {
        rule_id: code.name().to_owned(),
        rule_index,
        level,
        message: SarifText { text },
        locations: is_file.then(|| vec![SarifLocation::file(about)]),
        more: RefusalFacts {
            kind: ResultKind::Fail,
            properties: RefusalProperties {
                by,
                rule: row.rule.as_deref(),
                contract: row.contract.as_ref(),
                widening: &row.widening,
            },
        },
    }
}
