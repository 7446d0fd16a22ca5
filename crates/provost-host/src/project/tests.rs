use std::fs;
use std::path::Path;

use super::policy_text::{self, FirstAgent};
use super::*;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (file, text) in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The project that these files make, where every program but `missing` exists.
fn recognised(files: &[(&str, &str)], missing: &str) -> Project {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), files);
    recognise(root.path(), &|program| program != missing)
}

/// Files with their text, the kinds of project they make, its commands, and what may be written.
type Case<'a> = (
    &'a [(&'a str, &'a str)],
    &'a [&'a str],
    &'a [&'a str],
    &'a [&'a str],
);

fn check(cases: &[Case<'_>]) {
    for (files, kinds, accept, allow) in cases {
        let project = recognised(files, "");
        let found: Vec<&str> = project.kinds.iter().map(|kind| kind.kind).collect();
        assert_eq!(found, *kinds, "{files:?}: {:?}", project.passed_over);
        assert_eq!(project.accept, *accept, "{files:?}");
        assert_eq!(project.sources.allow, *allow, "{files:?}");
    }
}

const SCRIPT: &str = r#"{"scripts": {"test": "node --test"}}"#;
const UNITTEST: &str = "import unittest\n";

const SMALL: &[Case<'static>] = &[
    (
        &[
            ("Cargo.toml", ""),
            ("src/lib.rs", ""),
            ("tests/a.rs", ""),
            ("Makefile", "test:\n"),
        ],
        &["rust"],
        &["cargo test"],
        &["src"],
    ),
    (
        &[
            ("Cargo.toml", "[workspace]\nmembers = []\n"),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/build.rs", ""),
            ("crates/a/tests/b.rs", ""),
            ("crates/b/src/lib.rs", ""),
        ],
        &["rust"],
        &["cargo test --workspace"],
        &["crates/a/src", "crates/b"],
    ),
    (
        &[
            ("package.json", SCRIPT),
            ("index.js", ""),
            ("test/a.js", ""),
        ],
        &["node"],
        &["npm test"],
        &["index.js"],
    ),
    (
        &[
            ("package.json", "{}"),
            ("pnpm-lock.yaml", ""),
            ("lib/a.ts", ""),
        ],
        &["node"],
        &[],
        &["lib"],
    ),
    (
        &[
            ("package.json", SCRIPT),
            ("pnpm-lock.yaml", ""),
            ("lib/a.ts", ""),
        ],
        &["node"],
        &["pnpm test"],
        &["lib"],
    ),
    (
        &[
            ("package.json", SCRIPT),
            ("yarn.lock", ""),
            ("lib/a.ts", ""),
        ],
        &["node"],
        &["yarn test"],
        &["lib"],
    ),
    (
        &[("package.json", SCRIPT), ("bun.lock", ""), ("lib/a.ts", "")],
        &["node"],
        &["bun run test"],
        &["lib"],
    ),
    (
        &[("package.json", "{}"), ("a.js", ""), ("a.test.js", "")],
        &["node"],
        &["node --test"],
        &["a.js"],
    ),
    (
        &[
            ("go.mod", ""),
            ("main.go", ""),
            ("main_test.go", ""),
            ("internal/a/a.go", ""),
        ],
        &["go"],
        &["go test ./..."],
        &["internal", "main.go"],
    ),
    (
        &[
            ("pom.xml", ""),
            ("src/main/java/A.java", ""),
            ("src/test/java/ATest.java", ""),
        ],
        &["maven"],
        &["mvn test"],
        &["src/main"],
    ),
    (
        &[
            ("build.gradle.kts", ""),
            ("src/main/kotlin/A.kt", ""),
            ("gradlew", ""),
        ],
        &["gradle"],
        &["gradle --offline test"],
        &["src"],
    ),
    (
        &[
            ("Makefile", "all:\ntest: all\n"),
            ("add.c", ""),
            ("add.h", ""),
            ("test_add.c", ""),
        ],
        &["make"],
        &["make test"],
        &["add.c", "add.h"],
    ),
    (
        &[("Makefile", "check:\n"), ("add.sh", ""), ("tests/a.sh", "")],
        &["make"],
        &["make check"],
        &["add.sh"],
    ),
    (&[("Makefile", "all:\ntest:=x\n")], &[], &[], &[]),
    (
        &[
            ("CMakeLists.txt", "enable_testing()\n"),
            ("Makefile", "test:\n"),
            ("src/a.cc", ""),
            ("include/a.h", ""),
        ],
        &["cmake"],
        &[
            "cmake -S . -B build",
            "cmake --build build",
            "ctest --test-dir build --output-on-failure",
        ],
        &["include", "src"],
    ),
    (&[("README", "")], &[], &[], &[]),
];

#[test]
fn a_small_project_is_known_with_its_test_and_its_sources() {
    check(SMALL);
}

#[test]
fn a_python_project_is_tested_by_the_runner_it_uses() {
    check(&[
        (
            &[("add.py", ""), ("test_add.py", UNITTEST)],
            &["python"],
            &["python3 -m unittest"],
            &["add.py"],
        ),
        (
            &[
                ("pytest.ini", "[pytest]\n"),
                ("app/a.py", ""),
                ("tests/test_a.py", ""),
            ],
            &["python"],
            &["python3 -m pytest -q"],
            &["app"],
        ),
        (
            &[
                ("pyproject.toml", "[tool.pytest]"),
                ("src/app/a.py", ""),
                ("tests/test_a.py", ""),
            ],
            &["python"],
            &["python3 -m pytest -q -o pythonpath=src"],
            &["src"],
        ),
        (
            &[
                ("setup.py", ""),
                ("app/a.py", ""),
                ("app/tests/test_a.py", "import pytest\n"),
            ],
            &["python"],
            &["python3 -m pytest -q"],
            &["app"],
        ),
        (&[("pyproject.toml", "")], &["python"], &[], &[]),
        (
            &[
                ("a.py", ""),
                ("tests/test_a.py", UNITTEST),
                ("tests/__init__.py", ""),
            ],
            &["python"],
            &["python3 -m unittest"],
            &["a.py"],
        ),
        (
            &[("a.py", ""), ("tests/test_a.py", UNITTEST)],
            &["python"],
            &["python3 -m unittest discover -s tests"],
            &["a.py"],
        ),
        (
            &[
                ("manage.py", ""),
                ("shop/views.py", ""),
                ("shop/tests.py", ""),
            ],
            &["python"],
            &["python3 manage.py test"],
            &["shop", "manage.py"],
        ),
        (&[("tests/test_a.rb", "")], &[], &[], &[]),
    ]);
}

#[test]
fn a_web_framework_in_python_with_tools_for_its_scripts_is_python() {
    let tools = r#"{"private": true, "scripts": {"test": "grunt test"}, "devDependencies": {"eslint": "9"}}"#;
    let ci = "steps:\n  - run: npm ci && npm test\n  - run: python tests/runtests.py\n";
    let mut django = vec![
        ("package.json".to_owned(), tools),
        ("package-lock.json".to_owned(), "{}"),
        ("pyproject.toml".to_owned(), ""),
        ("Gruntfile.js".to_owned(), ""),
        (".github/workflows/tests.yml".to_owned(), ci),
        ("js_tests/admin/core.test.js".to_owned(), ""),
        ("tests/runtests.py".to_owned(), ""),
    ];
    django.extend((0..30).map(|it| (format!("django/db/m{it}.py"), "")));
    django.extend((0..4).map(|it| (format!("django/static/s{it}.js"), "")));
    let files: Vec<(&str, &str)> = django
        .iter()
        .map(|(name, text)| (name.as_str(), *text))
        .collect();
    check(&[(
        &files,
        &["python"],
        &["python3 tests/runtests.py"],
        &["django"],
    )]);
}

#[test]
fn the_weight_of_evidence_decides_between_kinds() {
    let only_lint = r#"{"scripts": {"lint": "eslint ."}, "devDependencies": {"eslint": "9"}}"#;
    check(&[
        // A package.json for a linter alone.
        (
            &[
                ("package.json", only_lint),
                ("package-lock.json", ""),
                ("eslint.config.js", ""),
            ],
            &[],
            &[],
            &[],
        ),
        (
            &[
                ("package.json", only_lint),
                ("Cargo.toml", ""),
                ("src/lib.rs", ""),
                ("web/a.js", ""),
            ],
            &["rust"],
            &["cargo test"],
            &["src"],
        ),
        // A package for node, with one script in Python.
        (
            &[
                ("package.json", SCRIPT),
                ("requirements.txt", ""),
                ("lib/a.ts", ""),
                ("lib/b.ts", ""),
                ("lib/c.ts", ""),
                ("lib/d.ts", ""),
                ("lib/e.ts", ""),
                ("lib/f.ts", ""),
                ("build.py", ""),
                ("node_modules/gyp/a.py", ""),
                ("node_modules/gyp/b.py", ""),
            ],
            &["node"],
            &["npm test"],
            &["lib"],
        ),
        // A Makefile as the front end of another build system.
        (
            &[
                ("go.mod", ""),
                ("Makefile", "test:\n"),
                ("a.go", ""),
                ("a_test.go", ""),
            ],
            &["go"],
            &["go test ./..."],
            &["a.go"],
        ),
    ]);
}

#[test]
fn several_projects_in_one_repository_are_all_tested() {
    check(&[
        (
            &[
                ("backend/Cargo.toml", ""),
                ("backend/src/main.rs", ""),
                ("backend/tests/a.rs", ""),
                ("frontend/package.json", SCRIPT),
                ("frontend/package-lock.json", ""),
                ("frontend/src/a.ts", ""),
                ("frontend/src/a.test.ts", ""),
            ],
            &["node", "rust"],
            &[
                "npm --prefix frontend test",
                "cargo test --manifest-path backend/Cargo.toml",
            ],
            &["backend/src", "frontend/src"],
        ),
        (
            &[
                ("api/go.mod", ""),
                ("api/go.sum", ""),
                ("api/a.go", ""),
                ("api/a_test.go", ""),
                ("ml/pyproject.toml", "pytest"),
                ("ml/a.py", ""),
                ("ml/tests/test_a.py", ""),
            ],
            &["go", "python"],
            &["go -C api test ./...", "python3 -m pytest -q ml"],
            &["api", "ml"],
        ),
    ]);
}

#[test]
fn a_program_that_is_missing_is_said_and_the_command_still_written() {
    let project = recognised(&[("Cargo.toml", ""), ("src/lib.rs", "")], "cargo");
    assert_eq!(project.accept, ["cargo test"]);
    let words = project.words().join("\n");
    insta::assert_snapshot!(
        words,
        @"rust (Cargo.toml, 1 of 1 source files); `cargo` is not on your PATH"
    );
    // Tests that Python's own runner can run need no pytest.
    let files = [
        ("tox.ini", "deps = pytest"),
        ("a.py", ""),
        ("test_a.py", UNITTEST),
    ];
    assert_eq!(recognised(&files, "pytest").accept, ["python3 -m unittest"]);
    assert_eq!(recognised(&files, "").accept, ["python3 -m pytest -q"]);
}

/// Every row of what a first policy may be made of.
fn policies() -> Vec<String> {
    let claude = FirstAgent {
        name: Some("claude".to_owned()),
        why: "Who works: the only known program here.".to_owned(),
    };
    let none = FirstAgent {
        name: None,
        why: "Who works; no known program is installed here.".to_owned(),
    };
    let projects = [
        recognised(&[], ""),
        recognised(
            &[("Cargo.toml", ""), ("src/lib.rs", ""), ("tests/a.rs", "")],
            "",
        ),
        recognised(
            &[("package.json", "{}"), ("a b.js", ""), ("c\"d.js", "")],
            "",
        ),
        recognised(&[("go.mod", ""), ("a/a.go", ""), ("a/a_test.go", "")], "go"),
    ];
    let texts = projects
        .iter()
        .flat_map(|project| [&claude, &none].map(|agent| policy_text::policy(project, agent, "")));
    texts.collect()
}

#[test]
fn the_first_policy_has_defaults_for_runs_and_nothing_else() {
    for text in policies() {
        let policy = provost_core::policy::parse(text.as_bytes()).unwrap();
        assert!(policy.commands.is_empty(), "{text}");
        assert!(
            policy.agents.is_empty() && policy.review.is_none(),
            "{text}"
        );
        assert!(policy.protect.oracle.entries().is_empty());
        assert!(policy.protect.governing.entries().is_empty());
        assert_eq!(policy.run.agent.is_some(), text.contains("\nagent = "));
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }
}

#[test]
fn every_example_in_the_first_policy_can_be_taken_over() {
    for policy in policies() {
        let is_example = |line: &str| line.starts_with("# [") || line.contains(" = ");
        let mut text = String::new();
        for line in policy.lines() {
            match line.strip_prefix("# ") {
                Some(example) if is_example(line) => text += &format!("{example}\n"),
                None if line.ends_with("= []") => {}
                _ => text += &format!("{line}\n"),
            }
        }
        let config = provost_core::policy::parse(text.as_bytes()).unwrap();
        assert_eq!(config.commands.len(), 1, "{text}");
        assert!(config.agents.contains_key("default"), "{text}");
        assert_eq!(config.protect.oracle.entries().len(), 1, "{text}");
        assert_eq!(config.run.retries, Some(1), "{text}");
        assert_eq!(config.run.timeout_sec, Some(1200), "{text}");
        assert!(
            !config.run.allow.is_empty() && !config.run.accept.is_empty(),
            "{text}"
        );
        assert!(
            config.run.agent.is_some() && config.run.review.is_some(),
            "{text}"
        );
    }
}

#[test]
fn the_written_defaults_say_why() {
    insta::assert_snapshot!(policies()[2].split("[protect]").next().unwrap());
}
