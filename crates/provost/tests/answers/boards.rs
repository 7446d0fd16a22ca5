//! Boards of tasks, control packets and packages.

use provost_testkit::stage::Stage;

fn example(stage: &Stage, name: &str) -> String {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    let from = std::path::Path::new(place).join(name);
    let to = stage.path("outside").join(from.file_name().unwrap());
    std::fs::copy(from, &to).unwrap();
    to.display().to_string()
}

#[test]
fn a_board_is_kept() {
    let stage = Stage::new();
    let mut transcript = stage.transcript();
    let [sort, tests, entry, result] = ["sort.json", "tests.json", "entry.jsonl", "result.md"]
        .map(|name| example(&stage, &format!("board/{name}")));
    transcript.both(&["board", "show"]);
    transcript.plain(&["board", "assign", &sort, "--owner", "ada"]);
    transcript.plain(&["board", "assign", &sort, "--owner", "bob"]);
    transcript.json(&["board", "assign", &tests, "--owner", "bob"]);
    transcript.both(&["board", "show"]);
    transcript.plain(&["board", "heartbeat", "T-1", "--owner", "ada"]);
    transcript.plain(&["board", "lock", "T-1", "src/z"]);
    transcript.plain(&["board", "release", "T-1", "src/z"]);
    transcript.plain(&["board", "worklog", "T-1", "--append", &entry]);
    transcript.both(&["board", "worklog", "T-1"]);
    transcript.plain(&["board", "result", &result]);
    transcript.json(&["board", "result", &result]);
    transcript.both(&["board", "show", "T-1"]);
    transcript.both(&["board", "reconcile"]);
    transcript.plain(&["board", "tick"]);
    transcript.both(&["board", "handoff"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn a_packet_is_published_reported_and_sealed() {
    let Some(stage) = crate::stage() else { return };
    let mut transcript = stage.transcript();
    let publish = [
        "packet",
        "publish",
        "--phase-id",
        "p1",
        "--goal",
        "G1",
        "--allow",
        "src/**",
    ];
    let accept = ["--allow", "docs", "--accept", "sh check.sh"];
    transcript.plain(&[&publish[..], &accept].concat());
    stage.write("repo/src/a.txt", "good\n");
    stage.write("repo/docs/readme.md", "read more\n");
    transcript.plain(&["packet", "report", "--phase-id", "p1"]);
    transcript.json(&[
        "packet",
        "seal",
        "--phase-id",
        "p1",
        "--docs",
        "docs/readme.md",
    ]);
    transcript.both(&["check", "packet", "--phase-id", "p1"]);
    transcript.plain(&["packet", "report", "--phase-id", "p2"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn packages_are_derived() {
    let stage = Stage::new();
    let file = example(&stage, "package_derive.json");
    let mut transcript = stage.transcript();
    for algorithm in ["v1", "v2"] {
        transcript.plain(&["package", "derive", &file, "--algorithm", algorithm]);
        transcript.json(&["package", "derive", &file, "--algorithm", algorithm]);
    }
    insta::assert_snapshot!(transcript.text());
}
