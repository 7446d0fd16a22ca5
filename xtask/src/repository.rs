//! The files of the repository, and the programs that are asked about it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// A file of the repository, with its path from the root.
#[derive(Debug, Clone)]
pub struct SourceFile {
    pub path: String,
    /// Its content; invalid UTF-8 is replaced.
    pub text: String,
}

/// The files that git tracks, and new ones that it does not ignore.
pub fn files(root: &Path) -> Result<Vec<SourceFile>> {
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
        return Err("git knows no files here".into());
    }
    Ok(files)
}

/// The output of a program, which must succeed.
pub fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<Vec<u8>> {
    run(Command::new(program).args(arguments).current_dir(root))
}

/// Runs ordinary git in `directory`, without the configuration of this machine.
pub fn git(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let settings = [
        "user.name=a",
        "user.email=a@b",
        "gc.auto=0",
        "commit.gpgSign=false",
    ];
    let mut command = Command::new("git");
    for setting in settings {
        command.args(["-c", setting]);
    }
    command
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    run(&mut command)
}

/// Runs `command` without input; it must succeed.
pub fn run(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().display().to_string();
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|why| format!("cannot run {program}: {why}"))?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(format!("{program}: {words}").into());
    }
    Ok(done.stdout)
}

/// The program to test: `$PROVOST`, or the one that cargo builds beside this one.
pub fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os("PROVOST") {
        return Ok(program.into());
    }
    let own = std::env::current_exe()?;
    // Beside this one, wherever that is: a second target directory would build everything anew.
    let target = own.ancestors().nth(2).ok_or("no target directory")?;
    let built = Command::new(cargo())
        .args(["build", "--quiet", "--package", "provost", "--target-dir"])
        .arg(target)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the program to test cannot be built".into());
    }
    Ok(own.with_file_name("provost"))
}

/// The cargo that runs this task.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
