//! Control packets with bad files in the place of good ones.

use std::fs;
use std::path::Path;

use provost_core::code::Code;

use crate::files;
use provost_testkit::stage::Stage;

use crate::stage::{Refusal as _, Watched as _, stage};

const GOOD: &str = "hardened_ok_full/artifacts/subagent_control/phase_07";
const PLACE: &str = "repo/artifacts/subagent_control/phase_07";

fn packet(stage: &Stage) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/packets");
    fs::create_dir_all(stage.path(PLACE)).unwrap();
    for entry in fs::read_dir(corpus.join(GOOD)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), stage.path(PLACE).join(entry.file_name())).unwrap();
    }
}

fn check(stage: &Stage, what: &str) -> (i32, Code) {
    let argv = ["--json", "check", "packet", "--phase-id", "phase_07"];
    stage.call(&argv, what).verdict(what)
}

/// YAML that is made to hurt.
fn bombs(place: &Path) -> Vec<(&'static str, std::path::PathBuf)> {
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let list = vec![format!("*a{}", level - 1); 9].join(", ");
        laughs += &format!("a{level}: &a{level} [{list}]\n");
    }
    let texts = [
        ("laughs", laughs),
        (
            "heavy",
            format!("- &a {}\n{}", "x".repeat(3_000_000), "- *a\n".repeat(1000)),
        ),
        ("anchors", "&a [".repeat(1_000_000)),
        ("dashes", "- ".repeat(2_000_000)),
        ("questions", "? ".repeat(2_000_000)),
        ("keys", "a: ".repeat(1_300_000)),
        ("block", format!("a: |\n{}", " x\n".repeat(1_300_000))),
        ("repeated", "schema_version: x\n".repeat(2)),
        ("tagged", "!!python/object:os.system [x]\n".to_owned()),
        ("comments", "#\n".repeat(2_000_000)),
        ("documents", "---\n".repeat(1_000_000)),
        ("plain", format!("a: {}", "x y ".repeat(1_000_000))),
        ("tabs", "\t".repeat(4_000_000)),
    ];
    let put = |(name, text): (&'static str, String)| {
        let path = place.join(name);
        fs::write(&path, text).unwrap();
        (name, path)
    };
    texts.map(put).to_vec()
}

#[test]
fn no_bad_file_in_a_packet_gives_more_than_a_verdict() {
    let stage = stage();
    packet(&stage);
    let place = stage.path("bad");
    fs::create_dir(&place).unwrap();
    let mut bad = files::wrong(&place);
    let ours = |(_, path): &(&str, std::path::PathBuf)| {
        // They are moved about, so only what lies here; what is missing has its own test.
        path.starts_with(&place) && path.symlink_metadata().is_ok()
    };
    bad.extend(files::unreadable(&place).into_iter().filter(ours));
    let bombs = bombs(&place);
    // How JSON is read is shown by other commands; here that it is asked for an answer at all.
    let few = [
        "empty",
        "not_utf8",
        "deep",
        "objects",
        "zeros",
        "directory",
        "fifo",
        "loop",
    ];
    let yaml = bad.iter().chain(&bombs).collect::<Vec<_>>();
    let json = bad.iter().filter(|(kind, _)| few.contains(kind));
    let json = json.collect::<Vec<_>>();
    let names = [
        ("task_card.yaml", yaml),
        ("workspace_before.json", json.clone()),
        ("acceptance_run_log.jsonl", json),
    ];
    for (name, kinds) in names {
        let target = stage.path(PLACE).join(name);
        let good = fs::read(&target).unwrap();
        fs::remove_file(&target).unwrap();
        for (kind, path) in kinds {
            // Moved there and back: a fifo cannot be copied.
            fs::rename(path, &target).unwrap();
            let what = format!("{kind} as {name}");
            let (exit, code) = check(&stage, &what);
            assert_eq!((exit, code), (1, Code::PacketRefused), "{what}");
            fs::rename(&target, path).unwrap();
        }
        fs::write(&target, good).unwrap();
    }
}
