//! Makes what is published: a tarball and a Debian package, each with the program, its manual pages,
//! completions for shells, and a profile for distributions where `AppArmor` restricts user
//! namespaces.
//!
//! Both have the same content for the same program and the same commit: names are sorted, owners
//! are root, times are that of the commit.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Since Ubuntu 23.10 only programs with such a profile may create user namespaces.
const APPARMOR: &str = include_str!("dist/apparmor");
/// Loads the profile, where there is `AppArmor`.
const POSTINST: &str = include_str!("dist/postinst");
const COPYRIGHT: &str = include_str!("dist/copyright");

/// Why nothing was made; the message names the step.
pub type DistError = String;

/// Where the archives are put.
pub fn target() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    given.unwrap_or_else(|| "target".into()).join("dist")
}

/// Builds the program with the profile of published ones.
pub fn build() -> Result<PathBuf, DistError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = [
        "build",
        "--locked",
        "--profile",
        "dist",
        "--package",
        "provost",
    ];
    let status = Command::new(cargo).args(words).status();
    match status {
        Ok(status) if status.success() => Ok(target().join("provost")),
        Ok(status) => Err(format!("cargo: {status}")),
        Err(why) => Err(format!("cargo: {why}")),
    }
}

/// Makes both archives of `program` in `target`, and returns their paths.
pub fn make(root: &Path, program: &Path, target: &Path) -> Result<[PathBuf; 2], DistError> {
    let version = output(Command::new(program).arg("--version"))?;
    let version = version.split_whitespace().nth(1).unwrap_or("0").to_owned();
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let time = output(
        Command::new("git")
            .args(["log", "-1", "--format=%ct"])
            .current_dir(root),
    )?;
    let name = format!("provost-{version}-{}-linux", std::env::consts::ARCH);
    let tree = target.join(&name);
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|why| format!("{}: {why}", tree.display()))?;
    }
    lay_out(root, program, &tree)?;
    let tarball = target.join(format!("{name}.tar.gz"));
    let sorted = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
    run(Command::new("tar")
        .args(sorted)
        .arg(format!("--mtime=@{}", time.trim()))
        .args(["--use-compress-program", "gzip -9n", "-cf"])
        .arg(&tarball)
        .arg("-C")
        .arg(target)
        .arg(&name))?;
    control(&tree, &version, architecture)?;
    let package = target.join(format!("provost_{version}_{architecture}.deb"));
    run(Command::new("dpkg-deb")
        .env("SOURCE_DATE_EPOCH", time.trim())
        .args(["--root-owner-group", "--build"])
        .arg(&tree)
        .arg(&package))?;
    Ok([tarball, package])
}

/// The files of both archives, below `tree`.
fn lay_out(root: &Path, program: &Path, tree: &Path) -> Result<(), DistError> {
    let bytes = fs::read(program).map_err(|why| format!("{}: {why}", program.display()))?;
    write(&tree.join("usr/bin/provost"), &bytes, 0o755)?;
    let completions = |words: &[&str]| {
        let mut command = Command::new(program);
        output(command.arg("completions").args(words))
    };
    let share = tree.join("usr/share");
    for (shell, place) in [
        ("bash", "bash-completion/completions/provost"),
        ("zsh", "zsh/vendor-completions/_provost"),
        ("fish", "fish/vendor_completions.d/provost.fish"),
    ] {
        write(&share.join(place), completions(&[shell])?.as_bytes(), 0o644)?;
    }
    let manual = share.join("man/man1");
    manual_page(&manual.join("provost.1"), &completions(&["man"])?)?;
    for command in commands(program)? {
        let page = completions(&["man", &command])?;
        manual_page(&manual.join(format!("provost-{command}.1")), &page)?;
    }
    let profile = tree.join("etc/apparmor.d/provost");
    write(&profile, APPARMOR.as_bytes(), 0o644)?;
    let docs = share.join("doc/provost");
    write(&docs.join("copyright"), COPYRIGHT.as_bytes(), 0o644)?;
    for page in ["README.md", "CHANGELOG.md", "SHORTCOMINGS.md"] {
        let bytes = fs::read(root.join(page)).map_err(|why| format!("{page}: {why}"))?;
        write(&docs.join(page), &bytes, 0o644)?;
    }
    Ok(())
}

