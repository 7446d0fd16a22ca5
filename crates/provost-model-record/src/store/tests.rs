use super::*;
use crate::exchange::KeptAnswer;
use std::os::unix::fs::PermissionsExt as _;

fn keep(store: &BodyStore, bytes: &[u8]) -> KeptBody {
    let mut capture = BodyCapture::default();
    for part in bytes.chunks(7) {
        capture.push(part);
    }
    store.keep(capture, sha256(bytes), 0)
}

fn exchange(number: u64, body: &KeptBody) -> Exchange {
    Exchange {
        number,
        reservation: Some(number),
        method: "POST".to_owned(),
        place: "127.0.0.1:1".to_owned(),
        path: "/v1/messages".to_owned(),
        lowered: false,
        request: body.clone(),
        answer: KeptAnswer {
            status: 200,
            fields: Vec::new(),
            complete: true,
            body: body.clone(),
        },
    }
}

#[test]
fn a_body_is_kept_once_and_for_its_user_alone() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("bodies/run_1");
    let store = BodyStore::open(&root, "agent/t/rows.1.jsonl", MOST).unwrap();
    let body = keep(&store, b"data: one\n\ndata: two\n\n");
    assert_eq!(keep(&store, b"data: one\n\ndata: two\n\n"), body);
    store.add(&exchange(2, &body));
    store.add(&exchange(1, &body));
    let all = exchanges(&root, "agent/t/rows.1.jsonl").unwrap();
    assert_eq!(all.iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(read(&root, &body).unwrap(), b"data: one\n\ndata: two\n\n");
    for path in [
        file(&root, &body.sha256),
        root.join("index/agent/t/rows.1.jsonl"),
    ] {
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    for path in [&root, &root.join("index")] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
    let kept = kept(&root).unwrap();
    assert_eq!((kept.files, kept.is_full), (1, false));
}

#[test]
fn a_body_that_is_not_what_it_was_is_not_used() {
    let place = tempfile::tempdir().unwrap();
    let store = BodyStore::open(place.path(), "rows", MOST).unwrap();
    let body = keep(&store, b"the answer");
    let other = keep(&store, b"another answer");
    let path = file(place.path(), &body.sha256);
    fs::copy(file(place.path(), &other.sha256), &path).unwrap();
    let problem = || read(place.path(), &body).unwrap_err().to_string();
    assert!(problem().contains("is not what its digest says"));
    fs::write(&path, b"no archive").unwrap();
    assert!(problem().contains("is not what its digest says"));
    fs::remove_file(&path).unwrap();
    assert!(problem().contains("is missing"));
    let strange = KeptBody {
        sha256: "../../../etc/passwd".to_owned(),
        ..body
    };
    let problem = read(place.path(), &strange).unwrap_err();
    assert!(matches!(problem, RecordProblem::Changed(_)));
    assert_eq!(exchanges(place.path(), "none"), Err(RecordProblem::Absent));
    for text in ["{}\n", "{"] {
        fs::write(place.path().join("index/rows"), text).unwrap();
        let problem = exchanges(place.path(), "rows").unwrap_err();
        assert!(matches!(problem, RecordProblem::Index(_)), "{text}");
    }
}

#[test]
fn a_directory_never_grows_over_its_limit() {
    let place = tempfile::tempdir().unwrap();
    let noise = |seed: u64| -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_le_bytes()[7]
        };
        (0..3000).map(|_| next()).collect()
    };
    let limit = 10_000;
    for attempt in 1..=2 {
        let name = format!("rows.{attempt}");
        let store = BodyStore::open(place.path(), &name, limit).unwrap();
        for number in 1..=5 {
            let body = keep(&store, &noise(attempt * 100 + number));
            store.add(&exchange(number, &body));
        }
    }
    let kept = kept(place.path()).unwrap();
    assert!(
        kept.is_full && kept.bytes <= limit && kept.files == 3,
        "{kept:?}"
    );
    let second = exchanges(place.path(), "rows.2").unwrap();
    let problem = read(place.path(), &second[0].request).unwrap_err();
    assert!(
        problem.to_string().contains("have reached their limit"),
        "{problem}"
    );
}

#[test]
fn a_body_over_the_limit_of_one_body_is_left_out() {
    let place = tempfile::tempdir().unwrap();
    let store = BodyStore::open(place.path(), "rows", MOST).unwrap();
    let mut capture = BodyCapture::default();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..=(LARGEST >> 20) {
        capture.push(&piece);
    }
    let body = store.keep(capture, sha256(b""), 0);
    assert_eq!(body.left_out, Some(LeftOut::Large));
    assert_eq!(kept(place.path()).unwrap().files, 0);
}
