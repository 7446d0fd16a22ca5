//! Agents that mean harm. Each is contained or refused, and leaves no trace.
//!
//! An attack that reaches for something outside is also run plainly, without the sandbox, where it
//! must succeed: an attack that cannot succeed shows nothing.

mod answers;
mod hidden;
mod lures;
mod outside;
mod strange;
mod user;

use crate::stage::{Ask, Outcome, Stage, lacks};

/// The outcome that an attack must have.
pub(super) enum Want {
    /// It has no effect: what remains is an honest change of one file.
    Contained,
    /// The verdict has this code.
    Code(&'static str),
    /// The diff gate names these reasons and paths, among others.
    Refused(&'static [(&'static str, &'static str)]),
}

/// What the same attack does without the sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plainly {
    /// Nothing that could be compared.
    Untried,
    /// It changes something outside, or prints `LOOT`.
    Harms,
    /// Git does not see what it did in `docs`.
    FoolsGit,
}

use Plainly::{FoolsGit, Harms, Untried};
use Want::{Code, Contained, Refused};

/// One test for each attack: its name, its script, what is wanted, what it does without the sandbox.
macro_rules! attacks {
    ($($name:ident: $script:expr => $want:expr, $plainly:expr;)+) => {
        $(
            #[test]
            fn $name() {
                $crate::hostile::check(stringify!($name), $script, &$want, $plainly);
            }
        )+
    };
}
use attacks;

/// The script, and then the honest change that it hides behind.
fn whole(script: &str) -> String {
    if script.starts_with("#!python") {
        format!("{script}\nopen('src/a.txt', 'w').write('good\\n')\n")
    } else {
        format!("{script}\necho good > src/a.txt\n")
    }
}

pub(super) fn check(name: &str, script: &str, want: &Want, plainly: Plainly) {
    if !(script.starts_with("#!python") && lacks("python3")) {
        check_in(&Stage::new(), name, script, want, plainly);
    }
}

pub(super) fn check_in(stage: &Stage, name: &str, script: &str, want: &Want, plainly: Plainly) {
    let script = whole(script);
    let before = stage.surroundings();
    let outcome = stage.run(&script, &Ask::default());
    check_verdict(name, &outcome, want);
    assert!(
        !stage.printed().contains("LOOT"),
        "{name}: it got something"
    );
    stage.take_away_left(&outcome);
    stage.assert_clean(&before, name);
    let verified = stage.verify(outcome.text("run_id"));
    assert_eq!(verified.exit, 0, "{name}: {verified:?}");
    if plainly == Untried {
        return;
    }
    let before = stage.surroundings();
    let output = stage.run_plainly(&script, "plain");
    let looted = String::from_utf8_lossy(&output.stdout).contains("LOOT");
    if plainly == Harms {
        let changed = !before.differences(&stage.surroundings()).is_empty();
        assert!(
            changed || looted,
            "{name}: harmless without the sandbox: {output:?}"
        );
    } else {
        let seen = stage.git_in("plain", &["status", "--porcelain"]);
        assert!(!seen.contains("docs"), "{name}: git is not fooled: {seen}");
    }
}

fn check_verdict(name: &str, outcome: &Outcome, want: &Want) {
    match want {
        Contained => {
            assert_eq!(outcome.code(), "OK", "{name}: {outcome:?}");
            assert_eq!(outcome.exit, 0, "{name}");
            let changed = &outcome.json["changed_files"];
            assert_eq!(*changed, serde_json::json!(["src/a.txt"]), "{name}");
        }
        Code(code) => {
            assert_eq!(outcome.code(), *code, "{name}: {outcome:?}");
            assert_eq!(outcome.exit, 1, "{name}");
        }
        Refused(findings) => {
            assert_eq!(outcome.code(), "DIFF_REFUSED", "{name}: {outcome:?}");
            assert_eq!(outcome.exit, 1, "{name}");
            let found = outcome.findings();
            for (reason, path) in *findings {
                let one = ((*reason).to_owned(), (*path).to_owned());
                assert!(found.contains(&one), "{name}: no {one:?} in {found:?}");
            }
        }
    }
}
