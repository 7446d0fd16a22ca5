//! Bundles, keys and formats of other tools.

use std::fs;

use crate::{run, stage};

#[test]
fn a_bundle_is_verified_exported_and_seen_to_be_altered() {
    let Some(stage) = stage() else { return };
    let agent = stage.agent("echo good > src/a.txt");
    let mut transcript = stage.transcript();
    transcript.plain(&["key", "show"]);
    transcript.plain(&["key", "new"]);
    transcript.both(&["key", "show"]);
    stage.ask(&run(&agent, &[]));
    for format in ["junit", "sarif", "attestation"] {
        transcript.plain(&["export", "--as", format]);
    }
    transcript.plain(&["export", "--as", "packet"]);
    transcript.both(&["verify", "last"]);
    let run = stage.last_run().unwrap();
    let patch = stage.evidence(&run, "patch.diff");
    let bytes = fs::read(&patch).unwrap();
    fs::write(&patch, "").unwrap();
    transcript.both(&["verify", "last"]);
    fs::remove_file(&patch).unwrap();
    transcript.plain(&["verify", "last"]);
    transcript.plain(&["show"]);
    transcript.plain(&["land", "last"]);
    fs::write(&patch, bytes).unwrap();
    fs::remove_file(stage.evidence(&run, "attestation.dsse.json")).unwrap();
    transcript.plain(&["verify", "last"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn a_sandbox_is_tried_by_hand() {
    let Some(stage) = stage() else { return };
    let mut transcript = stage.transcript();
    transcript.plain(&["sandbox", "--", "echo", "hello"]);
    transcript.json(&["sandbox", "--", "echo", "hello"]);
    transcript.plain(&["sandbox", "--", "sh", "-c", "exit 3"]);
    transcript.plain(&["sandbox", "--", "no-such-program"]);
    transcript.plain(&["sandbox", "--timeout", "1s", "--", "sleep", "20"]);
    transcript.plain(&["snapshot"]);
    insta::assert_snapshot!(transcript.text());
}
