//! One request to a model and its answer, as a line of the index beside the bodies.

use serde::{Deserialize, Serialize};

/// One request to a model and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// In the order in which the requests were read.
    pub number: u64,
    /// The number of its row in the rows about requests; a call that costs nothing has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<u64>,
    pub method: String,
    /// Host and port.
    pub place: String,
    /// The path with its query.
    pub path: String,
    /// Whether the output limit of the request was lowered before it was forwarded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lowered: bool,
    pub request: KeptBody,
    pub answer: KeptAnswer,
}

/// A body without its secrets, by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptBody {
    pub bytes: u64,
    pub sha256: String,
    /// How many secrets were removed from it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removed: u64,
    /// Why there is no such file, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptAnswer {
    /// 0 if there was none.
    pub status: u16,
    /// The header fields that say something of the content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// Whether all of it arrived.
    pub complete: bool,
    pub body: KeptBody,
}

/// Why a body is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// All bodies of the run together would be more than their limit.
    Limit,
    /// It alone is more than the limit of one body.
    Large,
    /// It could not be written.
    Unwritten,
}

impl LeftOut {
    pub fn words(self) -> &'static str {
        match self {
            Self::Limit => "the bodies of the run have reached their limit",
            Self::Large => "the body is larger than one body may be",
            Self::Unwritten => "the body could not be written",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
