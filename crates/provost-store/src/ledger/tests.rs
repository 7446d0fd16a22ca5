use std::path::Path;

use proptest::prelude::*;
use provost_core::record::Level;
use rustix::fs::{FileType, Mode};
use serde_json::{Map, Value};

use super::*;

fn event(text: &str) -> Event {
    Event {
        ts: "2026-01-01T00:00:00.000Z".into(),
        level: Level::Info,
        event_type: "STEP_STARTED".into(),
        run_id: "run_1".into(),
        task_id: None,
        attempt: Some(1),
        payload: Map::from_iter([("text".to_owned(), Value::from(text))]),
        trace_id: "trace".into(),
    }
}

/// A ledger of three records, and its path.
fn three() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("events.jsonl");
    let mut ledger = FileLedger::create(&path, Head::genesis()).unwrap();
    for text in ["one", "two", "three"] {
        ledger.append(event(text)).unwrap();
    }
    (scratch, path)
}

fn texts(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record.event.payload["text"].as_str().unwrap())
        .collect()
}

fn append_again(path: &Path) -> Result<Vec<String>, StoreError> {
    let (mut ledger, _) = FileLedger::open_for_append(path, Head::genesis())?;
    ledger.append(event("more"))?;
    let chain = read(path, Head::genesis())?;
    assert_eq!(&chain.head, ledger.head());
    Ok(texts(&chain.records)
        .into_iter()
        .map(str::to_owned)
        .collect())
}

#[test]
fn what_was_appended_is_read_back() {
    let (_scratch, path) = three();
    let chain = read(&path, Head::genesis()).unwrap();
    assert_eq!(texts(&chain.records), ["one", "two", "three"]);
    assert_eq!(
        append_again(&path).unwrap(),
        ["one", "two", "three", "more"]
    );
}

#[test]
fn a_ledger_may_continue_another_one() {
    let (scratch, path) = three();
    let sealed = read(&path, Head::genesis()).unwrap().head;
    let after = scratch.path().join("after.jsonl");
    let head = Head::after(&sealed.hash);
    let mut ledger = FileLedger::create(&after, head.clone()).unwrap();
    ledger.append(event("landed")).unwrap();
    assert_eq!(texts(&read(&after, head).unwrap().records), ["landed"]);
    let error = read(&after, Head::genesis()).unwrap_err();
    assert!(
        matches!(error, StoreError::Chain { line: 1, .. }),
        "{error}"
    );
}

#[test]
fn a_ledger_is_never_created_over_another_one() {
    let (_scratch, path) = three();
    assert!(FileLedger::create(&path, Head::genesis()).is_err());
    assert_eq!(read(&path, Head::genesis()).unwrap().records.len(), 3);
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_by_the_driver_and_left_alone_by_readers() {
    let (_scratch, path) = three();
    let bytes = std::fs::read(&path).unwrap();
    let two = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for cut in two..bytes.len() {
        for garble in [false, true] {
            let mut torn = bytes[..cut].to_vec();
            if garble {
                torn[two..].fill(0);
            }
            std::fs::write(&path, &torn).unwrap();
            let chain = read(&path, Head::genesis()).unwrap();
            assert_eq!(texts(&chain.records), ["one", "two"], "cut at {cut}");
            assert_eq!(std::fs::read(&path).unwrap(), torn, "a reader repaired");
            assert_eq!(append_again(&path).unwrap(), ["one", "two", "more"]);
        }
    }
}

#[test]
fn a_flipped_byte_is_found_and_its_line_named() {
    let (_scratch, path) = three();
    let bytes = std::fs::read(&path).unwrap();
    let first = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let second = first + 1..bytes.len() - 200;
    for place in second.step_by(7) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        let Err(error) = read(&path, Head::genesis()) else {
            panic!("byte {place} was flipped unseen");
        };
        let line = bytes[..place].split(|byte| *byte == b'\n').count();
        let want = format!("line {line}");
        assert!(error.to_string().contains(&want), "{place}: {error}");
        assert!(FileLedger::open_for_append(&path, Head::genesis()).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), flipped, "a driver repaired");
    }
}

