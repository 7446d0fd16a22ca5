//! Repositories, agents and places that a run cannot begin with, and some that only look like that.
//!
//! Every request gets an answer in words, and no checkout differs afterwards.

use std::fs;

use provost_core::code::Code;

use provost_testkit::stage::Stage;

use crate::stage::{Refusal as _, Watched as _, assert_same, good_run, stage};

/// The outcome of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The run is accepted.
    Accepted,
    /// It does not begin, and nothing is written.
    Refused(i32, Code),
}

/// A repository, or a request to it.
struct Case {
    name: &'static str,
    /// Makes it, and says in which directory of the stage it is.
    make: fn(&Stage) -> &'static str,
    /// What is asked beside the words of a good run; a later word takes the place of an earlier.
    more: &'static [&'static str],
    end: End,
}

fn plain(_: &Stage) -> &'static str {
    "repo"
}

fn empty(stage: &Stage) -> &'static str {
    fs::create_dir(stage.path("empty")).unwrap();
    stage.git_in("empty", &["init", "--quiet"]);
    "empty"
}

fn no_repository(stage: &Stage) -> &'static str {
    fs::create_dir(stage.path("nothing")).unwrap();
    "nothing"
}

fn cloned(stage: &Stage, options: &[&str]) -> &'static str {
    let from = format!("file://{}", stage.path("repo").display());
    let mut words = vec!["clone", "--quiet"];
    words.extend(options);
    words.extend([from.as_str(), "../clone"]);
    stage.git(&words);
    "clone"
}

fn bare(stage: &Stage) -> &'static str {
    cloned(stage, &["--bare"])
}

fn shallow(stage: &Stage) -> &'static str {
    fs::write(stage.path("repo/src/old"), "older\n").unwrap();
    stage.commit(&[]);
    cloned(stage, &["--depth=1"])
}

fn submodule(stage: &Stage) -> &'static str {
    cloned(stage, &[]);
    let from = stage.path("clone").display().to_string();
    stage.git(&["submodule", "--quiet", "add", &from, "sub"]);
    stage.commit(&[]);
    "repo"
}

/// The pointers are files like others; the filter would fail if git called it.
fn large_files(stage: &Stage) -> &'static str {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
    fs::write(stage.path("repo/big.bin"), pointer).unwrap();
    stage.commit(&[]);
    let attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
    fs::write(stage.path("repo/.gitattributes"), attributes).unwrap();
    stage.git(&["add", ".gitattributes"]);
    stage.git(&["commit", "--quiet", "--message=attributes"]);
    for name in ["smudge", "clean"] {
        stage.git(&["config", &format!("filter.lfs.{name}"), "false"]);
    }
    stage.git(&["config", "filter.lfs.required", "true"]);
    "repo"
}

fn detached(stage: &Stage) -> &'static str {
    stage.git(&["checkout", "--quiet", "--detach"]);
    "repo"
}

/// A branch without a commit, in a repository that has some.
fn unborn(stage: &Stage) -> &'static str {
    stage.git(&["checkout", "--quiet", "--orphan", "unborn"]);
    "repo"
}

/// A rebase that waits for the user to settle a conflict.
fn rebasing(stage: &Stage) -> &'static str {
    stage.git(&["checkout", "--quiet", "-b", "other"]);
    fs::write(stage.path("repo/src/old"), "other\n").unwrap();
    stage.commit(&[]);
    stage.git(&["checkout", "--quiet", "main"]);
    fs::write(stage.path("repo/src/old"), "main\n").unwrap();
    stage.commit(&[]);
    let mut rebase = stage.command("git");
    rebase.args(["rebase", "other"]);
    let rebase = stage.spawn(rebase).wait();
    assert_ne!(rebase.exit, 0, "{rebase:?}");
    assert!(stage.path("repo/.git/rebase-merge").is_dir());
    "repo"
}

fn branch_in_the_way(stage: &Stage) -> &'static str {
    stage.git(&["branch", "provost"]);
    "repo"
}

const NOT_FOUND: End = End::Refused(2, Code::NotFound);
const USAGE: End = End::Refused(2, Code::UsageError);

const fn case(
    name: &'static str,
    make: fn(&Stage) -> &'static str,
    more: &'static [&'static str],
    end: End,
) -> Case {
    Case {
        name,
        make,
        more,
        end,
    }
}

