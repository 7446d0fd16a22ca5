//! The same as an ordinary user, when the tests run as root.

use super::{Contained, Harms, Refused, Untried, check_in};
use crate::stage::{Stage, is_root, lacks};

/// A stage of an ordinary user, if this process can become one.
fn stage() -> Option<Stage> {
    if !is_root() {
        // Nothing is missing: all other tests run as an ordinary user then.
        return None;
    }
    if lacks("setpriv") {
        return None;
    }
    let stage = Stage::of_nobody();
    stage.copy_binary();
    Some(stage)
}

#[test]
fn an_ordinary_user_has_the_same_restrictions() {
    let cases = [
        ("honest", ":", Contained, Untried),
        (
            "path",
            "mkdir -p @OUTSIDE@; echo owned > @OUTSIDE@/canary",
            Contained,
            Harms,
        ),
        (
            "hook",
            "echo owned > @REPO@/.git/hooks/post-checkout",
            Contained,
            Harms,
        ),
        (
            "secret",
            "grep -q xyzzy @OUTSIDE@/secret && echo LOOT",
            Contained,
            Harms,
        ),
        (
            "hidden",
            "git update-index --skip-worktree docs/readme.md; echo owned > docs/readme.md",
            Refused(&[("out_of_scope", "docs/readme.md")]),
            Untried,
        ),
        (
            "unreadable",
            "mkdir src/shut; echo x > src/shut/x; echo x > src/y; chmod 0 src/shut src/y",
            Refused(&[("unverifiable", "src/shut"), ("unverifiable", "src/y")]),
            Untried,
        ),
    ];
    for (name, script, want, plainly) in cases {
        let Some(stage) = stage() else { return };
        check_in(&stage, name, script, &want, plainly);
    }
}
