//! A patch as lines with their numbers: unified, or the two sides beside each other.

use maud::{Markup, html};
use provost_core::foreign_text::one_line;

use super::evidence::encoded;

/// How many characters of a line are shown; the bundle has all of it.
const LONGEST: usize = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineRole {
    /// Begins the changes of a file.
    File,
    /// What git says about a file.
    Head,
    Hunk,
    Plus,
    Minus,
    Same,
}

/// One line of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchLine<'a> {
    pub(super) role: LineRole,
    pub(super) text: &'a str,
    /// The numbers of the line before and after the change.
    pub(super) old: Option<u64>,
    pub(super) new: Option<u64>,
    /// Which file of the patch, from 0.
    pub(super) file: usize,
}

/// Some lines of a patch.
pub(super) struct PatchPage<'a> {
    pub(super) lines: Vec<PatchLine<'a>>,
    /// The path of each file of the patch.
    pub(super) paths: Vec<String>,
    /// The number of the first of these lines, from 0.
    pub(super) from: usize,
    /// How many lines the files that are kept have.
    pub(super) total: usize,
}

/// At most `most` lines from number `from` on, of the files whose path `keeps` accepts. Only these
/// are held, so that a large patch takes no more memory than a small one.
pub(super) fn page(
    patch: &str,
    keeps: impl Fn(&str) -> bool,
    from: usize,
    most: usize,
) -> PatchPage<'_> {
    let mut reader = PatchReader::default();
    let mut page = PatchPage {
        lines: Vec::new(),
        paths: Vec::new(),
        from,
        total: 0,
    };
    // The lines of a file before its path is certain.
    let mut kept = true;
    for text in patch.lines() {
        let line = reader.line(text);
        if line.role == LineRole::File {
            kept = keeps(reader.paths.last().map_or("", String::as_str));
        }
        if kept {
            if (from..from.saturating_add(most)).contains(&page.total) {
                page.lines.push(line);
            }
            page.total += 1;
        }
    }
    page.from = from.min(page.total);
    page.paths = reader.paths;
    page
}

/// Reads a patch line by line.
#[derive(Default)]
struct PatchReader {
    paths: Vec<String>,
    /// How many lines of the hunk are left, before and after the change.
    left: (u64, u64),
    numbers: (u64, u64),
}

impl PatchReader {
    fn line<'a>(&mut self, text: &'a str) -> PatchLine<'a> {
        let Self {
            paths,
            left,
            numbers,
        } = self;
        let within = left.0 > 0 || left.1 > 0;
        let role = match text.as_bytes() {
            [b'+', ..] if within => LineRole::Plus,
            [b'-', ..] if within => LineRole::Minus,
            [b' ', ..] | [] if within => LineRole::Same,
            _ if text.starts_with("diff --git ") => LineRole::File,
            [b'@', b'@', ..] => LineRole::Hunk,
            _ => LineRole::Head,
        };
        match role {
            LineRole::File => {
                *left = (0, 0);
                paths.push(named(text));
            }
            LineRole::Hunk => (*left, *numbers) = hunk(text).unwrap_or_default(),
            LineRole::Head => {
                let side = text.strip_prefix("+++ b/").or(text.strip_prefix("--- a/"));
                if let (Some(side), Some(path)) = (side, paths.last_mut()) {
                    side.trim_end_matches('\t').clone_into(path);
                }
            }
            LineRole::Plus | LineRole::Minus | LineRole::Same => {}
        }
        let (mut old, mut new) = (None, None);
        if matches!(role, LineRole::Minus | LineRole::Same) {
            old = Some(numbers.0);
            (numbers.0, left.0) = (numbers.0 + 1, left.0.saturating_sub(1));
        }
        if matches!(role, LineRole::Plus | LineRole::Same) {
            new = Some(numbers.1);
            (numbers.1, left.1) = (numbers.1 + 1, left.1.saturating_sub(1));
        }
        PatchLine {
            role,
            text,
            old,
            new,
            file: paths.len().saturating_sub(1),
        }
    }
}

/// The path after `b/`; that of an unusual name stays as git writes it.
fn named(line: &str) -> String {
    let names = line.trim_start_matches("diff --git ");
    // `a/PATH b/PATH`: both are the same, because no rename is looked for.
    let half = names.len().saturating_sub(5) / 2;
    let (one, other) = (names.get(2..2 + half), names.get(5 + half..));
    if let Some(path) = one.filter(|_| one == other) {
        return path.to_owned();
    }
    let after = names.rsplit_once(" b/").map_or(names, |(_, after)| after);
    after.to_owned()
}

/// Lengths and first numbers of both sides.
fn hunk(line: &str) -> Option<((u64, u64), (u64, u64))> {
    let mut words = line.split(' ').skip(1);
    let side = |word: &str| -> Option<(u64, u64)> {
        let numbers = word.get(1..)?;
        let (from, length) = numbers.split_once(',').unwrap_or((numbers, "1"));
        Some((from.parse().ok()?, length.parse().ok()?))
    };
    let (old, new) = (side(words.next()?)?, side(words.next()?)?);
    Some(((old.1, new.1), (old.0, new.0)))
}

fn class(role: LineRole) -> &'static str {
    match role {
        LineRole::File => "file",
        LineRole::Head | LineRole::Hunk => "hunk",
        LineRole::Plus => "plus",
        LineRole::Minus => "minus",
        LineRole::Same => "",
    }
}

