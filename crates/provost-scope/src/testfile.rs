//! Recognises test files by their names, from a table for each ecosystem.
//!
//! The name decides, never the content: the kind of a file must be known before any program runs
//! it. Tests in the same file as the code they test, as in Rust, are part of that file.

use crate::path::RawPath;

/// Directories with test files only, at any depth.
const DIRECTORIES: &[&str] = &[
    "tests",
    "test",
    "__tests__",
    "__snapshots__",
    "__mocks__",
    "testdata",
    "spec",
    "specs",
    "e2e",
];

/// The names of test files in one language: their extensions, and what precedes or follows the rest
/// of the name.
struct Naming {
    endings: &'static [&'static str],
    before: &'static [&'static str],
    after: &'static [&'static str],
    whole: &'static [&'static str],
}

const NAMINGS: &[Naming] = &[
    Naming {
        endings: &["rs"],
        before: &[],
        after: &["_test", "_tests"],
        whole: &["test", "tests"],
    },
    Naming {
        endings: &["py"],
        before: &["test_"],
        after: &["_test"],
        whole: &["conftest", "tests"],
    },
    Naming {
        endings: &["go"],
        before: &[],
        after: &["_test"],
        whole: &[],
    },
    Naming {
        endings: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue"],
        before: &[],
        after: &[".test", ".spec", "_test", "-test"],
        whole: &[],
    },
    Naming {
        endings: &[
            "java", "kt", "kts", "scala", "groovy", "cs", "swift", "php", "m", "mm",
        ],
        before: &[],
        after: &["Test", "Tests", "TestCase", "IT", "Spec"],
        whole: &[],
    },
    Naming {
        endings: &["rb", "ex", "exs", "dart", "lua", "hs", "ml", "erl"],
        before: &["test_"],
        after: &["_test", "_spec", "_SUITE", "Spec"],
        whole: &[],
    },
    Naming {
        endings: &["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "sh"],
        before: &["test_", "test-"],
        after: &["_test", "_tests", "_unittest", "-test", ".test"],
        whole: &["test", "tests"],
    },
    Naming {
        endings: &["bats", "snap", "t"],
        before: &[""],
        after: &[],
        whole: &[],
    },
];

pub fn is_test_file(path: &RawPath) -> bool {
    let Ok(path) = std::str::from_utf8(path.as_bytes()) else {
        return false;
    };
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut above = directory.split('/');
    if above.any(|part| DIRECTORIES.contains(&part)) {
        return true;
    }
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    NAMINGS.iter().any(|naming| {
        naming.endings.contains(&ending)
            && (naming.before.iter().any(|it| stem.starts_with(it))
                || naming.whole.contains(&stem)
                || naming
                    .after
                    .iter()
                    .any(|it| stem.len() > it.len() && stem.ends_with(it)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_are_known_by_their_names() {
        let cases = [
            ("src/lib.rs", false),
            ("src/tests.rs", true),
            ("src/lexer/tests.rs", true),
            ("src/lexer_test.rs", true),
            ("crates/a/tests/common/mod.rs", true),
            ("src/latest.rs", false),
            ("app/models.py", false),
            ("app/test_models.py", true),
            ("app/models_test.py", true),
            ("conftest.py", true),
            ("app/testing.py", false),
            ("pkg/parse.go", false),
            ("pkg/parse_test.go", true),
            ("pkg/testdata/in.json", true),
            ("web/form.tsx", false),
            ("web/form.test.tsx", true),
            ("web/form.spec.ts", true),
            ("web/__snapshots__/form.tsx.snap", true),
            ("src/main/java/App.java", false),
            ("src/test/java/Helper.java", true),
            ("src/main/java/AppTest.java", true),
            ("src/main/java/Latest.java", false),
            ("lib/user.rb", false),
            ("spec/user_spec.rb", true),
            ("src/list_unittest.cc", true),
            ("run.bats", true),
            ("Test", false),
            ("docs/testing.md", false),
            ("contest/entry.py", false),
        ];
        for (path, want) in cases {
            assert_eq!(is_test_file(&RawPath::new(path)), want, "{path}");
        }
        assert!(!is_test_file(&RawPath::new(&b"\xff/test_x.py"[..])));
    }
}
