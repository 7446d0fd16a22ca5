//! Checks what the compiler and clippy do not: crate dependencies, sizes, names and pages.
//!
//! Every rule is a function from the files of the repository to findings. The files are those that
//! git tracks, and new ones that it does not ignore, so that a finding shows before the commit.

mod arrows;
mod house;
mod prose;
mod source;

use std::fmt;
use std::path::Path;
use std::process::Command;

use provost_core::code::Code;

use crate::schemas;

/// A file of the repository, with its path from the root.
#[derive(Debug, Clone)]
pub struct SourceFile {
    pub path: String,
    /// Its content; invalid UTF-8 is replaced.
    pub text: String,
}

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

/// Why nothing could be checked.
#[derive(Debug)]
pub struct TidyError(String);

impl fmt::Display for TidyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

pub fn check(root: &Path) -> Result<Vec<Finding>, TidyError> {
    let files = read_files(root)?;
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let metadata = output(
        root,
        &cargo,
        &["metadata", "--no-deps", "--format-version", "1"],
    )?;
    let packages = arrows::read(&metadata).map_err(TidyError)?;

    let mut findings = arrows::check(&packages);
    findings.extend(house::check(&files, &codes));
    findings.extend(source::check(&files));
    findings.extend(prose::check(&files));
    let stale = schemas::stale(root).into_iter();
    findings
        .extend(stale.map(|path| {
            Finding::new(path, "is not what the types say; run `cargo xtask schemas`")
        }));
    Ok(findings)
}

fn read_files(root: &Path) -> Result<Vec<SourceFile>, TidyError> {
    let list = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let names = output(root, "git", &list)?;
    let mut files = Vec::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let path = String::from_utf8_lossy(name).into_owned();
        let place = root.join(&path);
        // A file that was removed but not committed yet, a link or a submodule.
        if !place.symlink_metadata().is_ok_and(|facts| facts.is_file()) {
            continue;
        }
        let bytes =
            std::fs::read(&place).map_err(|why| TidyError(format!("cannot read {path}: {why}")))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        files.push(SourceFile { path, text });
    }
    if files.is_empty() {
        return Err(TidyError("git knows no files here".to_owned()));
    }
    Ok(files)
}

/// The output of a program, which must succeed.
fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<Vec<u8>, TidyError> {
    let done = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|why| TidyError(format!("cannot run {program}: {why}")))?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(TidyError(format!("{program} {arguments:?}: {words}")));
    }
    Ok(done.stdout)
}

#[cfg(test)]
fn files(list: &[(&str, &str)]) -> Vec<SourceFile> {
    list.iter()
        .map(|(path, text)| SourceFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        })
        .collect()
}

#[cfg(test)]
fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
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