const CASES: &[Case] = &[
    case("a good one", plain, &[], End::Accepted),
    case("no base", plain, &["--base", "nowhere"], NOT_FOUND),
    case("an empty base", plain, &["--base", ""], USAGE),
    case("a tree", plain, &["--base", "HEAD^{tree}"], NOT_FOUND),
    case("a file", plain, &["--base", "HEAD:check.sh"], NOT_FOUND),
    case("an option", plain, &["--base=--all"], USAGE),
    case("a range", plain, &["--base", "HEAD..HEAD"], NOT_FOUND),
    case("no commits", empty, &[], NOT_FOUND),
    case(
        "no repository",
        no_repository,
        &[],
        End::Refused(2, Code::NotARepository),
    ),
    case("bare", bare, &[], End::Accepted),
    case("shallow", shallow, &[], End::Accepted),
    case("a submodule", submodule, &[], End::Accepted),
    case("large files", large_files, &[], End::Accepted),
    case("a detached head", detached, &[], USAGE),
    case(
        "a detached head, and a target",
        detached,
        &["--target", "main"],
        End::Accepted,
    ),
    case("an unborn head", unborn, &[], NOT_FOUND),
    case(
        "an unborn head, and a base",
        unborn,
        &["--base", "main"],
        NOT_FOUND,
    ),
    case(
        "an unborn head, a base and a target",
        unborn,
        &["--base", "main", "--target", "main"],
        End::Accepted,
    ),
    case("a running rebase", rebasing, &[], USAGE),
    case(
        "a running rebase, and a target",
        rebasing,
        &["--target", "main"],
        End::Accepted,
    ),
    case("a branch where results go", branch_in_the_way, &[], USAGE),
    case(
        "a target that is none",
        plain,
        &["--target", "nowhere"],
        NOT_FOUND,
    ),
];

/// Calls a good run with `more`, and checks the outcome.
fn check(stage: &Stage, case: &Case, directory: &str) {
    let name = case.name;
    if matches!(case.end, End::Accepted) && !stage.has_sandbox() {
        return;
    }
    let before = stage.checkout(directory);
    let all = [directory, "cache", "config/keys"].map(|place| stage.listing(place));
    let mut words = good_run().to_vec();
    words.extend(case.more);
    let mut command = stage.provost(&words);
    command.current_dir(stage.path(directory));
    let seen = stage.spawn(command).measured(name);
    match case.end {
        End::Refused(exit, code) => {
            assert_eq!(seen.verdict(name), (exit, code), "{name}: {seen:?}");
            for (place, before) in [directory, "cache", "config/keys"].iter().zip(all) {
                assert_same(&before, &stage.listing(place), name);
            }
        }
        End::Accepted => {
            assert_eq!(seen.exit, 0, "{name}: {seen:?}");
            assert_same(&before, &stage.checkout(directory), name);
            stage.assert_nothing_is_held(directory, name);
        }
    }
}

#[test]
fn every_kind_of_repository_works_or_is_refused_in_words() {
    for case in CASES {
        let stage = stage();
        let directory = (case.make)(&stage);
        check(&stage, case, directory);
    }
}

/// An agent or a list of commands that cannot work, and how that is answered.
#[test]
fn a_missing_agent_or_command_is_named() {
    let begins: [(&[&str], &str, &str); 3] = [
        (
            &["--accept", "./check.sh", "--agent-cmd", "nowhere-at-all"],
            "AGENT_FAILED",
            "nowhere-at-all",
        ),
        (
            &["--accept", "./check.sh", "--agent-cmd", "./none.sh"],
            "AGENT_FAILED",
            "./none.sh",
        ),
        (
            &["--accept", "./none.sh", "--agent-cmd", "true"],
            "ACCEPTANCE_UNSTARTABLE",
            "./none.sh",
        ),
    ];
    let stage = stage();
    let before = stage.checkout("repo");
    for (words, code, name) in begins {
        let words = [&["--json", "run", "do it", "--allow", "src"], words].concat();
        let seen = stage.call(&words, name);
        let answer = &seen.json;
        let verdict = &answer["verdict"];
        assert_eq!(seen.exit, 1, "{words:?}: {seen:?}");
        assert_eq!(verdict["code"], code, "{words:?}: {answer}");
        assert!(
            verdict["reason"].as_str().unwrap().contains(name),
            "{answer}"
        );
        assert_same(&before, &stage.checkout("repo"), name);
        stage.assert_nothing_is_held("repo", name);
    }
    let missing: [(&[&str], Code); 5] = [
        (&["--agent-cmd", "true"], Code::UsageError),
        (&["--accept", "", "--agent-cmd", "true"], Code::UsageError),
        (
            &["--accept", "./check.sh", "--agent-cmd", ""],
            Code::UsageError,
        ),
        (
            &["--accept", "./check.sh", "--agent", "missing"],
            Code::NotFound,
        ),
        (&["--accept", "./check.sh"], Code::UsageError),
    ];
    let places = ["repo", "cache", "config/keys"];
    for (words, code) in missing {
        let all = places.map(|place| stage.listing(place));
        let words = [&["--json", "run", "do it", "--allow", "src"], words].concat();
        let what = format!("{words:?}");
        let seen = stage.call(&words, &what);
        assert_eq!(seen.verdict(&what), (2, code), "{what}: {seen:?}");
        for (place, before) in places.iter().zip(all) {
            assert_same(&before, &stage.listing(place), &what);
        }
    }
}
