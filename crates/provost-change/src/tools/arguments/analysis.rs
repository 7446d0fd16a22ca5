//! The arguments of an analysis and of the limits that a run is compared with.

use std::collections::BTreeMap;

use crate::request::Evidence;
use provost_core::path::RepoPath;
use provost_lens::structure::Settings;
use provost_lens::structure::gates::Switches;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ArgumentError, wrong};

/// Analyses the structure of the checkout and keeps the run for this session. Needed before a
/// change starts, and again after the last edit.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct AnalysisArguments {
    /// The directory to analyse.
    pub root: String,
    /// Paths whose findings the answer lists.
    #[schemars(length(max = 10_000))]
    pub changed_paths: Option<Vec<String>>,
    /// Instead of `changed_paths`: all tracked files that differ from this commit.
    pub git_diff_ref: Option<String>,
    /// The fewest lines of a duplicated function.
    pub min_loc: Option<u32>,
    /// The fewest statements of a duplicated function.
    pub min_stmt: Option<u32>,
    /// The fewest lines of a duplicated block.
    pub block_min_loc: Option<u32>,
    /// The fewest statements of a duplicated block.
    pub block_min_stmt: Option<u32>,
    /// The complexity of a function beyond which it is a finding.
    pub complexity_threshold: Option<u32>,
    /// The coupling of a class beyond which it is a finding.
    pub coupling_threshold: Option<u32>,
    /// The number of parts of a class from which it is a finding.
    pub cohesion_threshold: Option<u32>,
    /// The file of findings that the repository accepts, relative to the root; by default
    /// provost.baseline.json, if it exists.
    pub baseline_path: Option<String>,
    #[serde(flatten)]
    pub without_effect: WithoutEffect,
}

/// Arguments of the format that have no effect here; the answer names them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct WithoutEffect {
    /// Has no effect: there is one kind of analysis.
    #[serde(skip_serializing_if = "Option::is_none")]
    analysis_mode: Option<String>,
    /// Has no effect: no settings are read from pyproject.toml.
    #[serde(skip_serializing_if = "Option::is_none")]
    respect_pyproject: Option<bool>,
    /// Has no effect: all processors are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    processes: Option<Value>,
    /// Has no effect: the coverage of tests is not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage_xml: Option<String>,
    /// Has no effect: the baseline has no metrics of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics_baseline_path: Option<String>,
    /// Has no effect: facts are always cached by content.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_policy: Option<String>,
    /// Whatever else a caller sends.
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// The same as `analyze_repository`, with what was found in the paths that changed
/// (`changed_paths` or `git_diff_ref`).
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ChangedPathsArguments(pub AnalysisArguments);

impl AnalysisArguments {
    pub fn settings(&self) -> Settings {
        let usual = Settings::default();
        Settings {
            min_loc: self.min_loc.unwrap_or(usual.min_loc),
            min_stmt: self.min_stmt.unwrap_or(usual.min_stmt),
            block_min_loc: self.block_min_loc.unwrap_or(usual.block_min_loc),
            block_min_stmt: self.block_min_stmt.unwrap_or(usual.block_min_stmt),
            complexity_threshold: self
                .complexity_threshold
                .unwrap_or(usual.complexity_threshold),
            coupling_threshold: self.coupling_threshold.unwrap_or(usual.coupling_threshold),
            cohesion_threshold: self.cohesion_threshold.unwrap_or(usual.cohesion_threshold),
            ..usual
        }
    }

    /// The file that lists accepted findings.
    pub fn baseline(&self) -> Result<Option<&str>, ArgumentError> {
        let Some(path) = self.baseline_path.as_deref() else {
            return Ok(None);
        };
        match RepoPath::try_from(path) {
            Ok(_) => Ok(Some(path)),
            Err(error) => wrong(format!(
                "`baseline_path` names no file below the root: {error}"
            )),
        }
    }

    /// The paths whose findings the caller wants.
    pub fn changed(&self) -> Result<Option<Evidence>, ArgumentError> {
        match (&self.changed_paths, &self.git_diff_ref) {
            (Some(_), Some(_)) => wrong("give `changed_paths` or `git_diff_ref`, not both"),
            (Some(files), None) => Ok(Some(Evidence::Files(files.clone()))),
            (None, Some(rev)) => Ok(Some(Evidence::DiffRef(rev.clone()))),
            (None, None) => Ok(None),
        }
    }

