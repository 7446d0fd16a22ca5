//! Finds the files that a patch in the form of `apply_patch` names.

use super::EventError;

/// The text before the name of a file.
const HEADS: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// The files of all patches in `text`; an error if it names none.
pub(super) fn paths(text: &str) -> Result<Vec<String>, EventError> {
    let path = |line: &str| {
        let line = line.trim();
        let rest = HEADS.iter().find_map(|head| line.strip_prefix(head))?;
        Some(rest.trim().to_owned())
    };
    let paths: Vec<String> = text.lines().filter_map(path).collect();
    if paths.is_empty() || paths.iter().any(String::is_empty) {
        return Err(EventError::Patch);
    }
    Ok(paths)
}
