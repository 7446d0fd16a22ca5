//! Keeps the table of lines in `ARCHITECTURE.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::{Result, product, repository};

const PAGE: &str = "ARCHITECTURE.md";

/// No crate should have more lines than this.
const LARGEST: usize = 17_000;

/// The number of lines of every crate, the largest first, and their sum.
pub fn show(root: &Path) -> Result<String> {
    let files = repository::files(root)?;
    let counts = product::count(&files);
    let mut rows: Vec<_> = counts.iter().collect();
    rows.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), **name));
    let mut text = String::new();
    for (name, count) in rows {
        let over = if *count > LARGEST { " (too many)" } else { "" };
        let _ = writeln!(text, "{count:>7} {name}{over}");
    }
    let sum: usize = counts.values().sum();
    let _ = writeln!(text, "{sum:>7} together; a crate has up to {LARGEST}");
    Ok(text)
}

/// Brings the table up to date.
pub fn write(root: &Path) -> Result {
    let (_, page) = pages(root)?;
    Ok(fs::write(root.join(PAGE), page)?)
}

/// Whether the table is up to date.
pub fn check(root: &Path) -> Result {
    let (kept, page) = pages(root)?;
    if kept == page {
        return Ok(());
    }
    Err(format!("{PAGE}: the lines are not up to date; run `cargo xtask lines --write`").into())
}

/// The page as it is, and as it should be.
fn pages(root: &Path) -> Result<(String, String)> {
    let kept = fs::read_to_string(root.join(PAGE))?;
    let files = repository::files(root)?;
    let page = updated(&kept, product::count(&files))?;
    Ok((kept, page))
}

/// `page` with the numbers of `counts` in the rows of the crates.
fn updated(page: &str, mut counts: BTreeMap<&str, usize>) -> Result<String> {
    let mut text = String::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').collect();
        let row = match cells.as_slice() {
            ["", name, _, words, ""] => counts
                .remove(name.trim())
                .map(|count| format!("|{name}| {} |{words}|", rounded(count))),
            _ => None,
        };
        text += row.as_deref().unwrap_or(line);
        text += "\n";
    }
    match counts.keys().next() {
        None => Ok(text),
        Some(name) => Err(format!("{PAGE}: the table has no row for {name}").into()),
    }
}

/// Thousands of lines; below one thousand with a digit after the point.
fn rounded(count: usize) -> String {
    if count < 950 {
        format!("0.{} k", (count + 50) / 100)
    } else {
        format!("{} k", (count + 500) / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_crates_get_their_numbers() {
        let page =
            "| crate | lines | what |\n|---|---|---|\n| a | 1 k | words |\n| b | 0.5 k | x |\n";
        let counts = BTreeMap::from([("a", 12_499), ("b", 469)]);
        let want = page.replace("1 k", "12 k");
        assert_eq!(updated(page, counts).unwrap(), want);
        assert!(updated(page, BTreeMap::from([("c", 1)])).is_err());
    }
}
