//! `provost analyze`: measures the structure of source code and lists findings.

mod sarif;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::wording::counted;
use provost_engine::ports::PortError;
use provost_fs::atomic::{self, Durability};
use provost_lens::structure::baseline::{Baseline, LARGEST, Seen};
use provost_lens::structure::{Category, Finding, Formula, Report, Settings, Summary};
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Answer, Failure, Outcome};
use crate::input;
use crate::lens;
use crate::output;
use crate::places::Places;
use crate::show::{Reader, one_line};

/// How many findings the text output lists.
const SHOWN: usize = 20;

/// How many places of one finding the text output lists.
const PLACES: usize = 4;

#[derive(Args)]
#[command(
    after_help = "This analyzes the files that git tracks and new files that git does not ignore.
`provost explain structure` describes what is measured and how.

Example:
  provost analyze
  provost analyze --sarif > structure.sarif
  provost analyze --write-baseline provost.baseline.json
  provost analyze --baseline provost.baseline.json"
)]
pub(super) struct Analyze {
    /// The checkout, or a directory in one [default: the current directory].
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,

    /// Print the answer as SARIF on stdout, for code scanners.
    #[arg(long, conflicts_with_all = ["json", "baseline", "write_baseline"])]
    sarif: bool,

    /// How health is computed: by rates over all languages, or by the integers that other tools
    /// compute for Python.
    #[arg(long, value_enum, default_value_t = Profile::Standard)]
    profile: Profile,

    /// List every finding, including those of low confidence that decide nothing.
    #[arg(long)]
    all: bool,

    /// Findings that the repository accepts; only new findings count, and any of them exits with
    /// status 1.
    #[arg(long, value_name = "FILE", conflicts_with = "write_baseline")]
    baseline: Option<PathBuf>,

    /// Write all current findings to this file as accepted.
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Profile {
    Standard,
    Compat,
}

pub(super) fn run(analyze: &Analyze, reader: Reader) -> Outcome {
    let path = analyze.path.as_deref().unwrap_or(Path::new("."));
    let path = path.canonicalize().map_err(|error| {
        Failure::new(
            Code::InputUnreadable,
            format!("`{}` cannot be read: {error}", path.display()),
        )
    })?;
    let place = Places::around(&path)?;
    let settings = Settings {
        profile: match analyze.profile {
            Profile::Standard => Formula::Standard,
            Profile::Compat => Formula::Compat,
        },
        ..Settings::default()
    };
    let lens = lens::of(&place);
    let compared = analyze.baseline.is_some() || analyze.write_baseline.is_some();
    if matches!(reader, Reader::Person) && !analyze.sarif && !compared {
        let summary = lens.summarize(&path, &settings).map_err(PortError::from)?;
        let text = render(&summary, analyze.all);
        // The process ends here; dropping the report would take longer than printing it.
        std::mem::forget(summary);
        return Ok(Answer::data(AnalysisFacts::default(), text));
    }
    let report = lens.analyze(&path, &settings).map_err(PortError::from)?;
    if analyze.sarif {
        let document = sarif::render(&report, env!("CARGO_PKG_VERSION"));
        let mut answer = Answer::data(document, "");
        answer.text = answer.json.to_string();
        return Ok(answer);
    }
    // The text output is one page; the JSON output is as large as the tree.
    let mut answer = match reader {
        Reader::Person => {
            let text = render(&(&report).into(), analyze.all);
            Answer::data(AnalysisFacts::default(), text)
        }
        Reader::Program => Answer::data(&report, ""),
    };
    let mut facts = AnalysisFacts {
        digest: (reader == Reader::Program).then(|| report.digest()),
        ..AnalysisFacts::default()
    };
    if let Some(path) = &analyze.write_baseline {
        let baseline = Baseline::of(&report);
        keep(path, &baseline)?;
        let count = counted(baseline.findings.len(), "finding");
        answer.text += &format!(
            "{count} accepted in {}\n",
            one_line(&path.to_string_lossy())
        );
        facts.baseline_written = Some(baseline.digest().to_owned());
    }
    if let Some(path) = &analyze.baseline {
        let seen = baseline(path, &report)?;
        let new = seen.new_in(&report);
        answer.text += &novel(&new);
        facts.baseline = Some(seen.describe(&report));
        facts.new_findings = Some(new.iter().map(|one| one.id.clone()).collect());
        if !new.is_empty() {
            answer.exit = Exit::No;
        }
    }
    Ok(answer.with(facts))
}

/// What is added to the report, for programs.
#[derive(Default, Serialize)]
struct AnalysisFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The digest of the baseline that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_written: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Value>,
    /// The ids of the findings that the baseline does not accept.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_findings: Option<Vec<String>>,
}

