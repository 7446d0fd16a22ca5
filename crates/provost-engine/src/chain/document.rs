//! The document of a chain.

use provost_core::contract;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::package::Package;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MOST_HANDOFFS;

pub const VERSION: u32 = 1;

/// Several contracts, and which of them start from the results of which others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The version of this format, 1.
    pub schema_version: u32,
    /// The contract that the nodes are parts of; none of them may do more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<contract::document::Document>,
    /// How often work is passed on at most, from a node to one that needs it; 1 to 10.
    #[serde(default = "most")]
    pub max_handoffs: u32,
    pub nodes: Vec<Node>,
}

fn most() -> u32 {
    MOST_HANDOFFS
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name in the chain.
    pub id: String,
    /// The nodes whose results it starts from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The agent of this node, in place of that of the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The contract; the chain sets its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<contract::document::Document>,
    /// The file of the contract, relative to the file of the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_file: Option<String>,
    /// The commands of the parent that it leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Dropped>,
    /// The package of its agent, derived from the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub package: Option<Package>,
}

/// A command of the parent that a node leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// The command, as the parent has it.
    pub cmd: String,
    /// Why it is left out.
    pub reason: String,
}

impl Document {
    /// A chain of one node that does all of `whole`.
    pub fn of_one(whole: contract::document::Document) -> Self {
        let node = Node {
            id: "whole".to_owned(),
            needs: Vec::new(),
            agent: None,
            contract: Some(whole.clone()),
            contract_file: None,
            drops: Vec::new(),
            package: None,
        };
        Self {
            schema_version: VERSION,
            parent: Some(whole),
            max_handoffs: most(),
            nodes: vec![node],
        }
    }

    /// Reads a chain from a parsed document.
    pub fn from_value(value: &serde_json::Value) -> Result<Self, json::ReadError> {
        let document: Self = json::from_value(value)?;
        let wrong = |field: &str, what: String| json::ReadError::Shape {
            field: field.to_owned(),
            what,
        };
        if document.schema_version != VERSION {
            let what = format!("version {} is not known; 1 is", document.schema_version);
            return Err(wrong("schema_version", what));
        }
        for (at, node) in document.nodes.iter().enumerate() {
            if node.contract.is_some() && node.contract_file.is_some() {
                let what = "has a contract and names a file".to_owned();
                return Err(wrong(&format!("nodes.{at}"), what));
            }
        }
        Ok(document)
    }

    /// SHA-256 of the canonical form.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        sha256(json::canonical(&value).as_bytes())
    }
}
