//! The files of the repository, and the programs that are asked about it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the repository, with its path from the root.
#[derive(Debug, Clone)]
pub struct SourceFile {
    pub path: String,
    /// Its content; invalid UTF-8 is replaced.
    pub text: String,
}

/// The files that git tracks, and new ones that it does not ignore.
pub fn files(root: &Path) -> Result<Vec<SourceFile>, String> {
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
        let bytes = std::fs::read(&place).map_err(|why| format!("cannot read {path}: {why}"))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        files.push(SourceFile { path, text });
    }
    if files.is_empty() {
        return Err("git knows no files here".to_owned());
    }
    Ok(files)
}

/// The output of a program, which must succeed.
pub fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let done = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|why| format!("cannot run {program}: {why}"))?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(format!("{program} {arguments:?}: {words}"));
    }
    Ok(done.stdout)
}

/// The program to test: `$PROVOST`, or the one that cargo builds beside this one.
pub fn program() -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os("PROVOST") {
        return Ok(program.into());
    }
    let not_built = "the program to test cannot be built";
    let own = std::env::current_exe().map_err(|why| format!("{not_built}: {why}"))?;
    // Beside this one, wherever that is: a second target directory would build everything anew.
    let target = own.ancestors().nth(2).ok_or(not_built)?;
    let built = Command::new(cargo())
        .args(["build", "--quiet", "--package", "provost", "--target-dir"])
        .arg(target)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(not_built.to_owned());
    }
    Ok(own.with_file_name("provost"))
}

/// The cargo that runs this task.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
