//! Feeds arbitrary bytes: the answer is always a report.

use std::collections::BTreeMap;

use proptest::prelude::*;
use provost_core::exit::Exit;
use provost_core::object::{Kind, Mode, ObjectFormat};
use provost_core::pack::Writer;
use provost_core::path::RawPath;
use provost_core::tree::{TreeEntry, render};
use provost_engine::bundle::verify::{Files, Pins, verify};

use crate::attacks::{check, sealed};
use crate::sample::{Bundle, Draft, key};

#[test]
fn documents_that_are_no_documents_are_findings() {
    let deep = "[".repeat(100_000).into_bytes();
    let twice = br#"{"run_id":"a","run_id":"b"}"#.to_vec();
    let nothing = Vec::new();
    let text = b"\xff\xfe\x00".to_vec();
    let numbers = b"1e999".to_vec();
    let lines = b"\n\n\n\n".to_vec();
    let good = sealed();
    for bytes in [deep, twice, nothing, text, numbers, lines] {
        for name in good.keys() {
            let mut bad = good.clone();
            if bad.insert(name.clone(), bytes.clone()) == Some(bytes.clone()) {
                continue;
            }
            assert_eq!(check(&bad).exit(), Exit::Untrusted, "{name}");
        }
        let all: Bundle = good
            .keys()
            .map(|name| (name.clone(), bytes.clone()))
            .collect();
        assert_eq!(check(&all).exit(), Exit::Untrusted);
    }
}

struct Unreadable(Bundle);

impl Files for Unreadable {
    fn names(&self) -> Vec<RawPath> {
        self.0.names()
    }

    fn read(&self, name: &RawPath) -> Result<Vec<u8>, String> {
        if name.as_bytes().starts_with(b"patch") {
            return Err("is a symbolic link".into());
        }
        self.0.read(name)
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_finding() {
    let report = verify(
        &Unreadable(sealed()),
        &[key(1).public()],
        &Pins::default(),
        None,
    );
    assert_eq!(report.exit(), Exit::Untrusted);
    let hit = |path: &str, problem: &str| path == "patch.diff" && problem.contains("symbolic link");
    assert!(
        report
            .proof
            .findings
            .iter()
            .any(|one| hit(&one.path, &one.problem))
    );
}

/// A tree whose every level names the one below twice: exponentially many paths, in few bytes.
#[test]
fn a_tree_with_more_paths_than_time_is_refused() {
    let format = ObjectFormat::Sha1;
    let mut writer = Writer::new(format);
    let blob = writer.add(Kind::Blob, b"x").unwrap();
    let entry = |mode, name: &str, oid: &provost_core::object::Oid| TreeEntry {
        mode,
        name: name.as_bytes().to_vec(),
        oid: oid.clone(),
    };
    let mut level = writer
        .add(Kind::Tree, &render(vec![entry(Mode::File, "f", &blob)]))
        .unwrap();
    for _ in 0..64 {
        let both = vec![
            entry(Mode::Tree, "a", &level),
            entry(Mode::Tree, "b", &level),
        ];
        level = writer.add(Kind::Tree, &render(both)).unwrap();
    }
    let mut draft = Draft::new("run_00000001");
    let old = provost_core::pack::read(&draft.texts["git/objects.pack"], format).unwrap();
    for (kind, bytes) in old.values() {
        writer.add(*kind, bytes).unwrap();
    }
    draft.texts.insert("git/objects.pack", writer.finish());
    draft.predicate.candidate_tree = Some(level);
    let bundle = draft.seal(&key(1));
    let report = check(&bundle);
    assert_eq!(report.exit(), Exit::Untrusted);
    let words = "more paths than are followed";
    assert!(
        report
            .proof
            .findings
            .iter()
            .any(|one| one.problem.contains(words))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_verification_fail_otherwise(
        name in prop::sample::select(sealed().into_keys().collect::<Vec<_>>()),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        more in prop::collection::vec(any::<u8>(), 0..32),
        extra in prop::collection::vec(any::<u8>(), 1..16),
    ) {
        let good = sealed();
        let mut bad = good.clone();
        let bytes = bad.get_mut(&name).unwrap();
        for (place, byte) in places {
            if !bytes.is_empty() {
                let at = place.index(bytes.len());
                bytes[at] = byte;
            }
        }
        bytes.extend(more);
        let exit = check(&bad).exit();
        prop_assert_eq!(exit == Exit::Yes, bad == good);
        let named: BTreeMap<_, _> = [(RawPath::new(extra), Vec::new())].into();
        prop_assert_ne!(check(&named).exit(), Exit::Yes);
    }
}
