//! Runs the examples of the documentation through the real program.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use serde_json::{Value, json};

    fn example(name: &str) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        root.join("../../docs/examples").join(name)
    }

    /// What the program answers, and its exit status.
    fn ask(words: &[&str], file: &Path) -> (Value, Option<i32>) {
        let output = Command::new(env!("CARGO_BIN_EXE_provost"))
            .args(words)
            .arg(file)
            .arg("--json")
            .output()
            .unwrap();
        let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (answer, output.status.code())
    }

    #[test]
    fn a_contract_is_the_same_in_every_spelling() {
        for name in ["contract.json", "contract.yaml", "contract.toml"] {
            let (answer, exit) = ask(&["check", "contract"], &example(name));
            assert_eq!(answer["allow"], true, "{name}: {answer}");
            assert_eq!(exit, Some(0), "{name}");
        }
    }

    #[test]
    fn a_contract_that_cannot_be_read_is_a_verdict() {
        let scratch = tempfile::tempdir().unwrap();
        let cases = [
            (
                "a.json",
                "{\"task_id\": 1, \"task_id\": 2}",
                "INPUT_INVALID",
            ),
            ("a.yaml", "task_id: [", "INPUT_INVALID"),
            ("a.toml", "task_id = ", "INPUT_INVALID"),
            ("b.json", "[]", "CONTRACT_INVALID"),
            ("b.yaml", "x: 1", "CONTRACT_INVALID"),
        ];
        for (name, text, code) in cases {
            let file = scratch.path().join(name);
            std::fs::write(&file, text).unwrap();
            let (answer, exit) = ask(&["check", "contract"], &file);
            assert_eq!(answer["code"], code, "{name}: {answer}");
            assert_eq!(exit, Some(1), "{name}");
        }
    }

    #[test]
    fn a_read_only_helper_gets_what_the_page_says() {
        let (answer, exit) = ask(&["package", "derive"], &example("package_derive.json"));
        assert_eq!(exit, Some(0), "{answer}");
        let kept = &answer["package"]["exercise"]["capabilities"];
        assert_eq!(kept.as_array().map(Vec::len), Some(1));
        assert_eq!(kept[0]["id"], "read_file");
        assert_eq!(
            answer["parent_budget"],
            json!({ "levels": 1, "children": 2 })
        );
    }

    #[test]
    fn a_schema_is_found_by_its_name() {
        let (list, _) = ask(&["schema"], Path::new("review_report"));
        assert_eq!(list["title"], "review_report.v1");
        let (answer, exit) = ask(&["schema"], Path::new("nothing"));
        assert_eq!((&answer["code"], exit), (&json!("NOT_FOUND"), Some(2)));
    }
}
