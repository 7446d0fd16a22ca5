//! The arguments of tools that look something up.

use provost_lens::structure::blast::Depth;
use provost_lens::structure::health::Points;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finish::answer::Focus;

/// What differs between two analyses of this session.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareArguments {
    /// The analysis from before.
    pub run_id_before: String,
    /// The analysis from after; the newest by default.
    pub run_id_after: Option<String>,
    /// Which findings are shown; all by default.
    pub focus: Option<Focus>,
}

/// How far a change of some files reaches.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlastArguments {
    /// The files, relative to the analysed root.
    #[schemars(length(max = 10_000))]
    pub files: Vec<String>,
    /// The analysis; the newest by default.
    pub run_id: Option<String>,
    /// How far imports are followed; direct by default.
    pub depth: Option<Depth>,
    /// Which lists of the answer are wanted; all by default.
    #[schemars(length(max = 10_000))]
    pub include: Option<Vec<String>>,
}

/// The full blast report of a start, by its artifact id or its digest.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlastArtifactArguments {
    /// The directory whose repository is meant.
    pub root: String,
    /// The analysis that the report must be about.
    pub run_id: Option<String>,
    /// The id that the start returned.
    pub blast_artifact_id: Option<String>,
    /// The digest that the start returned.
    pub projection_digest: Option<String>,
}

/// Checks claims about the code against an analysis.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimsArguments {
    /// The text with the claims.
    pub text: String,
    /// The analysis that the text is about; the newest by default.
    pub run_id: Option<String>,
    /// Whether a text without a citation gets a warning; true by default.
    pub require_citations: Option<bool>,
    /// By how much the patch changed the health, in points.
    #[schemars(with = "Option<f64>")]
    pub patch_health_delta: Option<Points>,
}

/// How a receipt is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptFormat {
    Structured,
    Markdown,
}

/// The receipt of an intent of this session: the sealed one of a finished change, else one about
/// how it stands, which says incomplete.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeReceiptArguments {
    /// The intent; or name the analysis that it began from.
    pub intent_id: Option<String>,
    /// The analysis that the newest intent began from.
    pub run_id: Option<String>,
    /// markdown by default.
    pub format: Option<ReceiptFormat>,
    /// Whether the blast radius is shown; true by default.
    pub include_blast_radius: Option<bool>,
    /// Whether the patch contract is shown; true by default.
    pub include_patch_contract: Option<bool>,
}

/// The receipt of a finished change, by its digest or by the run it is about.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ReceiptArguments {
    /// The directory whose repository is meant.
    pub root: String,
    /// The analysis that the receipt is about.
    pub run_id: Option<String>,
    /// The digest that the finish returned.
    pub receipt_digest: Option<String>,
    /// structured by default.
    pub format: Option<ReceiptFormat>,
}

/// The trail of a finished change, by its digest or by the run it is about.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct TrailArguments {
    /// The directory whose repository is meant.
    pub root: String,
    /// The analysis that the trail is about.
    pub run_id: Option<String>,
    /// The digest that the finish returned.
    pub patch_trail_digest: Option<String>,
}

/// Removes the analyses of this session and gives back its intents.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetArguments {
    /// The directory whose repository is meant.
    pub root: Option<String>,
}
