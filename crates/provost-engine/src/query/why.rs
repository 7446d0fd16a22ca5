//! Why a run was refused, with the lines of its contract file.

use provost_core::document::lines::Lines;
use provost_core::run::State;
use serde::Serialize;

use super::archive::RunFiles;
use super::missing;
use crate::dependencies::{Advice, ProjectFiles};
use crate::why::{Clause, Row, Why, Widening};

/// The file that the contract was read from.
#[derive(Debug, Default)]
pub struct ContractLines {
    pub file: String,
    pub lines: Lines,
}

#[derive(Debug, Serialize)]
pub struct WhyView {
    #[serde(flatten)]
    pub why: Why,
    /// Everything that the contract would have to say; null if that would not suffice.
    pub widening: Option<Vec<Widening>>,
    /// The command that judges the work again under the wider contract, word by word; absent if
    /// there is none, or if a word of it holds characters that a person cannot see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permit_with: Option<Vec<String>>,
    /// The command that helps where no wider contract does; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continue_with: Option<String>,
    /// Whether this user began the run on this machine.
    pub own: bool,
    /// What the sandbox of a failed command lacked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Advice>,
    /// Whether the contract was typed as flags.
    #[serde(skip)]
    pub typed: bool,
}

impl WhyView {
    pub fn of(mut why: Why, source: &ContractLines, typed: bool, own: bool) -> Self {
        let rows = why
            .refusals
            .iter_mut()
            .flat_map(|refusal| &mut refusal.rows);
        for row in rows.chain(&mut why.network) {
            locate(row, source);
        }
        Self {
            widening: why.widening(),
            permit_with: None,
            continue_with: None,
            why,
            own,
            missing: Vec::new(),
            typed,
        }
    }

    /// The same view, with what the commands of the run `state` lacked.
    #[must_use]
    pub fn with_missing(
        mut self,
        state: &State,
        files: &dyn RunFiles,
        project: &ProjectFiles,
    ) -> Self {
        self.missing = missing::of_failure(state, files, project);
        self
    }
}

/// Adds the line in the file to the clause of the contract.
fn locate(row: &mut Row, source: &ContractLines) {
    let Some(clause) = &mut row.contract else {
        return;
    };
    if let Some(line) = source.lines.line(&clause.pointer) {
        let Clause { line: at, file, .. } = clause;
        *at = Some(line);
        *file = Some(source.file.clone());
    }
}
