//! Manages the analyses of a session: which one a name means, and which ones are removed.
//!
//! The id of a run follows from the content of the whole tree, the settings and the analyser. An
//! edit of any file makes another run, and the same content makes the same run everywhere.

use serde::{Deserialize, Serialize};

use provost_core::checkout::CheckoutState;
use provost_core::json;
use provost_core::object::sha256;
use provost_lens::structure::Report;
use provost_lens::structure::baseline::Seen;

/// How many runs a session keeps, beside those that an intent needs.
pub const KEPT: usize = 4;

/// A run without its report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunHead {
    /// 64 hexadecimal digits.
    pub run_id: String,
    /// SHA-256 of the whole report.
    pub report_digest: String,
    /// The analysed root, relative to the top of the repository; empty for the top itself.
    pub root: String,
    /// The digest of the settings and the analyser.
    pub means: String,
    /// In milliseconds since 1970.
    pub taken_at: i64,
    /// The checkout that it describes.
    pub workspace: CheckoutState,
    /// The baseline as the analysis found it.
    #[serde(default)]
    pub baseline: Seen,
}

/// The digest of the settings and the analyser of a report: only reports that agree in it are
/// compared.
pub(crate) fn settings_digest(report: &Report) -> String {
    sha256(format!("{} {}", report.settings.digest(), report.analyser).as_bytes())
}

impl RunHead {
    pub fn of(
        report: &Report,
        root: &str,
        workspace: CheckoutState,
        baseline: Seen,
        taken_at: i64,
    ) -> Self {
        Self {
            run_id: report.digest(),
            report_digest: digest(report),
            root: root.to_owned(),
            means: settings_digest(report),
            taken_at,
            workspace,
            baseline,
        }
    }

    /// The id as users see it.
    pub fn short(&self) -> &str {
        short(&self.run_id)
    }
}

/// The id of a run as users see it.
pub fn short(run_id: &str) -> &str {
    run_id.get(..8).unwrap_or(run_id)
}

/// SHA-256 of the whole report.
pub fn digest(report: &Report) -> String {
    let value = serde_json::to_value(report).unwrap_or_default();
    sha256(json::canonical(&value).as_bytes())
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRun {
    #[error("this session has no run `{0}`")]
    Unknown(String),
    #[error("`{0}` could be several runs of this session")]
    Ambiguous(String),
}

/// The run that `name` means: its whole id, or a prefix that no other run has.
pub fn find<'a>(runs: &'a [RunHead], name: &str) -> Result<&'a RunHead, NoRun> {
    let name = name.trim().to_ascii_lowercase();
    let shown = || name.chars().take(80).collect::<String>();
    let mut found = runs
        .iter()
        .filter(|run| !name.is_empty() && run.run_id.starts_with(&name));
    match (found.next(), found.next()) {
        (Some(run), None) => Ok(run),
        (None, _) => Err(NoRun::Unknown(shown())),
        (Some(_), Some(_)) => Err(NoRun::Ambiguous(shown())),
    }
}

pub fn newest<'a>(runs: &'a [RunHead], root: &str) -> Option<&'a RunHead> {
    let of_root = runs.iter().filter(|run| run.root == root);
    of_root.max_by_key(|run| run.taken_at)
}

/// The runs to be removed; `pinned` are needed by intents.
pub fn evicted(runs: &[RunHead], pinned: &[String]) -> Vec<String> {
    let mut free: Vec<&RunHead> = runs
        .iter()
        .filter(|run| !pinned.contains(&run.run_id))
        .collect();
    free.sort_by_key(|run| std::cmp::Reverse(run.taken_at));
    let gone = free.into_iter().skip(KEPT);
    gone.map(|run| run.run_id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, at: i64) -> RunHead {
        RunHead {
            run_id: id.into(),
            report_digest: String::new(),
            root: String::new(),
            means: String::new(),
            taken_at: at,
            workspace: CheckoutState::default(),
            baseline: Seen::Missing,
        }
    }

    #[test]
    fn the_newest_stay_and_so_do_those_that_are_needed() {
        let runs: Vec<RunHead> = (0..6).map(|at| run(&format!("{at}"), at)).collect();
        assert_eq!(evicted(&runs, &[]), ["1", "0"]);
        assert_eq!(
            evicted(&runs, &["0".into(), "1".into()]),
            Vec::<String>::new()
        );
        assert_eq!(newest(&runs, "").unwrap().run_id, "5");
        assert!(newest(&runs, "sub").is_none());
    }

    #[test]
    fn a_beginning_is_enough_if_it_is_clear() {
        let runs = [run("aabb", 0), run("aacc", 1)];
        assert_eq!(find(&runs, "aab").unwrap().run_id, "aabb");
        assert!(matches!(find(&runs, "aa"), Err(NoRun::Ambiguous(_))));
        assert!(matches!(find(&runs, "x"), Err(NoRun::Unknown(_))));
        assert!(find(&runs, "").is_err());
    }
}