    /// The names of arguments that have no effect here.
    pub fn ignored(&self) -> Vec<String> {
        let ignored = serde_json::to_value(&self.without_effect).unwrap_or_default();
        let names = ignored.as_object().into_iter().flat_map(|it| it.keys());
        names.map(|name| name.chars().take(80).collect()).collect()
    }
}

/// Compares an analysis of this session with limits, each switched on separately. A finding is new
/// if no baseline accepts it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateArguments {
    /// The analysis; the newest by default.
    pub run_id: Option<String>,
    /// Fails if there is a new clone.
    pub fail_on_new: Option<bool>,
    /// Fails if there are more clone groups; -1 is off.
    #[schemars(range(min = -1, max = 4_294_967_295_u32))]
    pub fail_threshold: Option<i64>,
    /// Fails if a function is more complex; -1 is off.
    #[schemars(range(min = -1, max = 4_294_967_295_u32))]
    pub fail_complexity: Option<i64>,
    /// Fails if a class uses more others; -1 is off.
    #[schemars(range(min = -1, max = 4_294_967_295_u32))]
    pub fail_coupling: Option<i64>,
    /// Fails if a class has more parts; -1 is off.
    #[schemars(range(min = -1, max = 4_294_967_295_u32))]
    pub fail_cohesion: Option<i64>,
    /// Fails if imports form a cycle.
    pub fail_cycles: Option<bool>,
    /// Fails if there is unused code.
    pub fail_dead_code: Option<bool>,
    /// Fails if the health is lower; -1 is off.
    #[schemars(range(min = -1, max = 4_294_967_295_u32))]
    pub fail_health: Option<i64>,
    /// Fails if there is a new finding other than a clone.
    pub fail_on_new_metrics: Option<bool>,
    /// Not measured: fails when it is switched on.
    pub fail_on_typing_regression: Option<bool>,
    /// Not measured: fails when it is switched on.
    pub fail_on_docstring_regression: Option<bool>,
    /// Not measured: fails when it is switched on.
    pub fail_on_api_break: Option<bool>,
    /// Not measured: fails when it is switched on.
    pub fail_on_untested_hotspots: Option<bool>,
    /// Not measured: fails when it is switched on; -1 is off.
    #[schemars(range(min = -1, max = 4_294_967_295_u32))]
    pub min_typing_coverage: Option<i64>,
    /// Not measured: fails when it is switched on; -1 is off.
    #[schemars(range(min = -1, max = 4_294_967_295_u32))]
    pub min_docstring_coverage: Option<i64>,
    /// Not measured: fails when it is switched on; -1 is off.
    #[schemars(range(min = -1, max = 4_294_967_295_u32))]
    pub coverage_min: Option<i64>,
}

impl GateArguments {
    pub fn switches(&self) -> Switches {
        // The format spells "off" as -1.
        let limit = |value: Option<i64>| value.and_then(|value| u32::try_from(value).ok());
        let on = |flag: Option<bool>| flag.unwrap_or_default();
        let not_measured = [
            (
                "min_typing_coverage",
                limit(self.min_typing_coverage).is_some(),
            ),
            (
                "min_docstring_coverage",
                limit(self.min_docstring_coverage).is_some(),
            ),
            ("coverage_min", limit(self.coverage_min).is_some()),
            (
                "fail_on_typing_regression",
                on(self.fail_on_typing_regression),
            ),
            (
                "fail_on_docstring_regression",
                on(self.fail_on_docstring_regression),
            ),
            ("fail_on_api_break", on(self.fail_on_api_break)),
            (
                "fail_on_untested_hotspots",
                on(self.fail_on_untested_hotspots),
            ),
        ];
        let not_measured = not_measured.iter().filter(|(_, on)| *on);
        Switches {
            fail_on_new: on(self.fail_on_new),
            fail_threshold: limit(self.fail_threshold),
            fail_complexity: limit(self.fail_complexity),
            fail_coupling: limit(self.fail_coupling),
            fail_cohesion: limit(self.fail_cohesion),
            fail_cycles: on(self.fail_cycles),
            fail_dead_code: on(self.fail_dead_code),
            fail_health: limit(self.fail_health),
            fail_on_new_metrics: on(self.fail_on_new_metrics),
            not_measured: not_measured.map(|(name, _)| (*name).to_owned()).collect(),
        }
    }
}
