use super::*;
use crate::exchange::KeptAnswer;
use crate::store::{BodyCapture, BodyStore, MOST};
use provost_core::object::sha256;
use serde_json::json;

/// A record of requests with their answers, and the sealed rows that belong to it.
struct Recorded {
    place: tempfile::TempDir,
    store: BodyStore,
    sealed: Vec<SealedRequest>,
}

impl Recorded {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let store = BodyStore::open(place.path(), "rows", MOST).unwrap();
        Self {
            place,
            store,
            sealed: Vec::new(),
        }
    }

    fn add(&mut self, request: &Value, answer: &str) {
        self.add_as(request, answer, |_| {});
    }

    fn add_as(&mut self, request: &Value, answer: &str, change: impl Fn(&mut Exchange)) {
        let keep = |bytes: &[u8]| {
            let mut capture = BodyCapture::default();
            capture.push(bytes);
            self.store.keep(capture, sha256(bytes), 0)
        };
        let number = self.store.number();
        let mut exchange = Exchange {
            number,
            reservation: Some(number),
            method: "POST".to_owned(),
            place: "127.0.0.1:1".to_owned(),
            path: "/v1/messages?beta=true".to_owned(),
            lowered: false,
            request: keep(request.to_string().as_bytes()),
            answer: KeptAnswer {
                status: 200,
                fields: Vec::new(),
                complete: true,
                body: keep(answer.as_bytes()),
            },
        };
        let digests = [&exchange.request, &exchange.answer.body].map(|it| it.sha256.clone());
        self.sealed.push(SealedRequest {
            number,
            digests: Some(digests),
        });
        change(&mut exchange);
        self.store.add(&exchange);
    }

    fn load(&self) -> Result<Playback, Vec<String>> {
        Playback::load(self.place.path(), "rows", &self.sealed, Known::default())
    }
}

fn ask(playback: &Playback, request: &Value) -> Option<String> {
    let body = request.to_string();
    let answer = playback.answer("POST", "/v1/messages?beta=true", body.as_bytes())?;
    Some(String::from_utf8(answer.body).unwrap())
}

fn said(words: &[&str]) -> Value {
    let messages = words
        .iter()
        .map(|word| json!({"role": "user", "content": word}));
    json!({"model": "m-1", "messages": messages.collect::<Vec<_>>()})
}

#[test]
fn a_request_gets_the_answer_of_its_place_in_its_conversation() {
    let mut recorded = Recorded::new();
    recorded.add(&said(&["one, pid=5"]), "first of one");
    recorded.add(&said(&["two"]), "first of two");
    recorded.add(&said(&["one, pid=5", "took 3 ms"]), "second of one");
    recorded.add(&said(&["two"]), "first of two, again");
    let playback = recorded.load().unwrap();
    // Conversations may overlap otherwise than before.
    let rows = [
        (said(&["two"]), "first of two"),
        (said(&["one, pid=99"]), "first of one"),
        (said(&["two"]), "first of two, again"),
        (said(&["one, pid=99", "took 7 ms"]), "second of one"),
    ];
    for (number, (request, answer)) in rows.iter().enumerate() {
        assert_eq!(playback.left(), rows.len() - number);
        assert_eq!(ask(&playback, request).as_deref(), Some(*answer));
    }
    assert_eq!((playback.left(), playback.stopped()), (0, None));
    // Every answer is given once.
    assert_eq!(ask(&playback, &said(&["two"])), None);
    assert_eq!(playback.stopped().unwrap().closest, None);
}

