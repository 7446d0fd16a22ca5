//! Writes files that the user names, and never through a link that came with a checkout.

use std::fs;
use std::path::{Component, Path, PathBuf};

use provost_core::code::Code;

use crate::answer::Failure;
use crate::show::one_line;

/// Writes `bytes` to `file`; replaces an existing file.
pub fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    unlinked(file)?;
    fs::write(file, bytes).map_err(|error| Failure::of(Code::HostFailed, &error).about(file))
}

/// Refuses a path that leads through a symbolic link in a checkout.
///
/// Links above a checkout are the user's own.
pub fn unlinked(path: &Path) -> Result<(), Failure> {
    let here = std::env::current_dir();
    let here = here.map_err(|error| Failure::of(Code::HostFailed, &error))?;
    match link_in_checkout(&here.join(path)) {
        None => Ok(()),
        Some(link) => {
            let shown = one_line(&link.display().to_string());
            let reason = format!("`{shown}` is a symbolic link, and nothing is written through it");
            Err(Failure::new(Code::LinkRefused, reason).hint(format!(
                "ls -l {shown}; replace the link by a directory of its own, or name another file"
            )))
        }
    }
}

/// The first link on the absolute `path` that lies in a checkout.
fn link_in_checkout(path: &Path) -> Option<PathBuf> {
    let is_top = |place: &Path| place.join(".git").symlink_metadata().is_ok();
    let mut prefix = PathBuf::new();
    let mut inside = false;
    for part in path.components() {
        prefix.push(part);
        if part == Component::ParentDir {
            // `..` may lead out of the checkout.
            let real = prefix.canonicalize().unwrap_or_else(|_| prefix.clone());
            inside = real.ancestors().any(is_top);
            continue;
        }
        let found = prefix.symlink_metadata();
        if inside && found.is_ok_and(|found| found.is_symlink()) {
            return Some(prefix);
        }
        inside |= is_top(&prefix);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_links_in_a_checkout_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().canonicalize().unwrap();
        for name in ["repo/.git", "repo/deep/er", "out"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        symlink("../out", top.join("repo/away")).unwrap();
        symlink("../../../out/file", top.join("repo/deep/er/file")).unwrap();
        symlink("repo", top.join("mine")).unwrap();
        let cases = [
            ("repo/plain", None),
            ("repo/new/plain", None),
            ("repo/away", Some("repo/away")),
            ("repo/away/x", Some("repo/away")),
            ("repo/deep/er/file", Some("repo/deep/er/file")),
            ("repo/deep/er/../../away/x", Some("repo/deep/er/../../away")),
            ("mine/plain", None),
            ("mine/away/x", Some("mine/away")),
            ("repo/../mine/plain", None),
            ("out/file", None),
        ];
        for (path, want) in cases {
            let want = want.map(|want| top.join(want));
            assert_eq!(link_in_checkout(&top.join(path)), want, "{path}");
        }
    }
}