/// Writes a baseline atomically; replaces an older baseline, but no other file.
fn keep(path: &Path, baseline: &Baseline) -> Result<(), Failure> {
    output::unlinked(path)?;
    if path.symlink_metadata().is_ok() {
        let there = input::read(path, usize::try_from(LARGEST).unwrap_or(usize::MAX))?;
        Baseline::parse(&there).map_err(|error| {
            let words = format!("`{}` exists and is no baseline: {error}", path.display());
            Failure::new(Code::InputInvalid, words).hint("name another file, or remove this one")
        })?;
    }
    let text = baseline.render();
    atomic::replace(path, text.as_bytes(), 0o666, Durability::Synced).map_err(|error| {
        let words = format!("`{}` cannot be written: {error}", path.display());
        Failure::new(Code::HostFailed, words)
    })
}

/// Reads the baseline at `path`; one that cannot be used is an error, not an empty baseline.
fn baseline(path: &Path, report: &Report) -> Result<Seen, Failure> {
    let shown = path.display().to_string();
    let bytes = input::read(path, usize::try_from(LARGEST).unwrap_or(usize::MAX))?;
    let hint = "create it again: provost analyze --write-baseline FILE";
    let seen = Seen::of(&shown, Some(&bytes), report);
    match &seen {
        Seen::Trusted { .. } => Ok(seen),
        Seen::Invalid { why, .. } => {
            let words = format!("`{shown}` is no baseline: {why}");
            Err(Failure::new(Code::InputInvalid, words).hint(hint))
        }
        Seen::Incompatible { .. } | Seen::Missing => {
            let words = format!("`{shown}` was made by another version or by other settings");
            Err(Failure::new(Code::InputInvalid, words).hint(hint))
        }
    }
}

fn novel(new: &[&Finding]) -> String {
    if new.is_empty() {
        return "nothing is new against the baseline\n".to_owned();
    }
    let mut text = format!(
        "{} against the baseline\n",
        counted(new.len(), "new finding")
    );
    for finding in new.iter().take(SHOWN) {
        text += &format!(
            "  {}: {}\n",
            one_line(&finding.id),
            one_line(&finding.message)
        );
    }
    text
}

fn render(report: &Summary, all: bool) -> String {
    let mut text = format!(
        "{}, {} of source code\n",
        counted(
            usize::try_from(report.tree_files).unwrap_or(usize::MAX),
            "file"
        ),
        report.source_files,
    );
    for (name, count) in &report.languages {
        let unsound = match count.unsound {
            0 => String::new(),
            some => format!(", {some} not read cleanly"),
        };
        text += &format!(
            "  {name:12} {:>6} files {:>9} lines {:>8} functions{unsound}\n",
            count.files, count.lines, count.functions,
        );
    }
    match &report.health {
        Some(health) => {
            text += &format!("\nhealth {} ({:?})\n", health.points, health.grade);
            for share in &health.dimensions {
                text += &format!("  {:12} {}\n", share.dimension.word(), share.points);
            }
        }
        None => text += "\nhealth unknown: there is no source code\n",
    }
    text + &findings(report, all)
}

fn findings(report: &Summary, all: bool) -> String {
    let mut counts: BTreeMap<Category, usize> = BTreeMap::new();
    let mut shown: Vec<&Finding> = Vec::new();
    for finding in &report.findings {
        if finding.gates() || all {
            *counts.entry(finding.category).or_default() += 1;
            shown.push(finding);
        }
    }
    let unsure = report.findings.len() - shown.len();
    if report.findings.is_empty() {
        return "\nno findings\n".to_owned();
    }
    let mut text = format!("\n{}", counted(shown.len(), "finding"));
    for (at, (category, count)) in counts.iter().enumerate() {
        let sign = if at == 0 { ':' } else { ',' };
        text += &format!("{sign} {count} {}", category.word());
    }
    text.push('\n');
    shown.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.value)));
    let most = if all { shown.len() } else { SHOWN };
    for finding in shown.iter().take(most) {
        text += &format!(
            "  {}: {}\n",
            one_line(&finding.id),
            one_line(&finding.message)
        );
        for spot in finding.places.iter().take(PLACES) {
            text += &format!(
                "      {}:{} {}\n",
                one_line(spot.path.as_str()),
                spot.line,
                one_line(&spot.symbol)
            );
        }
        if let Some(more) = finding
            .places
            .len()
            .checked_sub(PLACES)
            .filter(|more| *more > 0)
        {
            text += &format!("      and {more} more\n");
        }
    }
    if shown.len() > most {
        text += &format!(
            "  and {} more; --all or --json lists them\n",
            shown.len() - most
        );
    }
    if unsure > 0 {
        text += &format!(
            "{} that decide nothing; --all lists them\n",
            counted(unsure, "further finding")
        );
    }
    text
}
