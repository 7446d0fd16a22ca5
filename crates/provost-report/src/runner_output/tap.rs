//! The Test Anything Protocol: one line per test, and a plan.

use super::{Counts, number};

/// A plan must be there: other programs also print lines that begin with `ok`.
pub(super) fn read(lines: &[&str]) -> Option<Counts> {
    lines.iter().find(|line| is_plan(line))?;
    let mut counts = Counts::default();
    for line in lines {
        let (passed, rest) = match (line.strip_prefix("ok"), line.strip_prefix("not ok")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => continue,
        };
        if !rest.is_empty() && !rest.starts_with(' ') {
            continue;
        }
        let directive = rest.rsplit_once('#').map(|(_, text)| text.trim_start());
        let has = |word: &str| {
            let begin = directive.and_then(|text| text.get(..word.len()));
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        };
        let count = if has("skip") || has("todo") {
            &mut counts.skipped
        } else if passed {
            &mut counts.passed
        } else {
            &mut counts.failed
        };
        *count += 1;
    }
    Some(counts)
}

/// `1..4`, perhaps with a reason why there are none.
fn is_plan(line: &str) -> bool {
    let end = line.strip_prefix("1..").map(|rest| rest.split('#').next());
    end.flatten()
        .is_some_and(|end| number(end.trim()).is_some())
}
