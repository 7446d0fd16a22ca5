//! The first commands of a new user.

use provost_testkit::stage::Stage;

#[test]
fn a_repository_is_made_ready() {
    let stage = Stage::new();
    let cargo = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    stage.commit(&[("Cargo.toml", cargo), ("src/lib.rs", "")]);
    let mut transcript = stage.transcript();
    transcript.plain(&["init"]);
    transcript.json(&["init"]);
    transcript.both(&["agent", "list"]);
    transcript.both(&["prepare"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn a_directory_that_is_no_repository_is_refused() {
    let stage = Stage::new();
    let mut transcript = stage.transcript();
    std::fs::remove_dir_all(stage.path("repo/.git")).unwrap();
    for words in [
        &["init"][..],
        &["status"],
        &["runs"],
        &["show"],
        &["prepare"],
        &["gc"],
    ] {
        transcript.both(words);
    }
    insta::assert_snapshot!(transcript.text());
}
