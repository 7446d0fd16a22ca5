//! What a person permits while the agent works: paths and permissions beyond the contract.
//!
//! # Invariants
//!
//! - A yes adds exactly what was asked, to this run alone; the contract in the first record stays.
//! - What no contract can give is not asked: control files, forbidden paths, what another part or
//!   the parent of a child decides about.

use crate::contract::document::Document;
use crate::path::RepoPath;
use crate::protect::{self, Protection};
use crate::question::QuestionKind;
use crate::run::State;
use crate::run::judge::QuestionStanding;
use crate::scope;

/// What an agent may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedWidening {
    /// To write a path, with everything below it.
    Path(RepoPath),
    /// To change files that decide what passing means.
    Oracle(RepoPath),
    /// To change files that instruct agents.
    Governing(RepoPath),
    /// To pass with fewer tests than before.
    FewerTests,
}

/// One thing that a person permitted while the agent worked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedWidening<'a> {
    pub kind: QuestionKind,
    pub content: &'a str,
    /// Why the agent asked.
    pub reason: &'a str,
    pub answer: &'a crate::question::QuestionAnswer,
}

impl AskedWidening {
    /// Parses the content of a question; an error says why nothing can be asked with it.
    pub fn parse(kind: QuestionKind, content: &str) -> Result<Self, String> {
        let path = |entry: &str| {
            let parsed = scope::parse_entry(entry);
            parsed.map_err(|error| format!("`{}` {error}", entry.escape_debug()))
        };
        match (kind, content.split_once(' ')) {
            (QuestionKind::Path, _) => path(content).map(Self::Path),
            (QuestionKind::Widening, Some(("oracle", entry))) => path(entry).map(Self::Oracle),
            (QuestionKind::Widening, Some(("governing", entry))) => {
                path(entry).map(Self::Governing)
            }
            (QuestionKind::Widening, None) if content == "fewer-tests" => Ok(Self::FewerTests),
            _ => Err("is neither `oracle PATH`, `governing PATH` nor `fewer-tests`".to_owned()),
        }
    }

    /// The question that asks for it.
    pub fn question(&self) -> (QuestionKind, String) {
        match self {
            Self::Path(path) => (QuestionKind::Path, path.to_string()),
            Self::Oracle(path) => (QuestionKind::Widening, format!("oracle {path}")),
            Self::Governing(path) => (QuestionKind::Widening, format!("governing {path}")),
            Self::FewerTests => (QuestionKind::Widening, "fewer-tests".to_owned()),
        }
    }

    /// Adds it to `document`.
    pub fn add_to(&self, document: &mut Document) {
        if let Self::Path(path) = self {
            document.allowed_paths.push(path.to_string());
            return;
        }
        let extension = document.x_provost.get_or_insert_default();
        let permit = extension.permit.get_or_insert_default();
        match self {
            Self::Path(_) => {}
            Self::Oracle(path) => permit.oracle.push(path.to_string()),
            Self::Governing(path) => permit.governing.push(path.to_string()),
            Self::FewerTests => permit.fewer_tests = true,
        }
    }

    fn path(&self) -> Option<&RepoPath> {
        match self {
            Self::Path(path) | Self::Oracle(path) | Self::Governing(path) => Some(path),
            Self::FewerTests => None,
        }
    }
}

impl State {
    /// Why a person cannot be asked to permit `asked`; `None` if one can.
    pub fn cannot_widen(&self, asked: &AskedWidening) -> Option<String> {
        let opened = &self.opened;
        if !opened.contract.may_ask() {
            return Some("the contract has no `x_provost.may_ask`".to_owned());
        }
        if opened.part.is_some() || opened.child.is_some() {
            let why = "this run is a part of a whole, which decides about its paths";
            return Some(why.to_owned());
        }
        let Ok(contract) = &self.contract else {
            return Some("the contract is not valid".to_owned());
        };
        if let Some(path) = asked.path() {
            if contract.forbid.covers(path) {
                return Some(format!("the contract forbids `{path}`"));
            }
            if protect::classify(path, &opened.protect) == Some(Protection::Control) {
                return Some(format!(
                    "no contract can give `{path}`: it is a control file"
                ));
            }
        }
        let given = match asked {
            AskedWidening::Path(path) => contract.scope.covers(path),
            AskedWidening::Oracle(path) => contract.permit.oracle.covers(path),
            AskedWidening::Governing(path) => contract.permit.governing.covers(path),
            AskedWidening::FewerTests => contract.may_lose_tests,
        };
        if given {
            return Some("the contract gives that already".to_owned());
        }
        let mut wider = self.widened(opened.contract.clone());
        asked.add_to(&mut wider);
        let problem = opened.resolve_document(wider).err()?.into_iter().next()?;
        Some(format!("`{}` {}", problem.path, problem.problem))
    }

    /// What persons permitted while agents of this run worked.
    pub fn granted_widenings(&self) -> impl Iterator<Item = GrantedWidening<'_>> {
        self.questions.values().filter_map(|known| {
            let question = &known.question;
            let asks = matches!(question.kind, QuestionKind::Path | QuestionKind::Widening);
            match &known.standing {
                QuestionStanding::Answered(answer) if answer.allow && asks => {
                    Some(GrantedWidening {
                        kind: question.kind,
                        content: &question.content,
                        reason: &question.reason,
                        answer,
                    })
                }
                _ => None,
            }
        })
    }

    /// Holds the run to its contract with what persons permitted since.
    pub(in crate::run) fn widen(&mut self) {
        if let Ok(contract) = &self.contract {
            let given = contract.document.inputs.artifacts.clone();
            let mut document = contract.document.clone();
            document
                .allowed_paths
                .clone_from(&self.opened.contract.allowed_paths);
            let permit = |document: &Document| {
                let extension = document.x_provost.as_ref();
                extension.and_then(|extension| extension.permit.clone())
            };
            let first = permit(&self.opened.contract);
            if let Some(extension) = &mut document.x_provost {
                extension.permit = first;
            }
            document
                .inputs
                .artifacts
                .clone_from(&self.opened.contract.inputs.artifacts);
            let resolved = self.opened.resolve_document(self.widened(document));
            self.contract = resolved.map(|mut contract| {
                contract.document.inputs.artifacts = given;
                contract
            });
        }
    }

    /// `document` with what persons permitted since.
    pub(in crate::run) fn widened(&self, mut document: Document) -> Document {
        for granted in self.granted_widenings() {
            if let Ok(asked) = AskedWidening::parse(granted.kind, granted.content) {
                asked.add_to(&mut document);
            }
        }
        document
    }
}
