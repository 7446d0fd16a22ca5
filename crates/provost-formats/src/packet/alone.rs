//! Judges one file of a packet by itself, as far as that is possible without the others.

use provost_core::verdict::Verdict;
use serde_json::Value;

use super::finding::Findings;
use super::{
    EXECUTOR_REPORT, PacketDetails, Source, Strictness, TASK_CARD, VALIDATOR_REPORT, card,
    executor, log, refuse, rule, seal, snapshot, validator,
};
use provost_core::document::yaml;

/// A kind of file in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// The planner's permissions.
    TaskCard,
    ExecutorReport,
    ValidatorReport,
    /// The digests of a workspace.
    Snapshot,
    /// The acceptance commands and their results.
    AcceptanceLog,
}

impl File {
    pub const ALL: [Self; 5] = [
        Self::TaskCard,
        Self::ExecutorReport,
        Self::ValidatorReport,
        Self::Snapshot,
        Self::AcceptanceLog,
    ];

    /// The usual name of such a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskCard => TASK_CARD,
            Self::ExecutorReport => EXECUTOR_REPORT,
            Self::ValidatorReport => VALIDATOR_REPORT,
            Self::Snapshot => seal::BEFORE,
            Self::AcceptanceLog => seal::LOG,
        }
    }
}

/// Judges the bytes of one file. The phase is the one that the file names itself.
pub fn check(file: File, bytes: &[u8], profile: Strictness) -> Verdict {
    let mut findings = Findings::default();
    let name = file.name();
    match file {
        File::TaskCard | File::ExecutorReport | File::ValidatorReport => {
            let phase_id = phase(bytes, name, &mut findings);
            let source = Source::Bytes(bytes.to_vec());
            match file {
                File::TaskCard => drop(card::read(&source, &phase_id, &mut findings)),
                File::ExecutorReport => drop(executor::read(&source, &phase_id, &mut findings)),
                _ => drop(validator::read(&source, &phase_id, &mut findings)),
            }
        }
        File::Snapshot => drop(snapshot::read(name, bytes, &mut findings)),
        File::AcceptanceLog => {
            let rows = log::rows(name, bytes, None, &mut findings);
            if rows.is_empty() && findings.holds(Strictness::Strict) {
                findings.add(name, "", "has no row, so it shows no result");
            }
        }
    }
    if !findings.holds(profile) {
        return refuse(&findings, profile, PacketDetails::default());
    }
    let verdict = Verdict::allow("the file holds by itself; the packet was not looked at");
    match findings.warnings() {
        [] => verdict,
        warnings => verdict.with(PacketDetails {
            warnings,
            ..PacketDetails::default()
        }),
    }
}

/// The phase that a file names; it must be usable as a directory name.
fn phase(bytes: &[u8], file: &str, findings: &mut Findings) -> String {
    let Ok(value) = yaml::parse(bytes) else {
        return String::new();
    };
    let named = value.get("phase_id").and_then(Value::as_str);
    let named = named.unwrap_or_default().trim();
    if let Err(why) = rule::normal(named) {
        findings.add(file, "phase_id", format!("{why}, so it names no directory"));
    }
    named.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_a_row_shows_no_result() {
        for text in ["", "\n\n"] {
            let verdict = check(File::AcceptanceLog, text.as_bytes(), Strictness::Literal);
            assert!(!verdict.allow, "{verdict:?}");
            assert!(verdict.reason.contains("no row"), "{verdict:?}");
        }
    }
}
