//! The settings of an analysis.

use serde::{Deserialize, Serialize};

use provost_core::json;
use provost_core::object::sha256;

/// Reports of different settings are not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub profile: Formula,
    /// The fewest lines of a function that is compared with others.
    pub min_loc: u32,
    /// The fewest statements of such a function.
    pub min_stmt: u32,
    /// The fewest lines of a run of statements that is compared with others.
    pub block_min_loc: u32,
    /// The fewest statements of such a run.
    pub block_min_stmt: u32,
    /// The largest cyclomatic complexity of a function that is no finding.
    pub complexity_threshold: u32,
    /// The largest number of other classes that a class may use.
    pub coupling_threshold: u32,
    /// The largest number of unconnected parts that a class may fall into.
    pub cohesion_threshold: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: Formula::Standard,
            min_loc: 10,
            min_stmt: 6,
            block_min_loc: 20,
            block_min_stmt: 8,
            complexity_threshold: 20,
            coupling_threshold: 10,
            cohesion_threshold: 3,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}; it is {least} to {most}")]
pub struct BadSettings {
    pub field: &'static str,
    pub value: u32,
    pub least: u32,
    pub most: u32,
}

/// The smallest run of statements that is compared: shorter ones are everywhere, and finding all of
/// them takes too long.
const LEAST_BLOCK: u32 = 3;

impl Settings {
    /// Whether an analysis with these settings is meaningful and terminates.
    pub fn check(&self) -> Result<(), BadSettings> {
        let fields = [
            ("min_loc", self.min_loc, 1),
            ("min_stmt", self.min_stmt, 1),
            ("block_min_loc", self.block_min_loc, LEAST_BLOCK),
            ("block_min_stmt", self.block_min_stmt, LEAST_BLOCK),
            ("complexity_threshold", self.complexity_threshold, 1),
            ("coupling_threshold", self.coupling_threshold, 1),
            ("cohesion_threshold", self.cohesion_threshold, 1),
        ];
        let most = 10_000;
        for (field, value, least) in fields {
            if !(least..=most).contains(&value) {
                return Err(BadSettings {
                    field,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }

    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        sha256(json::canonical(&value).as_bytes())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    /// By rates, over all languages.
    #[default]
    Standard,
    /// By integers as other tools compute them, over Python alone.
    Compat,
}
