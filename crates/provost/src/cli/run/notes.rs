//! Notes for a person before a run begins: suspicious, but not wrong.

use std::path::Path;

use provost_core::path::RawPath;
use provost_core::run::fact::Opened;
use provost_core::wording::counted;
use provost_host::git::land;

use super::{PolicyOrigin, Run};
use crate::cli::init::trial;
use crate::places::Places;

/// The notes, one line each; what cannot be determined is omitted.
pub(super) fn notes(
    run: &Run,
    place: &Places,
    opened: &Opened,
    policy: PolicyOrigin,
) -> Vec<String> {
    let base = &opened.base_commit;
    let Some(checkout) = place.repo.checkout() else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    if let Ok(here) = std::env::current_dir() {
        let paths = run.allow.iter().chain(&run.forbid);
        notes.extend(paths.filter_map(|path| misplaced(path, checkout, &here)));
    }
    let paths = land::uncommitted(&place.repo, checkout).unwrap_or_default();
    notes.extend(uncommitted(&paths, base.short(), policy));
    let accept = opened.contract.acceptance_tests.iter();
    let accept: Vec<String> = accept.map(|test| test.cmd.clone()).collect();
    notes.extend(trial::noted(place, &accept, base));
    notes
}

/// A path that exists relative to the current directory, and not from the top.
fn misplaced(path: &str, checkout: &Path, here: &Path) -> Option<String> {
    let prefix = here.strip_prefix(checkout).ok()?;
    let plain = path.trim_start_matches("./");
    if prefix.as_os_str().is_empty() || plain.starts_with('/') {
        return None;
    }
    let meant = prefix.join(plain);
    if checkout.join(plain).exists() || !checkout.join(&meant).exists() {
        return None;
    }
    let meant = meant.display();
    Some(format!(
        "`{path}` does not exist at the top of the repository; did you mean `{meant}`?"
    ))
}

fn uncommitted(paths: &[RawPath], base: &str, policy: PolicyOrigin) -> Vec<String> {
    let is_policy = |path: &&RawPath| path.as_bytes() == b"provost.toml";
    let changed = paths.iter().any(|path| is_policy(&path));
    let others = paths.len() - usize::from(changed);
    let mut notes = Vec::new();
    if others > 0 {
        let what = counted(others, "uncommitted path");
        notes.push(format!(
            "your checkout has {what}; the agent starts from {base} without uncommitted work"
        ));
    }
    if policy == PolicyOrigin::Init {
        let note = "provost.toml is used as `provost init` wrote it; commit it, so that it counts for \
                    everyone";
        notes.push(note.to_owned());
    } else if changed {
        notes.push(format!(
            "provost.toml is not committed in its current form; the policy and the defaults of [run] \
             are read from {base}"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_was_meant_from_here_is_named_in_full() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        std::fs::create_dir_all(top.join("src/deep")).unwrap();
        std::fs::write(top.join("src/deep/a.py"), "").unwrap();
        std::fs::write(top.join("b.py"), "").unwrap();
        std::fs::write(top.join("src/deep/b.py"), "").unwrap();
        let deep = top.join("src/deep");
        let note = |path: &str, here: &Path| misplaced(path, top, here);
        assert!(note("a.py", &deep).unwrap().contains("`src/deep/a.py`"));
        assert!(note("./a.py", &deep).unwrap().contains("`src/deep/a.py`"));
        assert_eq!(note("b.py", &deep), None, "it is at the top, too");
        assert_eq!(note("new.py", &deep), None, "it is nowhere");
        assert_eq!(note("a.py", top), None, "it is nowhere");
    }

    #[test]
    fn what_the_agent_will_not_see_is_said() {
        let paths = |names: &[&str]| -> Vec<RawPath> {
            names
                .iter()
                .map(|name| RawPath::new(name.as_bytes()))
                .collect()
        };
        let say = |names: &[&str]| uncommitted(&paths(names), "abc", PolicyOrigin::Base).join("\n");
        assert_eq!(say(&[]), "");
        insta::assert_snapshot!(say(&["a", "provost.toml"]), @r"
        your checkout has 1 uncommitted path; the agent starts from abc without uncommitted work
        provost.toml is not committed in its current form; the policy and the defaults of [run] are read from abc
        ");
        let note = uncommitted(&paths(&["provost.toml"]), "abc", PolicyOrigin::Init);
        assert_eq!(note.len(), 1, "{note:?}");
        assert!(note[0].contains("as `provost init` wrote it"), "{note:?}");
        insta::assert_snapshot!(
            say(&["a", "b"]),
            @"your checkout has 2 uncommitted paths; the agent starts from abc without uncommitted work"
        );
    }
}