#[test]
fn a_ledger_that_another_process_changed_takes_nothing_more() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 5] = [
        ("grew", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes.push(b'x');
            std::fs::write(path, bytes).unwrap();
        }),
        ("shrank", |path| {
            File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(9)
                .unwrap();
        }),
        ("removed", |path| std::fs::remove_file(path).unwrap()),
        ("replaced", |path| {
            let copy = path.with_extension("copy");
            std::fs::copy(path, &copy).unwrap();
            std::fs::rename(copy, path).unwrap();
        }),
        ("linked", |path| {
            let moved = path.with_extension("moved");
            std::fs::rename(path, &moved).unwrap();
            std::os::unix::fs::symlink(moved, path).unwrap();
        }),
    ];
    for (name, change) in changes {
        let (_scratch, path) = three();
        let (mut ledger, _) = FileLedger::open_for_append(&path, Head::genesis()).unwrap();
        let original = path.with_extension("original");
        std::fs::hard_link(&path, &original).unwrap();
        change(&path);
        let look = || (std::fs::read(&path).ok(), std::fs::read(&original).unwrap());
        let before = look();
        let error = ledger.append(event("more")).unwrap_err();
        assert_eq!(look(), before, "{name}: something was written");
        assert!(matches!(error, StoreError::Moved { .. }), "{name}: {error}");
        let error = ledger.append(event("more")).unwrap_err();
        assert!(
            matches!(error, StoreError::Poisoned { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn a_second_writer_is_seen_even_between_two_calls() {
    let (_scratch, path) = three();
    let (mut ledger, _) = FileLedger::open_for_append(&path, Head::genesis()).unwrap();
    ledger.disk.write = |mut file, bytes| {
        file.write_all(b"{}\n")?;
        file.write(bytes)
    };
    let error = ledger.append(event("more")).unwrap_err();
    assert!(matches!(error, StoreError::Moved { .. }), "{error}");
}

#[test]
fn every_record_is_synced_by_itself_after_it_was_written() {
    thread_local! {
        static CALLS: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
    }
    let (_scratch, path) = three();
    let (mut ledger, _) = FileLedger::open_for_append(&path, Head::genesis()).unwrap();
    ledger.disk = Disk {
        write: |file, bytes| {
            CALLS.with_borrow_mut(|calls| calls.push('w'));
            (DISK.write)(file, bytes)
        },
        sync: |file| {
            CALLS.with_borrow_mut(|calls| calls.push('s'));
            (DISK.sync)(file)
        },
    };
    for count in 1..=27 {
        ledger.append(event("more")).unwrap();
        assert_eq!(CALLS.with_borrow(String::clone), "ws".repeat(count));
    }
}

#[test]
fn after_a_failed_write_or_sync_nothing_is_taken() {
    let faults: [(&str, Disk, &[&str]); 3] = [
        (
            "no room at all",
            Disk {
                write: |_, _| Err(io::ErrorKind::StorageFull.into()),
                ..DISK
            },
            &["one", "two", "three", "more"],
        ),
        (
            "room for a part",
            Disk {
                write: |mut file, bytes| file.write(&bytes[..bytes.len() / 2]),
                ..DISK
            },
            &["one", "two", "three", "more"],
        ),
        (
            "sync fails",
            Disk {
                sync: |_| Err(io::ErrorKind::Other.into()),
                ..DISK
            },
            &["one", "two", "three", "lost", "more"],
        ),
    ];
    for (name, disk, want) in faults {
        let (_scratch, path) = three();
        let (mut ledger, _) = FileLedger::open_for_append(&path, Head::genesis()).unwrap();
        ledger.disk = disk;
        let error = ledger.append(event("lost")).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{name}: {error}");
        ledger.disk = DISK;
        let error = ledger.append(event("more")).unwrap_err();
        assert!(
            matches!(error, StoreError::Poisoned { .. }),
            "{name}: {error}"
        );
        // A line that was written and not synced may be there or not.
        assert_eq!(ledger.head().next, want.len() as u64 - 1, "{name}");
        assert_eq!(append_again(&path).unwrap(), want, "{name}");
    }
}

#[test]
fn an_event_that_would_not_read_back_is_refused_and_harms_nothing() {
    let (_scratch, path) = three();
    let (mut ledger, _) = FileLedger::open_for_append(&path, Head::genesis()).unwrap();
    let nested = (0..100).fold(Value::Null, |inner, _| Value::from(vec![inner]));
    let mut deep = event("deep");
    deep.payload.insert("deep".into(), nested);
    let large = event(&"x".repeat(provost_core::json::LARGEST));
    for bad in [deep, large] {
        let error = ledger.append(bad).unwrap_err();
        assert!(matches!(error, StoreError::Event(_)), "{error}");
    }
    ledger.append(event("more")).unwrap();
    assert_eq!(read(&path, Head::genesis()).unwrap().records.len(), 4);
}

#[test]
fn what_is_no_ledger_is_refused_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    std::fs::create_dir(at("directory")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    std::os::unix::fs::symlink(at("fifo"), at("link")).unwrap();
    File::create(at("large"))
        .unwrap()
        .set_len(LARGEST + 1)
        .unwrap();
    std::fs::write(at("text"), "hello\n").unwrap();
    std::fs::write(at("blank"), "\n").unwrap();
    let cases = [
        ("nothing", "cannot open"),
        ("directory", "is a directory"),
        ("fifo", "is a FIFO"),
        ("link", "is a symbolic link"),
        ("large", "has more than 268435456 bytes"),
        ("text", "line 1: the chain is broken"),
        ("blank", "line 1: the chain is broken"),
    ];
    for (name, want) in cases {
        let path = at(name);
        for error in [
            read(&path, Head::genesis()).unwrap_err(),
            FileLedger::open_for_append(&path, Head::genesis()).unwrap_err(),
        ] {
            assert!(error.to_string().contains(want), "{name}: {error}");
        }
    }
}

#[test]
fn an_unreadable_ledger_is_an_error() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_scratch, path) = three();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        // Permissions do not bind this user (root), so there is nothing to check here.
        assert!(read(&path, Head::genesis()).is_ok());
        return;
    }
    let error = read(&path, Head::genesis()).unwrap_err();
    assert!(error.to_string().contains("cannot open"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_a_reader_panic_or_write(
        head in prop::collection::vec(any::<u8>(), 0..200),
        keep in 0..3_usize,
        tail in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (_scratch, path) = three();
        let bytes = std::fs::read(&path).unwrap();
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let mixed = [&lines[..keep].concat()[..], &head, b"\n", &tail].concat();
        std::fs::write(&path, &mixed).unwrap();
        let chain = read(&path, Head::genesis());
        prop_assert!(chain.is_err(), "a random line passed for a record");
        prop_assert_eq!(std::fs::read(&path).unwrap(), mixed);
    }

    #[test]
    fn a_number_is_read_back_exactly_or_refused(number in any::<f64>()) {
        let (_scratch, path) = three();
        let (mut ledger, _) = FileLedger::open_for_append(&path, Head::genesis()).unwrap();
        let mut odd = event("odd");
        odd.payload.insert("number".into(), Value::from(number));
        let taken = ledger.append(odd.clone()).is_ok();
        let chain = read(&path, Head::genesis()).unwrap();
        prop_assert_eq!(chain.records.len(), 3 + usize::from(taken));
        if taken {
            prop_assert_eq!(&chain.records[3].event, &odd);
        }
    }
}
