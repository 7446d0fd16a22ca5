//! The last acts: verifying the evidence of the honest run, and landing it.

use std::fs;
use std::io;
use std::path::Path;

use provost_core::verdict::{FoundAt, rows_of};

use super::{ComparedFacts, Played, text};
use crate::stage::{Stage, Trouble};

/// The file of the bundle that is altered.
const VICTIM: &str = "patch.diff";

/// Verifies the bundle of the honest run, and a copy of it that differs in one bit.
pub(super) fn tampering(stage: &mut Stage) -> Result<Played, Trouble> {
    let failed = |error: io::Error| error.to_string();
    let bundle = stage.honest["bundle"].as_str().unwrap_or_default();
    let whole = stage.provost(&["verify", bundle])?;
    let copy = stage.top.join("tampered");
    copy_directory(Path::new(bundle), &copy).map_err(failed)?;
    let victim = copy.join(VICTIM);
    let mut bytes = fs::read(&victim).map_err(failed)?;
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle) {
        *byte ^= 1;
    }
    fs::write(&victim, bytes).map_err(failed)?;
    let tampered = stage.provost(&["verify", &copy.display().to_string()])?;
    let mut findings = rows_of(tampered.get("details")).iter().map(FoundAt::read);
    let named = findings.find(|found| found.path == VICTIM);
    let answers = ["intact", "complete", "authentic"]
        .map(|question| format!("{question}: {}", text(&whole["details"][question])));
    Ok(Played {
        rows: vec![
            ("verify", answers.join(", ")),
            (
                "flipped",
                format!("the lowest bit of byte {middle} of {VICTIM}"),
            ),
            ("verify", found(named.as_ref())),
        ],
        word: "found",
        outcome: text(&tampered["code"]).to_owned(),
        facts: ComparedFacts::default()
            .with("whole", "OK", text(&whole["code"]))
            .with("tampered", "EVIDENCE_ALTERED", text(&tampered["code"]))
            .with("named", Some(VICTIM), named.map(|found| found.path)),
    })
}

fn found(row: Option<&FoundAt<'_>>) -> String {
    let Some(row) = row else {
        return format!("names no {VICTIM}");
    };
    let is_digest = |word: &str| {
        let word = word.trim_end_matches(',');
        word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let short = |word: &str| match word.get(..10) {
        Some(start) if is_digest(word) => format!("{start}…{}", &word[64..]),
        _ => word.to_owned(),
    };
    let problem = row.problem.split(' ').map(short);
    format!("{VICTIM} {}", problem.collect::<Vec<_>>().join(" "))
}

fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Lands the honest run; this is the first change of the user's checkout.
pub(super) fn landing(stage: &mut Stage) -> Result<Played, Trouble> {
    let untouched = stage.picture()? == stage.before;
    let run_id = text(&stage.honest["run_id"]).to_owned();
    let landed = stage.provost(&["land", &run_id])?;
    let again = stage.provost(&["verify", text(&stage.honest["bundle"])])?;
    let repaired = stage.differs(Path::new("src/slug.sh"))?;
    let same = landed["tree"] == stage.honest["tree"];
    let either = |fact, yes: &'static str, no: &'static str| if fact { yes } else { no };
    let commit = text(&landed["commit"]);
    Ok(Played {
        rows: vec![
            (
                "before",
                either(
                    untouched,
                    "after six runs no byte of the checkout or its hooks differs",
                    "the checkout is not as it was",
                )
                .to_owned(),
            ),
            (
                "tree",
                either(same, "the one that was tested", "another than was tested").to_owned(),
            ),
        ],
        word: "landed",
        outcome: format!(
            "{} is at {}",
            text(&landed["target"]).trim_start_matches("refs/heads/"),
            commit.get(..10).unwrap_or(commit)
        ),
        facts: ComparedFacts::default()
            .with("untouched_before", true, untouched)
            .with("target", "refs/heads/main", text(&landed["target"]))
            .with("same_tree", true, same)
            .with("repaired", true, repaired)
            .with("verified_after", "OK", text(&again["code"])),
    })
}
