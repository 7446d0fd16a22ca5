//! Nothing that an agent wrote is lost, also when no gate lets it pass and no commit can hold it.

use std::fs;

use crate::stage::{Ask, Stage};

#[test]
fn a_file_that_is_too_large_to_land_is_salvaged() {
    let stage = Stage::new();
    let script = "echo good > src/a.txt; head -c 70000000 /dev/zero > src/large";
    let outcome = stage.run(script, &Ask::default());
    assert_eq!(outcome.code(), "DIFF_REFUSED", "{outcome:?}");
    let run = stage.last_run().unwrap();
    let name = format!("refs/provost/salvage/{run}/1:src/large");
    let size = stage.git(&["cat-file", "-s", &name]);
    assert_eq!(size.trim(), "70000000");
    assert!(stage.workspaces().is_empty());
}

#[test]
fn what_no_commit_can_hold_stays_where_it_is() {
    let stage = Stage::new();
    let script = "echo good > src/a.txt; truncate -s 2G src/huge";
    let outcome = stage.run(script, &Ask::default());
    assert_eq!(outcome.code(), "DIFF_REFUSED", "{outcome:?}");
    let left = outcome.json["left"][0]["path"].as_str().unwrap().to_owned();
    let huge = format!("{left}/tree/src/huge");
    assert_eq!(fs::metadata(&huge).unwrap().len(), 2 << 30);
    // Nothing that comes later takes it away.
    for command in [&["land", "last"][..], &["resume"], &["show"]] {
        let said = stage.ask(command);
        assert!(fs::metadata(&huge).is_ok(), "{command:?}: {said:?}");
    }
    let said = stage.ask(&["show"]);
    assert!(
        String::from_utf8_lossy(&said.stdout).contains(&left),
        "{said:?}"
    );
}

#[test]
fn a_change_that_could_not_be_verified_is_refused_before_it_is_sealed() {
    let stage = Stage::new();
    let script = "echo good > src/a.txt
         for i in 1 2 3; do yes line$i | head -c 60000000 > src/text$i; done";
    let outcome = stage.run(script, &Ask::default());
    assert_eq!(outcome.code(), "DIFF_REFUSED", "{outcome:?}");
    let verified = stage.ask(&["verify", "--json"]);
    assert_eq!(verified.exit, 0, "{verified:?}");
    assert!(
        !stage
            .git(&["for-each-ref", "refs/provost/salvage"])
            .is_empty()
    );
}

#[test]
fn verification_makes_no_registry() {
    let stage = Stage::new();
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    let registry = stage.path("repo/.provost/registry.db");
    for name in [
        "registry.db",
        "registry.db-wal",
        "registry.db-shm",
        "registry.lock",
    ] {
        let _ = fs::remove_file(registry.with_file_name(name));
    }
    let verified = stage.ask(&["verify", "last"]);
    assert_eq!(verified.exit, 0, "{verified:?}");
    assert!(!registry.exists());
}

#[test]
fn the_sealed_contract_names_its_base_and_its_run() {
    let stage = Stage::new();
    let base = stage.git(&["rev-parse", "HEAD"]).trim().to_owned();
    stage.commit(&[("docs/more.md", "more\n")]);
    let ask = Ask {
        more: &["--base", "HEAD~1"],
        ..Ask::default()
    };
    let outcome = stage.run("echo good > src/a.txt", &ask);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    assert_eq!(outcome.text("base"), base);
    let run = stage.last_run().unwrap();
    let text = fs::read_to_string(stage.evidence(&run, "contract.json")).unwrap();
    assert!(text.contains("\"HEAD~1\"") && text.contains(&run), "{text}");
}

#[test]
fn the_id_of_a_tag_is_no_base() {
    let stage = Stage::new();
    stage.git(&["tag", "-a", "v1", "-m", "one"]);
    let tag = stage.git(&["rev-parse", "v1"]).trim().to_owned();
    let ask = Ask {
        more: &["--base", &tag],
        ..Ask::default()
    };
    let outcome = stage.run("echo good > src/a.txt", &ask);
    assert_eq!(outcome.code(), "USAGE_ERROR", "{outcome:?}");
    assert!(stage.runs().is_empty());
}
