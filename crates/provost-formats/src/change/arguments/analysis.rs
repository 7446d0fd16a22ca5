//! Reads the arguments of an analysis and of the limits that a run is compared with.

use provost_core::intent::request::Evidence;
use provost_core::path::RepoPath;
use provost_core::structure::Settings;
use provost_core::structure::gates::Switches;
use serde_json::{Map, Value};

use super::{ArgumentError, Arguments, shown, wrong};

/// A request for an analysis.
#[derive(Debug, Clone)]
pub struct Analysis {
    pub settings: Settings,
    /// The file that lists accepted findings.
    pub baseline: Option<String>,
    /// The paths whose findings the caller wants.
    pub changed: Option<Evidence>,
    /// The names of arguments that have no effect here.
    pub ignored: Vec<String>,
}

pub fn analysis(given: &Map<String, Value>) -> Result<Analysis, ArgumentError> {
    let mut arguments = Arguments::new(given);
    arguments.needed("root")?;
    let baseline = match arguments.text("baseline_path")?.map(RepoPath::try_from) {
        None => None,
        Some(Ok(path)) => Some(path.as_str().to_owned()),
        Some(Err(error)) => {
            return wrong(format!(
                "`baseline_path` names no file below the root: {error}"
            ));
        }
    };
    let changed = match (
        arguments.list("changed_paths")?,
        arguments.text("git_diff_ref")?,
    ) {
        (Some(_), Some(_)) => return wrong("give `changed_paths` or `git_diff_ref`, not both"),
        (Some(files), None) => Some(Evidence::Files(files)),
        (None, Some(rev)) => Some(Evidence::DiffRef(rev.to_owned())),
        (None, None) => None,
    };
    let mut settings = Settings::default();
    let fields: [(&'static str, &mut u32); 7] = [
        ("min_loc", &mut settings.min_loc),
        ("min_stmt", &mut settings.min_stmt),
        ("block_min_loc", &mut settings.block_min_loc),
        ("block_min_stmt", &mut settings.block_min_stmt),
        ("complexity_threshold", &mut settings.complexity_threshold),
        ("coupling_threshold", &mut settings.coupling_threshold),
        ("cohesion_threshold", &mut settings.cohesion_threshold),
    ];
    for (name, field) in fields {
        if let Some(value) = arguments.value(name) {
            *field = whole(name, value)?;
        }
    }
    Ok(Analysis {
        settings,
        baseline,
        changed,
        ignored: arguments.rest().into_iter().map(shown).collect(),
    })
}

fn whole(name: &str, value: &Value) -> Result<u32, ArgumentError> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| ArgumentError(format!("`{name}` is a whole number")))
}

/// Reads the limits of a gate, and the run that they are for.
pub fn gates(given: &Map<String, Value>) -> Result<(Option<&str>, Switches), ArgumentError> {
    let mut arguments = Arguments::new(given);
    let run = arguments.text("run_id")?;
    let mut limit = |name: &'static str| match arguments.value(name) {
        // The format spells "off" as -1.
        Some(value) if value.as_i64() == Some(-1) => Ok(None),
        None => Ok(None),
        Some(value) => whole(name, value).map(Some),
    };
    let mut switches = Switches {
        fail_threshold: limit("fail_threshold")?,
        fail_complexity: limit("fail_complexity")?,
        fail_coupling: limit("fail_coupling")?,
        fail_cohesion: limit("fail_cohesion")?,
        fail_health: limit("fail_health")?,
        ..Switches::default()
    };
    for name in [
        "min_typing_coverage",
        "min_docstring_coverage",
        "coverage_min",
    ] {
        if limit(name)?.is_some() {
            switches.not_measured.push(name.to_owned());
        }
    }
    switches.fail_on_new = arguments.flag("fail_on_new", false)?;
    switches.fail_cycles = arguments.flag("fail_cycles", false)?;
    switches.fail_dead_code = arguments.flag("fail_dead_code", false)?;
    switches.fail_on_new_metrics = arguments.flag("fail_on_new_metrics", false)?;
    let unknown = [
        "fail_on_typing_regression",
        "fail_on_docstring_regression",
        "fail_on_api_break",
        "fail_on_untested_hotspots",
    ];
    for name in unknown {
        if arguments.flag(name, false)? {
            switches.not_measured.push(name.to_owned());
        }
    }
    arguments.end()?;
    Ok((run, switches))
}