/// The commands that `provost help --all` lists.
fn commands(program: &Path) -> Result<Vec<String>, DistError> {
    let help = output(Command::new(program).args(["help", "--all"]))?;
    let list = help.split("\nOptions:\n").next().unwrap_or_default();
    let names = list.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split_whitespace().next()?;
        Some(name.to_owned())
    });
    Ok(names.collect())
}

/// What makes a Debian package of the tree.
fn control(tree: &Path, version: &str, architecture: &str) -> Result<(), DistError> {
    // A program runs with the C library of the machine that built it, and with later ones.
    let libc = output(Command::new("dpkg-query").args(["-W", "-f", "${Version}", "libc6"]))?;
    let libc = libc.split(['-', '+']).next().unwrap_or_default();
    let text = format!(
        "Package: provost\nVersion: {version}\nArchitecture: {architecture}\n\
         Maintainer: Provost <provost@localhost>\nSection: devel\nPriority: optional\n\
         Depends: libc6 (>= {libc}), libgcc-s1, git\n\
         Description: run coding agents under a contract, with sealed evidence\n \
         Provost runs an agent in a sandbox on a private checkout, decides by what it\n \
         left on disk, runs the acceptance commands itself and seals the evidence.\n"
    );
    let directory = tree.join("DEBIAN");
    write(&directory.join("control"), text.as_bytes(), 0o644)?;
    write(
        &directory.join("conffiles"),
        b"/etc/apparmor.d/provost\n",
        0o644,
    )?;
    write(&directory.join("postinst"), POSTINST.as_bytes(), 0o755)
}

fn manual_page(path: &Path, page: &str) -> Result<(), DistError> {
    write(path, page.as_bytes(), 0o644)?;
    run(Command::new("gzip").args(["-9n"]).arg(path))
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), DistError> {
    let written = || -> io::Result<()> {
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        fs::write(path, bytes)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    written().map_err(|why| format!("{}: {why}", path.display()))
}

fn run(command: &mut Command) -> Result<(), DistError> {
    output(command).map(|_| ())
}

/// What `command` prints on its standard output.
fn output(command: &mut Command) -> Result<String, DistError> {
    let name = command.get_program().display().to_string();
    let done = command
        .stdin(Stdio::null())
        .output()
        .map_err(|why| format!("{name}: {why}"))?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{name}: {}: {}", done.status, words.trim()));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands in for the program: it prints what was asked.
    const PROGRAM: &str = "#!/bin/sh\ncase $1 in\n--version) echo provost 1.2.3 ;;\n\
        help) printf 'Usage\\n  run     Run\\n  land    Land\\n\\nOptions:\\n  --json\\n' ;;\n\
        *) echo \"$*\" ;;\nesac\n";

    #[test]
    fn both_archives_hold_the_same_files_every_time() {
        if provost_testkit::lacks(&["dpkg-deb", "dpkg-query", "gzip", "tar"]) {
            return;
        }
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("program");
        write(&program, PROGRAM.as_bytes(), 0o755).unwrap();
        let mut bytes = Vec::new();
        for turn in ["one", "two"] {
            let target = place.path().join(turn);
            fs::create_dir(&target).unwrap();
            let [tarball, package] = make(root, &program, &target).unwrap();
            bytes.push([fs::read(&tarball).unwrap(), fs::read(&package).unwrap()]);
            let listed = output(Command::new("tar").arg("-tzf").arg(&tarball)).unwrap();
            let packed = output(Command::new("dpkg-deb").arg("-c").arg(&package)).unwrap();
            for file in [
                "usr/bin/provost",
                "usr/share/man/man1/provost.1.gz",
                "usr/share/man/man1/provost-land.1.gz",
                "usr/share/bash-completion/completions/provost",
                "usr/share/zsh/vendor-completions/_provost",
                "usr/share/fish/vendor_completions.d/provost.fish",
                "etc/apparmor.d/provost",
                "usr/share/doc/provost/README.md",
            ] {
                let in_tarball = format!("provost-1.2.3-{}-linux/{file}\n", std::env::consts::ARCH);
                assert!(listed.contains(&in_tarball), "{file}: {listed}");
                assert!(packed.contains(&format!(" ./{file}\n")), "{file}: {packed}");
            }
            assert!(!listed.contains("DEBIAN"), "{listed}");
        }
        assert!(bytes[0] == bytes[1], "two archives of one program differ");
    }
}
