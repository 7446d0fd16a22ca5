//! Checks what the compiler and clippy do not: crate dependencies, sizes, names and pages.
//!
//! Every rule is a function from the files of the repository to findings; new files count before
//! they are committed.

mod arrows;
mod field_names;
mod house;
mod prose;
mod source;

use std::fmt;
use std::path::Path;

use provost_core::code::Code;

use crate::{Result, fields, repository, schemas};

/// A rule that is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, with the line if there is one.
    pub place: String,
    pub what: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.what)
    }
}

pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let files = repository::files(root)?;
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    let question = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata = repository::output(root, &repository::cargo(), &question)?;
    let packages = arrows::read(&metadata)?;

    let mut findings = arrows::check(&packages);
    findings.extend(house::check(&files, &codes));
    findings.extend(source::check(&files));
    findings.extend(prose::check(&files));
    findings.extend(field_names::check(&files, &fields::foreign_names()?));
    let stale = schemas::stale(root).into_iter();
    findings.extend(stale.map(|what| Finding::new("schemas", what)));
    Ok(findings)
}

#[cfg(test)]
fn files(list: &[(&str, &str)]) -> Vec<repository::SourceFile> {
    list.iter()
        .map(|(path, text)| repository::SourceFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        })
        .collect()
}

#[cfg(test)]
fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let findings = check(&root).unwrap();
        assert_eq!(lines(&findings), Vec::<String>::new());
    }

    #[test]
    fn a_place_without_a_repository_is_an_error() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(check(scratch.path()).is_err());
    }
}
