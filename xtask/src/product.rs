//! Which lines are product code: no blanks, comments, tests or examples.

use std::collections::BTreeMap;

use crate::repository::SourceFile;

/// The crate a file belongs to, if it is product code.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    let mut parts = path.strip_suffix(".rs")?.split('/');
    let name = match parts.next()? {
        "crates" => parts.next()?,
        "xtask" => "xtask",
        _ => return None,
    };
    let aside = |part: &str| matches!(part, "test" | "tests" | "examples" | "benches");
    (!parts.any(aside)).then_some(name)
}

/// The lines of `text` without modules and items that are compiled for tests only.
pub(crate) fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let mut line = lines.next()?;
        while line.starts_with("#[cfg(test)]") {
            while line.starts_with("#[") {
                line = lines.next()?;
            }
            if line.ends_with('{') {
                lines.find(|line| *line == "}");
            }
            line = lines.next()?;
        }
        Some(line)
    })
}

/// How many lines of code each crate has.
pub(crate) fn count(files: &[SourceFile]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for file in files {
        let Some(name) = crate_of(&file.path) else {
            continue;
        };
        let is_code = |line: &&str| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with("//")
        };
        *counts.entry(name).or_default() += lines_of(&file.text).filter(is_code).count();
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_comments_and_blanks_are_no_product_code() {
        let text = "//! Words.\n\nfn a() {\n    // Why.\n}\n\n#[cfg(test)]\nmod other;\n\
                    #[cfg(test)]\n#[expect(x)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let file = |path: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let files = [
            "crates/a/src/x.rs",
            "crates/a/src/x/tests.rs",
            "crates/a/tests/x.rs",
            "xtask/src/x.rs",
            "docs/x.rs",
        ];
        let want = BTreeMap::from([("a", 3), ("xtask", 3)]);
        assert_eq!(count(&files.map(file)), want);
    }
}
