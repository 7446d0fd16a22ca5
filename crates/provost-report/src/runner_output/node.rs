//! `node --test`: the summary below its tests, as `# pass 3` or `ℹ pass 3`.

use super::{Counts, numbered_last};

pub(super) fn read(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    let mut at = 0;
    while at < lines.len() {
        if let Some((counts, length)) = summary(&lines[at..]) {
            found.get_or_insert_default().add(counts);
            at += length;
        } else {
            at += 1;
        }
    }
    found
}

/// A block that begins with the number of tests, has the passed ones, and no other lines.
fn summary(lines: &[&str]) -> Option<(Counts, usize)> {
    let (mark, total) = entry(lines.first()?, "tests")?;
    let mut counts = Counts::default();
    let mut has_passes = false;
    let mut length = 1;
    for line in &lines[1..] {
        let Some((word, count)) = line.strip_prefix(mark).and_then(numbered_last) else {
            break;
        };
        match word {
            "pass" => (counts.passed, has_passes) = (count, true),
            "skipped" | "todo" => counts.skipped = counts.skipped.saturating_add(count),
            _ => {}
        }
        length += 1;
    }
    let others = counts.passed.saturating_add(counts.skipped);
    counts.failed = total.saturating_sub(others);
    has_passes.then_some((counts, length))
}

fn entry(line: &str, name: &str) -> Option<(&'static str, u64)> {
    ["# ", "ℹ "].into_iter().find_map(|mark| {
        let (word, count) = line.strip_prefix(mark).and_then(numbered_last)?;
        (word == name).then_some((mark, count))
    })
}
