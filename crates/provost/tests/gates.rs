//! Runs the corpora of the gates against the real program.

use std::path::Path;

use xtask::corpus::{self, CorpusError, Report};

fn run(kind: &str, directory: &str) -> Result<Report, CorpusError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let program = Path::new(env!("CARGO_BIN_EXE_provost"));
    corpus::run(kind, &root.join(directory), program)
}

#[test]
fn the_command_gate_holds_its_corpus() {
    let report = run("commandgate", "corpus/commandgate").unwrap();
    assert!(report.holds(), "{report}");
}

#[test]
fn the_operator_contracts_hold_their_corpus() {
    let report = run("contracts", "corpus/contracts").unwrap();
    assert!(report.holds(), "{report}");
}

#[test]
fn the_task_contracts_hold_our_own_cases() {
    let report = run("contracts", "corpus-own/contracts").unwrap();
    assert!(report.holds(), "{report}");
}

#[test]
fn the_diff_gate_holds_its_corpus() {
    let report = run("diffgate", "corpus/diffgate").unwrap();
    assert!(report.holds(), "{report}");
}

#[test]
fn the_packet_check_holds_its_corpus() {
    let report = run("packets", "corpus/packets").unwrap();
    assert!(report.holds(), "{report}");
}

#[test]
fn the_diff_gate_holds_our_own_cases() {
    let report = run("diffgate", "corpus-own/diffgate").unwrap();
    assert!(report.holds(), "{report}");
}

#[test]
fn child_packages_hold_their_corpus() {
    let report = run("child-packages", "corpus/child-packages").unwrap();
    assert!(report.holds(), "{report}");
}
