//! Failed phases, and what is judged apart from the rules of the text.

use super::*;

#[test]
fn a_failed_phase_is_not_called_a_packet_that_holds() {
    let statuses = [(EXECUTOR_REPORT, "failed"), (VALIDATOR_REPORT, "fail")];
    for (file, status) in statuses {
        let mut files = Files::good();
        files.set(file, "/status", json!(status));
        let verdict = files.judge(Strictness::Literal);
        assert!(verdict.reason.contains("not accepted"), "{verdict:?}");
        let details = verdict.details.unwrap();
        assert_eq!(details["phase"], "failed");
        assert!(details["notes"].to_string().contains(file), "{details}");
        assert!(!files.judge(Strictness::Strict).allow, "{file}");
    }
    let mut files = Files::good();
    files.set(VALIDATOR_REPORT, "/status", json!("fail"));
    files.set(VALIDATOR_REPORT, "/checks/4/pass", json!(false));
    files.0.get_mut(VALIDATOR_REPORT).unwrap()["checks"][4]["detail"] = json!("no docs");
    let rows = files.judge(Strictness::Strict).details.unwrap()["findings"].to_string();
    assert!(rows.contains("no docs"), "{rows}");
}

#[test]
fn checks_may_be_a_mapping() {
    let all = |value: Value| {
        let entry = |name: &&str| ((*name).to_owned(), value.clone());
        Value::Object(validator::CHECKS.iter().map(entry).collect())
    };
    let ask = |checks: Value| {
        let mut files = Files::good();
        files.set(VALIDATOR_REPORT, "/checks", checks);
        files.judge(Strictness::Strict)
    };
    for value in [json!(true), json!({ "pass": true, "detail": "ok" })] {
        let verdict = ask(all(value.clone()));
        assert!(verdict.allow, "{value}: {verdict:?}");
    }
    for value in [
        json!(false),
        json!("true"),
        json!({}),
        json!({ "pass": "true" }),
    ] {
        assert!(!ask(all(value.clone())).allow, "{value}");
    }
    let mut short = all(json!(true));
    short.as_object_mut().unwrap().remove("ssot_updated");
    assert!(!ask(short).allow);
}

#[test]
fn fields_of_another_kind_than_the_format_names_are_refused_if_strict() {
    let places = [
        (TASK_CARD, "goal_ids", json!(["X1"])),
        (EXECUTOR_REPORT, "evidence_summary", json!(5)),
        (LOG, "stdout_tail", json!(5)),
    ];
    for (file, field, value) in places {
        let mut files = Files::good();
        files.0.get_mut(file).unwrap()[field] = value;
        let verdict = files.judge(Strictness::Strict);
        assert!(
            !verdict.allow && verdict.reason.contains(field),
            "{verdict:?}"
        );
        assert!(files.judge(Strictness::Literal).allow, "{field}");
    }
}

#[test]
fn evidence_outside_the_packet_is_not_taken() {
    let mut files = Files::good();
    let place = format!("elsewhere/{BEFORE}");
    files.set(TASK_CARD, "/evidence_files/workspace_before", json!(place));
    let verdict = files.judge(Strictness::Literal);
    assert!(verdict.reason.contains("outside the packet"), "{verdict:?}");
}

#[test]
fn a_phase_that_changed_every_file_passes_if_the_snapshots_were_measured() {
    let mut files = Files::good();
    for (name, letter) in [(BEFORE, "a"), (AFTER, "b")] {
        files.set(name, "/files", json!({ "src/a": letter.repeat(64) }));
    }
    files.0.get_mut(TASK_CARD).unwrap()["x_provost"] = json!({ "sealed": true });
    let key = SigningKey::from_seed(&[7; 32], "").unwrap();
    let names = Stage::Sealed.files().iter();
    let sources: BTreeMap<_, _> = names.map(|name| (*name, files.source(name))).collect();
    let envelope = seal::seal("p1", Stage::Sealed, &sources, &key).unwrap();
    let mut packet = files.packet();
    let mut ask = |keys| {
        packet.seal = Some(Sealed {
            envelope: Source::Bytes(envelope.clone().into_bytes()),
            keys,
            files: sources.clone(),
            others: Vec::new(),
        });
        judge(&packet, Strictness::Strict, None)
    };
    let verdict = ask(vec![key.public()]);
    assert!(verdict.allow, "{verdict:?}");
    let rows = ask(Vec::new()).details.unwrap()["findings"].to_string();
    assert!(rows.contains("can show nothing"), "{rows}");
}

#[test]
fn a_failed_command_says_nothing_about_the_executor() {
    let mut files = Files::good();
    files.set(EXECUTOR_REPORT, "/status", json!("failed"));
    files.set(LOG, "/exit_code", json!(1));
    let text = compose::validator_report(&files.packet(), &[], "2026-01-31T12:00:50Z");
    let report = yaml::parse(text.as_bytes()).unwrap();
    let of = |name: &str| {
        let rows = report["checks"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["pass"].clone()
    };
    assert_eq!(report["status"], "fail");
    assert_eq!(of("executor_is_codex_cli"), true);
    assert_eq!(of("acceptance_commands_executed"), false);
}
