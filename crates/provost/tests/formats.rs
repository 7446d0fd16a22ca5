//! Runs the examples of the documentation through the real program.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use provost_testkit::stage::Stage;
    use serde_json::{Value, json};

    fn example(name: &str) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        root.join("../../docs/examples").join(name)
    }

    /// What the program answers, and its exit status.
    fn ask(words: &[&str], file: &Path) -> (Value, i32) {
        let stage = Stage::empty();
        let mut command = stage.provost(words);
        command.arg(file).arg("--json").current_dir(example("."));
        let outcome = stage.spawn(command).wait();
        (outcome.json, outcome.exit)
    }

    #[test]
    fn a_contract_is_the_same_in_every_spelling() {
        for name in ["contract.json", "contract.yaml", "contract.toml"] {
            let (answer, exit) = ask(&["check", "contract"], &example(name));
            assert_eq!(answer["allow"], true, "{name}: {answer}");
            assert_eq!(exit, 0, "{name}");
        }
    }

    #[cfg(feature = "formats")]
    #[test]
    fn every_check_without_a_schema_has_an_example_that_holds() {
        let mut kinds = Vec::new();
        for entry in std::fs::read_dir(example("check")).unwrap() {
            let file = entry.unwrap().path();
            let kind = file.file_stem().unwrap().to_str().unwrap().to_owned();
            let (answer, exit) = ask(&["check", &kind], &file);
            assert_eq!(answer["allow"], true, "{kind}: {answer}");
            assert_eq!(exit, 0, "{kind}");
            kinds.push(kind);
        }
        assert_eq!(kinds.len(), 10, "{kinds:?}");
    }

    #[test]
    fn a_contract_that_cannot_be_read_is_a_verdict() {
        let stage = Stage::empty();
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
            stage.write(name, text);
            let file = stage.path(name);
            let (answer, exit) = ask(&["check", "contract"], &file);
            assert_eq!(answer["code"], code, "{name}: {answer}");
            assert_eq!(exit, 1, "{name}");
        }
    }

    #[test]
    fn a_read_only_helper_gets_what_the_page_says() {
        let (answer, exit) = ask(&["package", "derive"], &example("package_derive.json"));
        assert_eq!(exit, 0, "{answer}");
        let kept = &answer["package"]["exercise"]["capabilities"];
        assert_eq!(kept.as_array().map(Vec::len), Some(1));
        assert_eq!(kept[0]["id"], "read_file");
        assert_eq!(
            answer["parent_budget"],
            json!({ "levels": 1, "children": 2 })
        );
    }

    #[cfg(feature = "formats")]
    #[test]
    fn every_example_of_a_format_of_others_passes_its_check() {
        let cases: [(&[&str], &str); 10] = [
            (
                &["check", "assignment", "--strict"],
                "operator_assignment.json",
            ),
            (&["check", "handoff", "--strict"], "operator_handoff.json"),
            (
                &["check", "orchestrator-output", "--strict"],
                "operator_orchestrator_output.json",
            ),
            (&["check", "result", "--strict"], "operator_result.json"),
            (
                &[
                    "check",
                    "worklog",
                    "--strict",
                    "--outcome",
                    "blocked",
                    "--lines",
                ],
                "operator_worklog_entry.jsonl",
            ),
            (
                &["check", "acceptance-log", "--strict"],
                "packet_acceptance_log.jsonl",
            ),
            (
                &["check", "executor-report", "--strict"],
                "packet_executor_report.yaml",
            ),
            (&["check", "task-card", "--strict"], "packet_task_card.yaml"),
            (
                &["check", "validator-report", "--strict"],
                "packet_validator_report.yaml",
            ),
            (
                &["check", "workspace-snapshot", "--strict"],
                "packet_workspace_snapshot.json",
            ),
        ];
        for (words, name) in cases {
            let (answer, exit) = ask(words, &example(name));
            assert_eq!(
                (&answer["allow"], exit),
                (&json!(true), 0),
                "{name}: {answer}"
            );
        }
        let named = |name: &str| cases.iter().any(|(_, file)| *file == name);
        for foreign in provost_formats::schema::FOREIGN {
            assert!(named(foreign.example), "{}", foreign.example);
        }
    }

    #[cfg(feature = "formats")]
    #[test]
    fn a_card_becomes_a_contract_that_passes_its_check() {
        let stage = Stage::empty();
        let (card, contract) = (stage.path("card.yaml"), stage.path("c.json"));
        let text = std::fs::read_to_string(example("packet_task_card.yaml")).unwrap();
        let text = text
            .replace("  - docs/*.md\n", "")
            .replace("phase-1", "phase-0001");
        std::fs::write(&card, text).unwrap();
        let given = [
            "owner_agent.role=PM",
            "owner_agent.agent_id=agent-pm",
            "rollback.baseline_ref=HEAD",
            "log_refs.run_id=run-0001",
            "inputs.spec=Greet by name",
            "timeout_retry.timeout_sec=600",
        ];
        let out = contract.to_string_lossy().into_owned();
        let mut words = vec![
            "convert", "--from", "card", "--to", "contract", "--out", &out,
        ];
        let (answer, exit) = ask(&words, &card);
        assert_eq!(exit, 1, "{answer}");
        assert!(
            answer["reason"].as_str().unwrap().contains("--set"),
            "{answer}"
        );
        assert!(!contract.exists());
        words.extend(given.iter().flat_map(|one| ["--set", one]));
        let (answer, exit) = ask(&words, &card);
        assert_eq!(exit, 0, "{answer}");
        let lost = answer["details"]["lost"].as_array().unwrap();
        assert!(
            lost.iter().any(|note| note["path"] == "/goal_ids"),
            "{answer}"
        );
        let (answer, exit) = ask(&["check", "contract"], &contract);
        assert_eq!(exit, 0, "{answer}");
        words.push("--strict");
        let (answer, exit) = ask(&words, &card);
        assert_eq!((&answer["allow"], exit), (&json!(false), 1), "{answer}");
    }

    #[cfg(feature = "formats")]
    #[test]
    fn the_default_policy_of_the_document_is_printed_for_a_package() {
        let stage = Stage::empty();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let corpus = std::fs::read_dir(root.join("../../tests/corpus/child-packages")).unwrap();
        let cases = corpus.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        let mut cases = cases.filter_map(|text| serde_json::from_slice::<Value>(&text).ok());
        let case = cases.find(|case| case["expected"]["parent_fingerprint"].is_string());
        let case = case.unwrap();
        let file = stage.path("parent.json");
        std::fs::write(&file, case["input"]["parent"].to_string()).unwrap();
        let (policy, exit) = ask(&["package", "default"], &file);
        assert_eq!(exit, 0, "{policy}");
        let fingerprint = &case["expected"]["parent_fingerprint"];
        assert_eq!(&policy["source_parent_package"], fingerprint);
        assert_eq!(policy["strip_recursive_subagents"], true);
        let by_name = Path::new(fingerprint.as_str().unwrap());
        assert_eq!(ask(&["package", "default"], by_name).0, policy);
        // It is the policy that the derivation of the same format takes.
        let mut payload = case["input"].clone();
        payload["child_policy"] = policy;
        std::fs::write(&file, payload.to_string()).unwrap();
        let (derived, exit) = ask(&["package", "derive", "--algorithm", "v1"], &file);
        assert_eq!((&derived["ok"], exit), (&json!(true), 0), "{derived}");
    }

    #[test]
    fn a_command_runs_with_what_its_package_says_and_nothing_else() {
        let stage = Stage::empty();
        std::fs::create_dir(stage.path("in")).unwrap();
        std::fs::write(stage.path("read.txt"), "readable").unwrap();
        let run = |exercise: Value, script: &str| {
            let package = json!({ "schema_version": 2, "agent": "it", "exercise": exercise });
            std::fs::write(stage.path("package.json"), package.to_string()).unwrap();
            let file = stage.path("package.json").display().to_string();
            let words = [
                "package",
                "run",
                "--package",
                &file,
                "--",
                "sh",
                "-c",
                script,
            ];
            let mut command = stage.provost(&words);
            command.current_dir(stage.path(""));
            command
                .env("SEEN", "seen-value")
                .env("HIDDEN", "hidden-value");
            stage.spawn(command).wait()
        };
        let all = json!({ "read": ["."], "write": ["in"], "run": ["*"],
            "environment": ["SEEN"], "limits": { "seconds": 20, "processes": 64 } });
        let place = stage.path("").display().to_string();
        let script =
            format!("cd {place}; cat read.txt; echo x > in/a; echo x > b; echo status $?; env");
        let ended = run(all, &script);
        let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(printed.contains("readable"), "{ended:?}");
        assert!(printed.contains("seen-value"), "{printed}");
        assert!(!printed.contains("hidden-value"), "{printed}");
        assert!(stage.path("in/a").exists(), "{ended:?}");
        assert!(!stage.path("b").exists(), "{printed}");
        for (exercise, words) in [
            (json!({ "run": ["*"] }), "no seconds"),
            (
                json!({ "run": ["git"], "limits": { "seconds": 9 } }),
                "does not run `sh`",
            ),
            (
                json!({ "run": ["*"], "limits": { "seconds": 9 }, "secrets": ["k"] }),
                "secrets",
            ),
        ] {
            let refused = run(exercise, "touch in/refused");
            assert!(format!("{refused:?}").contains(words), "{refused:?}");
            assert!(!stage.path("in/refused").exists(), "{words}");
        }
    }

    #[cfg(feature = "formats")]
    #[test]
    fn a_schema_is_found_by_its_name() {
        let (list, _) = ask(&["schema"], Path::new("review_report"));
        assert_eq!(list["title"], "review_report.v1");
        let (card, _) = ask(&["schema"], Path::new("packet_task_card"));
        assert_eq!(card["title"], "packet_task_card.v1");
        let (answer, exit) = ask(&["schema"], Path::new("nothing"));
        assert_eq!((&answer["code"], exit), (&json!("NOT_FOUND"), 2));
    }
}