fn words(text: &str) -> Markup {
    let shown: String = text.chars().take(LONGEST).collect();
    let cut = text.chars().count().saturating_sub(LONGEST);
    html! {
        (one_line(&shown.replace('\t', "    ")))
        @if cut > 0 { " … " (cut) " more characters" }
    }
}

/// A number that leads to the words of the next attempt, with its place.
fn number(number: Option<u64>, path: Option<&String>, here: &str) -> Markup {
    html! {
        @if let (Some(number), Some(path)) = (number, path) {
            @let at = format!("{}:{number}", one_line(path));
            a .line href={ (here) "&comment=" (encoded(&at)) "#words" } data-at=(at) aria-label={ "Comment on " (at) } { (number) }
        }
    }
}

/// `here` is the link to this page.
pub(super) fn unified(lines: &[&PatchLine<'_>], paths: &[String], here: &str) -> Markup {
    html! {
        table .patch { tbody { @for line in lines {
            @let path = paths.get(line.file);
            tr class=(class(line.role)) {
                td .at { (number(line.old.filter(|_| line.new.is_none()), path, here)) }
                td .at { (number(line.new, path, here)) }
                td { (words(line.text)) }
            }
        } } }
    }
}

/// Removed lines on the left beside added ones on the right.
pub(super) fn split(lines: &[&PatchLine<'_>], paths: &[String], here: &str) -> Markup {
    let mut rows: Vec<(Option<&PatchLine<'_>>, Option<&PatchLine<'_>>)> = Vec::new();
    // The first row whose right side is free.
    let mut free = 0;
    for line in lines {
        match line.role {
            LineRole::Minus => rows.push((Some(line), None)),
            LineRole::Plus => match rows.get_mut(free) {
                Some(row) => row.1 = Some(line),
                None => rows.push((None, Some(line))),
            },
            _ => rows.push((Some(line), Some(line))),
        }
        match line.role {
            LineRole::Minus => {}
            LineRole::Plus => free += 1,
            _ => free = rows.len(),
        }
    }
    html! {
        table .patch.split { tbody { @for (left, right) in rows {
            @match (left, right) {
                (Some(line), Some(_)) if line.old.is_none() && line.new.is_none() => {
                    tr class=(class(line.role)) { td colspan="4" { (words(line.text)) } }
                },
                _ => tr { (side(left, paths, true, here)) (side(right, paths, false, here)) },
            }
        } } }
    }
}

fn side(line: Option<&PatchLine<'_>>, paths: &[String], before: bool, here: &str) -> Markup {
    html! {
        @match line {
            Some(line) => {
                @let shown = if before { line.old } else { line.new };
                td .at { (number(shown, paths.get(line.file), here)) }
                td class=(class(line.role)) { (words(line.text.get(1..).unwrap_or_default())) }
            },
            None => { td .at {} td .none {} },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/src/a b/src/a\nindex 1..2 100644\n--- a/src/a\n+++ b/src/a\n\
        @@ -3,2 +3,3 @@ fn\n same\n--- a minus\n+++ a plus\n+more\ndiff --git a/x b/x\n";

    #[test]
    fn lines_of_a_patch_have_their_numbers_even_if_they_look_like_heads() {
        let PatchPage { lines, paths, .. } = page(PATCH, |_| true, 0, 100);
        assert_eq!(paths, ["src/a", "x"]);
        let numbered = lines.iter().filter(|it| it.old.or(it.new).is_some());
        let numbered: Vec<_> = numbered.map(|it| (it.role, it.old, it.new)).collect();
        assert_eq!(
            numbered,
            [
                (LineRole::Same, Some(3), Some(3)),
                (LineRole::Minus, Some(4), None),
                (LineRole::Plus, None, Some(4)),
                (LineRole::Plus, None, Some(5)),
            ]
        );
        assert_eq!(
            lines.last().map(|it| (it.role, it.file)),
            Some((LineRole::File, 1))
        );
    }

    #[test]
    fn both_sides_are_beside_each_other() {
        let PatchPage { lines, paths, .. } = page(PATCH, |_| true, 0, 100);
        let lines: Vec<&PatchLine<'_>> = lines.iter().collect();
        let text = split(&lines, &paths, "?from=0").into_string();
        let row = text
            .split("<tr>")
            .find(|row| row.contains("a minus"))
            .unwrap();
        assert!(row.contains("a plus"), "{row}");
        assert!(text.contains("data-at=\"src/a:5\""), "{text}");
    }

    #[test]
    fn a_large_patch_is_paged_by_the_lines_of_the_kept_files() {
        let file = |number: usize| {
            format!(
                "diff --git a/d b/{number} b/d b/{number}\nnew file\n--- /dev/null\n\
                 +++ b/d b/{number}\n@@ -0,0 +1,2 @@\n+one\n+two\n"
            )
        };
        let patch: String = (0..5_000).map(file).collect();
        let all = page(&patch, |_| true, 0, 1_000);
        assert_eq!((all.lines.len(), all.total), (1_000, 35_000));
        let mut seen = 0;
        while seen < all.total {
            let next = page(&patch, |_| true, seen, 1_000);
            assert_eq!(next.from, seen);
            seen += next.lines.len();
        }
        assert_eq!(seen, 35_000, "no line is left out");
        let one = page(&patch, |path| path == "d b/4321", 0, 1_000);
        let texts: Vec<&str> = one.lines.iter().map(|it| it.text).collect();
        assert_eq!((one.total, texts.len(), texts[5]), (7, 7, "+one"));
        assert_eq!(page(&patch, |_| true, 99_999, 10).from, 35_000);
    }
}
