use std::sync::LazyLock;

use proptest::prelude::*;

use super::Reason::{
    Empty, ForbiddenAction, InlineCode, Metacharacter, Network, NotInAllowlist, PathEscape,
    Unparsable,
};
use super::*;

static SHIPPED: LazyLock<CommandPolicy> = LazyLock::new(|| CommandPolicy::shipped().unwrap());

fn shipped() -> &'static CommandPolicy {
    &SHIPPED
}

#[test]
fn useful_checks_may_run() {
    let policy = shipped();
    let allowed = [
        "pytest",
        "pytest -i x",
        "pytest -p plugin -k 'not slow' app/tests/test.env_loader.py",
        "pytest 'tests/test_a.py::test[x]'",
        "python3 -X dev -m pytest",
        "python tools/check.py",
        "npm run test:unit -- --bail",
        "cargo test --workspace -- --nocapture",
        "cargo fmt --all -- --check",
        "go test ./... -run TestA",
        "bash -euo pipefail scripts/test.sh",
        "node --test tests/a.test.js",
        "git diff --exit-code HEAD~1",
        "git log main..HEAD --oneline -C -c",
        "pytest --junitxml=/dev/null",
    ];
    for text in allowed {
        assert_eq!(reasons(text, policy, Trust::FromFile), [], "{text}");
    }
}

#[test]
fn everything_wrong_is_listed() {
    let policy = shipped();
    let cases: [(&str, &[Reason]); 35] = [
        ("", &[Empty]),
        ("  \t", &[Empty]),
        ("''", &[Empty]),
        ("'' pytest", &[Empty]),
        ("make", &[NotInAllowlist]),
        ("env pytest", &[NotInAllowlist]),
        ("PYTHONPATH=. pytest", &[Metacharacter, NotInAllowlist]),
        ("./pytest", &[NotInAllowlist]),
        ("/usr/bin/pytest", &[NotInAllowlist, PathEscape]),
        (
            "pytest | sudo tee x",
            &[Metacharacter, NotInAllowlist, ForbiddenAction],
        ),
        ("pytest 'x", &[Unparsable]),
        ("sudo pytest", &[NotInAllowlist, ForbiddenAction]),
        ("env -i sudo pytest", &[NotInAllowlist, ForbiddenAction]),
        (
            "/bin/su root",
            &[NotInAllowlist, ForbiddenAction, PathEscape],
        ),
        (
            "curl https://x",
            &[NotInAllowlist, ForbiddenAction, Network],
        ),
        ("python -m http.server", &[NotInAllowlist]),
        ("python -m pip install x", &[NotInAllowlist]),
        ("python", &[NotInAllowlist]),
        ("python -", &[NotInAllowlist]),
        ("python -Sc 1", &[NotInAllowlist, InlineCode]),
        ("bash -ec id", &[NotInAllowlist, InlineCode]),
        ("env bash -c id", &[NotInAllowlist, InlineCode]),
        ("bash -s", &[NotInAllowlist]),
        ("bash --rcfile x -c id", &[NotInAllowlist, InlineCode]),
        ("node --print 1", &[NotInAllowlist, InlineCode]),
        ("node --require ./x y.js", &[NotInAllowlist]),
        ("bash ../x.sh", &[PathEscape]),
        ("python /tmp/x.py", &[NotInAllowlist, PathEscape]),
        ("pytest -c../x.ini", &[PathEscape]),
        ("pytest -c /etc/x.ini", &[PathEscape]),
        ("pytest --cov=a,../b", &[PathEscape]),
        ("pytest '~/x'", &[PathEscape]),
        ("git diff --no-index a b", &[NotInAllowlist]),
        ("git -C .. status", &[NotInAllowlist, PathEscape]),
        ("cargo fmt", &[NotInAllowlist]),
    ];
    for (text, want) in cases {
        assert_eq!(reasons(text, policy, Trust::FromFile), want, "{text}");
        assert!(!judge(text, policy, Trust::FromFile).allow, "{text}");
    }
}

#[test]
fn a_person_may_type_what_is_not_listed_and_nothing_more() {
    let policy = shipped();
    for text in ["make test", "env pytest", "./run-tests", "python -m tox"] {
        assert!(judge(text, policy, Trust::TypedByPerson).allow, "{text}");
    }
    for text in [
        "",
        "make; id",
        "bash -c id",
        "sudo make",
        "../x",
        "make http://x",
        "make 'x",
    ] {
        assert!(!judge(text, policy, Trust::TypedByPerson).allow, "{text}");
    }
}

#[test]
fn an_allow_names_the_words_that_run() {
    let verdict = judge("pytest -k 'a b'", shipped(), Trust::FromFile);
    let details = verdict.details.unwrap();
    assert_eq!(details["argv"], json!(["pytest", "-k", "a b"]));
}

#[test]
fn a_denial_says_what_to_do() {
    let verdict = judge("make; id", shipped(), Trust::FromFile);
    assert_eq!(verdict.code, Code::CommandRefused);
    assert!(
        verdict.reason.contains("single quotes"),
        "{}",
        verdict.reason
    );
    let details = verdict.details.unwrap();
    assert_eq!(
        details["reasons"],
        json!(["metacharacter", "not_in_allowlist"])
    );
    assert_eq!(details["findings"].as_array().unwrap().len(), 3);
}

proptest! {
    #[test]
    fn no_text_stops_the_gate(text in "\\PC{0,60}|[ -~\\n\\t]{0,60}") {
        let _ = judge(&text, shipped(), Trust::FromFile);
    }

    #[test]
    fn what_is_allowed_is_exactly_the_words_of_a_shell(tail in "[ a-z'\"$;|-]{0,20}") {
        let text = format!("pytest {tail}");
        let verdict = judge(&text, shipped(), Trust::FromFile);
        if verdict.allow {
            let argv = split(&text).unwrap();
            prop_assert_eq!(&verdict.details.unwrap()["argv"], &json!(argv));
        }
    }
}
