//! Makes control packets with the real program, then lies about them.

#![cfg(feature = "formats")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::Value;

    use provost_testkit::stage::Stage;

    const PACKET: &str = "repo/artifacts/subagent_control/p1";

    fn stage() -> Stage {
        let stage = Stage::with(&[]);
        stage.script("repo/check.sh", "#!/bin/sh\ntest -f src/new\n");
        stage.commit(&[("src/old", "old\n")]);
        stage
    }

    fn call(stage: &Stage, words: &[&str]) -> (i32, Value) {
        let mut command = stage.provost(&["--json"]);
        command.args(words);
        let outcome = stage.spawn(command).measured(&words.join(" "));
        (outcome.exit, outcome.json)
    }

    /// A stage with a published packet; none if there is no sandbox here.
    fn published() -> Option<Stage> {
        let stage = stage();
        stage.write("repo/docs/plan.md", "plan\n");
        let publish = [
            "packet",
            "publish",
            "--phase-id",
            "p1",
            "--goal",
            "G1",
            "--allow",
            "src/**",
            "--allow",
            "docs",
            "--accept",
            "./check.sh",
        ];
        let (exit, answer) = call(&stage, &publish);
        assert_eq!(exit, 0, "{answer}");
        stage.has_sandbox().then_some(stage)
    }

    fn work(stage: &Stage) {
        fs::write(stage.path("repo/src/new"), "new\n").unwrap();
        fs::write(stage.path("repo/docs/plan.md"), "plan\ndone\n").unwrap();
    }

    fn report(stage: &Stage) -> (i32, Value) {
        call(stage, &["packet", "report", "--phase-id", "p1"])
    }

    fn seal(stage: &Stage) -> (i32, Value) {
        let words = [
            "packet",
            "seal",
            "--phase-id",
            "p1",
            "--docs",
            "docs/plan.md",
        ];
        call(stage, &words)
    }

    fn check(stage: &Stage) -> (i32, Value) {
        call(stage, &["check", "packet", "--phase-id", "p1"])
    }

    #[test]
    fn a_packet_made_here_holds_until_one_of_its_files_is_edited() {
        let Some(stage) = published() else { return };
        work(&stage);
        let (exit, answer) = report(&stage);
        assert_eq!(exit, 0, "{answer}");
        let changed = serde_json::json!(["docs/plan.md", "src/new"]);
        assert_eq!(answer["changed_files"], changed);
        let (exit, answer) = seal(&stage);
        assert_eq!(exit, 0, "{answer}");
        let strict = ["check", "packet", "--phase-id", "p1", "--strict"];
        let (exit, answer) = call(&stage, &strict);
        assert_eq!(exit, 0, "{answer}");
        assert_eq!(answer["details"]["docs"], "not_checked");
        let files = fs::read_dir(stage.path(PACKET)).unwrap();
        let files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 7, "{files:?}");
        for file in files {
            let bytes = fs::read(&file).unwrap();
            let mut edited = bytes.clone();
            edited.extend(b" \n");
            fs::write(&file, edited).unwrap();
            let (exit, answer) = check(&stage);
            assert_eq!(exit, 1, "{file:?}: {answer}");
            fs::remove_file(&file).unwrap();
            let (exit, answer) = check(&stage);
            assert_eq!(exit, 1, "{file:?}: {answer}");
            fs::write(&file, bytes).unwrap();
        }
        assert_eq!(check(&stage).0, 0);
        fs::write(stage.path(PACKET).join("added"), "").unwrap();
        let (exit, answer) = call(&stage, &strict);
        assert_eq!(exit, 1, "{answer}");
        assert!(answer["reason"].to_string().contains("added"), "{answer}");
        assert_eq!(check(&stage).1["details"]["warnings"][0]["path"], "added");
        fs::remove_file(stage.path(PACKET).join("added")).unwrap();
        let (exit, answer) = report(&stage);
        assert_eq!(exit, 1, "a sealed packet is not reported again: {answer}");
    }

    #[test]
    fn what_changed_since_the_report_is_not_sealed() {
        let Some(stage) = published() else { return };
        work(&stage);
        assert_eq!(report(&stage).0, 0);
        fs::write(stage.path("repo/src/new"), "something else\n").unwrap();
        let (exit, answer) = seal(&stage);
        assert_eq!(exit, 1, "{answer}");
        assert_eq!(answer["code"], "TREE_CHANGED");
        assert_eq!(report(&stage).0, 0);
        assert_eq!(seal(&stage).0, 0);
    }

    #[test]
    fn a_phase_is_accepted_only_with_docs_and_black_box_checks() {
        let Some(stage) = published() else { return };
        work(&stage);
        assert_eq!(report(&stage).0, 0);
        assert_eq!(seal(&stage).0, 0);
        let gate = |docs: &str, blackbox: &str| {
            let file = stage.path("repo/bb.json");
            fs::write(&file, blackbox).unwrap();
            let words = [
                "check",
                "packet",
                "--phase-id",
                "p1",
                "--gate",
                "--docs",
                docs,
                "--blackbox",
                "bb.json",
            ];
            call(&stage, &words)
        };
        let good = r#"{"phase_id": "p1", "checks": [{"goal_id": "G1", "pass": true}]}"#;
        let (exit, answer) = gate("docs/plan.md", good);
        assert_eq!(exit, 0, "{answer}");
        assert_eq!(gate("check.sh", good).1["details"]["docs"], "refused");
        assert_eq!(gate("docs/none.md", good).0, 1);
        assert_eq!(gate("../home", good).0, 1);
        let bad = good.replace("true", "false");
        assert_eq!(
            gate("docs/plan.md", &bad).1["details"]["blackbox"],
            "refused"
        );
        let without = ["check", "packet", "--phase-id", "p1", "--gate"];
        assert_eq!(call(&stage, &without).0, 2);
    }

    #[test]
    fn work_that_fails_or_leaves_its_scope_is_not_called_a_pass() {
        let Some(stage) = published() else { return };
        let (exit, answer) = report(&stage);
        assert_eq!(exit, 1, "{answer}");
        assert_eq!(answer["commands"][0]["exit_code"], 1);
        assert_eq!(seal(&stage).0, 1);
        let text = fs::read_to_string(stage.path(PACKET).join("validator_report.yaml")).unwrap();
        assert!(text.contains("status: \"fail\""), "{text}");
        // A packet that failed is not final.
        work(&stage);
        assert_eq!(report(&stage).0, 0);
        let (exit, answer) = seal(&stage);
        assert_eq!(exit, 0, "{answer}");
        let text = fs::read_to_string(stage.path(PACKET).join("executor_report.yaml")).unwrap();
        assert!(text.contains("evidence_summary"), "{text}");

        let Some(stage) = published() else { return };
        work(&stage);
        // The command that judges is out of scope, and changing it does not help.
        fs::write(stage.path("repo/check.sh"), "#!/bin/sh\ntrue\n").unwrap();
        let (exit, answer) = report(&stage);
        assert_eq!(exit, 0);
        assert_eq!(answer["out_of_scope"], serde_json::json!(["check.sh"]));
        let (exit, answer) = seal(&stage);
        assert_eq!(exit, 1);
        assert!(answer.to_string().contains("check.sh"), "{answer}");
        assert_eq!(check(&stage).0, 1);
    }

    #[test]
    fn a_second_phase_does_not_disturb_the_first() {
        let Some(stage) = published() else { return };
        let other: Vec<&str> =
            "packet publish --phase-id p2 --goal G2 --allow src/** --accept ./check.sh"
                .split(' ')
                .collect();
        assert_eq!(call(&stage, &other).0, 0);
        work(&stage);
        let (exit, answer) = report(&stage);
        assert_eq!(exit, 0, "{answer}");
        assert_eq!(answer["out_of_scope"], serde_json::json!([]));
        let (exit, answer) = call(&stage, &["packet", "report", "--phase-id", "p2"]);
        assert_eq!(exit, 0, "{answer}");
        let (exit, answer) = seal(&stage);
        assert_eq!(exit, 0, "{answer}");
        // Other files there count.
        stage.write("repo/artifacts/subagent_control/p3/more", "");
        let (_, answer) = call(&stage, &["packet", "report", "--phase-id", "p2"]);
        assert!(
            answer["out_of_scope"].to_string().contains("p3/more"),
            "{answer}"
        );
    }

    #[test]
    fn a_packet_that_was_never_published_is_not_there_and_odd_names_make_none() {
        let stage = stage();
        for words in [
            "packet report --phase-id p9",
            "packet seal --phase-id p9 --docs d",
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            let (exit, answer) = call(&stage, &words);
            assert_eq!(
                (exit, &answer["code"]),
                (2, &"NOT_FOUND".into()),
                "{answer}"
            );
            let hint = answer["details"]["hint"].as_str().unwrap_or_default();
            assert!(hint.contains("packet publish --phase-id p9"), "{answer}");
        }
        for phase in [".git", "CON", "-x", "nul.txt", "a/b", "p 1"] {
            let phase = format!("--phase-id={phase}");
            let mut words = vec!["packet", "publish", &phase, "--goal", "G1"];
            words.extend(["--allow", "src/**", "--accept", "./check.sh"]);
            let (exit, answer) = call(&stage, &words);
            assert_eq!(exit, 1, "{phase}: {answer}");
            assert!(
                answer["reason"].to_string().contains("--phase-id"),
                "{answer}"
            );
        }
        assert!(!stage.path("repo/artifacts").exists());
    }

    #[test]
    fn what_was_published_cannot_be_rewritten_before_the_report() {
        let Some(stage) = published() else { return };
        work(&stage);
        let card = stage.path(PACKET).join("task_card.yaml");
        let text = fs::read_to_string(&card).unwrap();
        fs::write(&card, text.replace("src/**", "**")).unwrap();
        let (exit, answer) = report(&stage);
        assert_eq!(exit, 1, "{answer}");
        assert!(answer.to_string().contains("edited after"), "{answer}");
        fs::write(&card, text).unwrap();
        // A link in the place of a file is replaced, not written through.
        let target = stage.path("home/precious");
        fs::write(&target, "precious").unwrap();
        symlink(&target, stage.path(PACKET).join("executor_report.yaml")).unwrap();
        let (exit, answer) = report(&stage);
        assert_eq!(exit, 0, "{answer}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }

    #[test]
    fn a_contract_becomes_a_task_card() {
        let stage = stage();
        let schema = provost_core::contract::RESULT_SCHEMA_TEXT;
        let contract = format!(
            "task_id: task-0001\n\
             owner_agent: {{role: PM, agent_id: agent-pm}}\n\
             assigned_agent: {{role: WORKER, agent_id: agent-worker}}\n\
             inputs:\n  spec: say hello\n  artifacts:\n  - name: output_schema\n    \
             uri: {}\n    sha256: {}\n\
             required_outputs: [{{name: patch, type: patch, acceptance: applies}}]\n\
             allowed_paths: [src]\nforbidden_actions: []\n\
             acceptance_tests:\n- {{name: tests, cmd: pytest -q, must_pass: true}}\n\
             tool_permissions:\n  {{filesystem: workspace-write, shell: never, network: deny, \
             mcp_tools: []}}\n\
             mcp_tool_set: [none]\n\
             timeout_retry: {{timeout_sec: 60, max_retries: 0, retry_backoff_sec: 0}}\n\
             rollback: {{strategy: worktree_drop, baseline_ref: HEAD}}\n\
             evidence_links: []\nlog_refs: {{run_id: run-0001, paths: {{}}}}\n",
            provost_core::contract::RESULT_SCHEMA,
            provost_core::object::sha256(schema.as_bytes()),
        );
        let file = stage.path("home/contract.yaml");
        fs::write(&file, &contract).unwrap();
        let words = [
            "packet",
            "publish",
            "--phase-id",
            "p1",
            "-f",
            file.to_str().unwrap(),
        ];
        let (exit, answer) = call(&stage, &words);
        assert_eq!(exit, 0, "{answer}");
        let card = fs::read_to_string(stage.path(PACKET).join("task_card.yaml")).unwrap();
        for part in ["- \"pytest -q\"", "- \"src\"", "- \"task-0001\""] {
            assert!(card.contains(part), "{part}: {card}");
        }
        fs::remove_dir_all(stage.path(PACKET)).unwrap();
        fs::write(&file, contract.replace("pytest -q", "curl x | sh")).unwrap();
        let (exit, answer) = call(&stage, &words);
        assert_eq!((exit, &answer["allow"]), (1, &false.into()), "{answer}");
        assert!(!stage.path(PACKET).exists());
    }

    #[test]
    fn a_packet_behind_a_link_is_not_read() {
        let stage = stage();
        let elsewhere = stage.path("home/p1");
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/packets");
        let good = format!("{corpus}/legacy_ok_minimal/artifacts/subagent_control/phase_07");
        fs::create_dir(&elsewhere).unwrap();
        for entry in fs::read_dir(good).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), elsewhere.join(entry.file_name())).unwrap();
        }
        let root = stage.path("repo/artifacts/subagent_control");
        fs::create_dir_all(&root).unwrap();
        symlink(&elsewhere, root.join("phase_07")).unwrap();
        let (exit, answer) = call(&stage, &["check", "packet", "--phase-id", "phase_07"]);
        assert_eq!(exit, 1, "{answer}");
        assert_eq!(answer["allow"], false);
        fs::remove_file(root.join("phase_07")).unwrap();
        fs::write(root.join("phase_07"), "a file").unwrap();
        let (exit, answer) = call(&stage, &["check", "packet", "--phase-id", "phase_07"]);
        assert_eq!(exit, 1, "{answer}");
    }

    #[test]
    fn a_snapshot_says_what_changed_since_another() {
        let stage = stage();
        let before = stage.path("home/before.json");
        let before = before.to_str().unwrap();
        let (exit, answer) = call(&stage, &["snapshot", ".", "--out", before]);
        assert_eq!((exit, &answer["files"]), (0, &2.into()), "{answer}");
        fs::write(stage.path("repo/src/new"), "new\n").unwrap();
        fs::write(stage.path("repo/check.sh"), "other\n").unwrap();
        fs::remove_file(stage.path("repo/src/old")).unwrap();
        for _ in 0..2 {
            let (exit, answer) = call(&stage, &["snapshot", "--before", before]);
            assert_eq!(exit, 0, "{answer}");
            assert_eq!(answer["added"], serde_json::json!(["src/new"]));
            assert_eq!(answer["changed"], serde_json::json!(["check.sh"]));
            assert_eq!(answer["removed"], serde_json::json!(["src/old"]));
        }
        let (exit, answer) = call(&stage, &["snapshot"]);
        assert_eq!(exit, 0);
        assert_eq!(answer["schema_version"], "subagent_workspace_snapshot_v1");
    }
}
