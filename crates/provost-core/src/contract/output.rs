//! The format of the structured result of a role.

use serde_json::Value;

use super::document::Role;
use crate::object::sha256;
use crate::schema::{self, Format};

/// The result that the agent of a contract leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// What it did.
    TaskResult,
    /// What it found in the work of others.
    ReviewReport,
    /// How the commands ended that it ran.
    TestReport,
}

impl Output {
    pub fn of(role: Role) -> Self {
        match role {
            Role::Reviewer => Self::ReviewReport,
            Role::TestRunner | Role::Test => Self::TestReport,
            Role::Pm
            | Role::TechLead
            | Role::Worker
            | Role::Searcher
            | Role::Researcher
            | Role::UiUx
            | Role::Frontend
            | Role::Backend
            | Role::Ai
            | Role::Security
            | Role::Infra
            | Role::Ops => Self::TaskResult,
        }
    }

    fn format(self) -> &'static Format {
        match self {
            Self::TaskResult => &schema::AGENT_TASK_RESULT,
            Self::ReviewReport => &schema::REVIEW_REPORT,
            Self::TestReport => &schema::TEST_REPORT,
        }
    }

    pub fn schema(self) -> Value {
        self.format().schema()
    }

    /// The schema as it is shipped.
    pub fn text(self) -> String {
        self.format().text()
    }

    /// The path of the schema, as a contract names it.
    pub fn place(self) -> String {
        format!("schemas/{}.json", self.format().name)
    }

    /// SHA-256 of the schema as it is shipped.
    pub fn digest(self) -> String {
        sha256(self.text().as_bytes())
    }
}
