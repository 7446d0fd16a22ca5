//! Finds the name that a user means by a part of it.

use provost_core::code::Code;
use provost_core::wording::counted;

use crate::answer::Failure;

/// How many names are listed that a text could mean.
const MOST_LISTED: usize = 5;

/// Finds the name that `text` stands for: an exact match, else the beginning of a short id, else any
/// part of a name. `None` without a match.
pub(super) fn meant(names: &[String], text: &str, kind: &str) -> Result<Option<String>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let is_it = |name: &&String| *name == text;
    let begins = |name: &&String| {
        name.rsplit('_')
            .next()
            .is_some_and(|it| it.starts_with(text))
    };
    let is_part = |name: &&String| name.contains(text);
    let rules: [&dyn Fn(&&String) -> bool; 3] = [&is_it, &begins, &is_part];
    for rule in rules {
        let matching: Vec<&String> = names.iter().filter(rule).collect();
        match matching.as_slice() {
            [] => {}
            [name] => return Ok(Some((*name).clone())),
            many => {
                let listed = many
                    .iter()
                    .rev()
                    .take(MOST_LISTED)
                    .map(|name| name.as_str());
                let mut listed = listed.collect::<Vec<&str>>().join(", ");
                if many.len() > MOST_LISTED {
                    listed += ", …";
                }
                let count = counted(many.len(), kind);
                let reason = format!("`{text}` could be {count}: {listed}");
                return Err(Failure::new(Code::NotFound, reason).hint("type more of the name"));
            }
        }
    }
    Ok(None)
}