#[test]
fn a_changed_prompt_is_named_and_ends_the_playback() {
    let mut recorded = Recorded::new();
    recorded.add(&said(&["a title", "please"]), "title");
    recorded.add(&said(&["make it good", "ok", "go on"]), "third");
    recorded.add(&said(&["make it good"]), "first");
    let playback = recorded.load().unwrap();
    assert_eq!(ask(&playback, &said(&["make it bad"])), None);
    let stopped = playback.stopped().unwrap();
    assert_eq!((stopped.request, stopped.closest), (1, Some(3)));
    let RequestDifference {
        pointer,
        recorded: was,
        again,
    } = stopped.difference;
    assert_eq!(pointer, "/messages/0/content");
    assert_eq!(was.as_deref(), Some("make it good"));
    assert_eq!(again.as_deref(), Some("make it bad"));
    // Nothing is answered any more.
    assert_eq!(ask(&playback, &said(&["make it good"])), None);
}

#[test]
fn a_request_for_another_path_has_no_equal() {
    let mut recorded = Recorded::new();
    recorded.add(&said(&["one"]), "first");
    let playback = recorded.load().unwrap();
    let body = said(&["one"]).to_string();
    assert_eq!(playback.answer("POST", "/v1/other", body.as_bytes()), None);
    let stopped = playback.stopped().unwrap();
    let shown = stopped.difference.again;
    assert_eq!(shown.as_deref(), Some("POST /v1/other"));
}

#[test]
fn a_lowered_output_limit_may_differ_and_another_may_not() {
    let with = |limit: u64| json!({"max_tokens": limit, "messages": []});
    for lowered in [true, false] {
        let mut recorded = Recorded::new();
        recorded.add_as(&with(10), "x", |exchange| exchange.lowered = lowered);
        let playback = recorded.load().unwrap();
        assert_eq!(ask(&playback, &with(20)).is_some(), lowered);
    }
}

#[test]
fn a_record_that_is_not_complete_is_not_played() {
    type Change = fn(&mut Exchange);
    let rows: [(&str, Change); 7] = [
        ("held 2 secrets", |it| it.answer.body.removed = 2),
        ("got no answer", |it| it.answer.status = 0),
        ("reached their limit", |it| {
            it.answer.body.left_out = Some(crate::exchange::LeftOut::Limit);
        }),
        ("is not that of the sealed rows", |it| {
            it.answer.body.sha256 = sha256(b"other");
        }),
        ("is missing", |it| it.request.sha256 = sha256(b"other")),
        ("was not recorded", |it| it.reservation = None),
        ("is in no sealed row", |it| it.reservation = Some(9)),
    ];
    for (words, change) in rows {
        let mut recorded = Recorded::new();
        recorded.add(&said(&["one"]), "first");
        recorded.add_as(&said(&["two"]), "second", change);
        let problems = recorded.load().unwrap_err();
        let named = problems.iter().any(|it| it.contains(words));
        assert!(named, "{words}: {problems:?}");
    }
    let mut recorded = Recorded::new();
    recorded.add(&said(&["one"]), "first");
    recorded.sealed.push(SealedRequest {
        number: 2,
        digests: None,
    });
    let problems = recorded.load().unwrap_err();
    assert_eq!(problems, ["request 2 of the sealed rows has no end"]);
    let empty = tempfile::tempdir().unwrap();
    let problems = Playback::load(empty.path(), "rows", &[], Known::default());
    assert_eq!(problems.unwrap_err().len(), 1);
}

/// A secret in a request is removed before it is compared, as it was before it was kept.
#[test]
fn secrets_are_in_no_request_that_is_compared() {
    let mut recorded = Recorded::new();
    let known = Known::new([("TOKEN", "quince-secret-1234")]);
    let clean = String::from_utf8(clean(&known, b"say quince-secret-1234")).unwrap();
    assert!(!clean.contains("quince"));
    recorded.add(&said(&[&clean]), "first");
    let (place, sealed) = (recorded.place.path(), &recorded.sealed);
    let playback = Playback::load(place, "rows", sealed, known).unwrap();
    let asked = said(&["say quince-secret-1234"]);
    assert_eq!(ask(&playback, &asked).as_deref(), Some("first"));
    assert_eq!(ask(&playback, &said(&["send quince-secret-1234"])), None);
    let shown = format!("{:?}", playback.stopped());
    assert!(!shown.contains("quince"), "{shown}");
}
