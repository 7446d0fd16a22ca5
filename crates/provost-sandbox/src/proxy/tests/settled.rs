//! What requests count for in the end: their count, or all that was reserved for them.

use std::sync::Mutex;
use std::sync::mpsc;

use provost_core::agent::SpendLimits;
use provost_core::secret::Known;

use super::counted::{gauge, model, post_with, read_body};
use super::*;
use crate::proxy::TokenMeter;
use crate::proxy::gateway::budget::{Amount, Grant};
use crate::proxy::gateway::request::IMAGE_TOKENS;
use crate::proxy::gateway::request_log::{BadRows, RequestRow, replay};
use crate::proxy::gateway::spend_book::{SpendBook, SpendRow};

const PATH: &str = "/v1/responses";
/// A request of 41 bytes: 14 tokens read and 500 written.
const ASKED: &str = r#"{"model":"m-1","max_output_tokens":500  }"#;
const RESERVED: u64 = 14 + 500;

/// A book that keeps what was reserved and settled.
#[derive(Debug, Default)]
struct KeptBook {
    reserved: Mutex<Vec<u64>>,
    settled: Mutex<Vec<(u64, bool)>>,
}

impl SpendBook for KeptBook {
    fn reserve(
        &self,
        model: &str,
        choose: &mut dyn FnMut(Grant) -> Option<Amount>,
    ) -> std::io::Result<Option<SpendRow>> {
        let left = Grant {
            tokens: Some(9000),
            micro_usd: None,
        };
        let row = choose(left).map(|amount| {
            self.reserved.lock().unwrap().push(amount.tokens);
            SpendRow {
                file: "f".to_owned(),
                id: "i".to_owned(),
                model: model.to_owned(),
            }
        });
        Ok(row)
    }

    fn settle(&self, _: &SpendRow, spent: Amount, estimated: bool) {
        self.settled.lock().unwrap().push((spent.tokens, estimated));
    }
}

fn with_book(place: &str) -> (Arc<TokenMeter>, Arc<KeptBook>) {
    let book = Arc::new(KeptBook::default());
    let gauge = Arc::into_inner(gauge(place, None)).unwrap();
    let own: Arc<dyn SpendBook> = Arc::<KeptBook>::clone(&book);
    (Arc::new(gauge.with_book(own, SpendLimits::default())), book)
}

fn stage(place: &str, gauge: &Arc<TokenMeter>) -> Stage {
    Stage::with(&[place], |outlet| outlet.gauge = Some(Arc::clone(gauge)))
}

#[test]
fn a_request_that_breaks_off_counts_for_all_that_was_reserved() {
    let stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
        Transfer-Encoding: chunked\r\n\r\n";
    let event = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"abc\"}\n\n";
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    let cases = [
        ("before the reply", String::new()),
        ("in the head", "HTTP/1.1 200 OK\r\nContent-".to_owned()),
        (
            "in a sized reply",
            "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{".to_owned(),
        ),
        ("in a stream", format!("{stream}{chunk}{}", &chunk[..20])),
        ("without its count", format!("{stream}{chunk}0\r\n\r\n")),
    ];
    for (name, reply) in cases {
        let place = model(reply).to_string();
        let (gauge, book) = with_book(&place);
        let stage = stage(&place, &gauge);
        stage.ask(&post_with(&place, PATH, "", ASKED));
        stage.finish();
        let passed = gauge.passed();
        assert_eq!(passed.usage.tokens(), RESERVED, "{name}");
        assert_eq!((passed.requests, passed.estimated), (1, 1), "{name}");
        assert_eq!(*book.reserved.lock().unwrap(), [RESERVED], "{name}");
        assert_eq!(*book.settled.lock().unwrap(), [(RESERVED, true)], "{name}");
    }
}

#[test]
fn a_request_whose_agent_is_killed_counts_for_all_that_was_reserved() {
    let place = server(|mut stream| {
        let head = read_head(&mut stream).unwrap();
        read_body(&head, &mut stream);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {}\n\n";
        stream.write_all(head.as_bytes()).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let place = place.to_string();
    let (gauge, book) = with_book(&place);
    let stage = stage(&place, &gauge);
    let mut client = stage.connect();
    let request = post_with(&place, PATH, "", ASKED);
    client.write_all(request.as_bytes()).unwrap();
    read_head(&mut client).unwrap();
    // The proxy ends with its sandbox.
    stage.finish();
    assert_eq!(*book.settled.lock().unwrap(), [(RESERVED, true)]);
    assert_eq!(gauge.passed().usage.tokens(), RESERVED);
}

#[test]
fn a_request_that_was_not_forwarded_costs_nothing() {
    let place = "127.0.0.1:9";
    let (gauge, book) = with_book(place);
    let stage = stage(place, &gauge);
    let reply = stage.ask(&post_with(place, PATH, "", ASKED));
    assert_eq!(status(&reply), "502", "{reply}");
    assert_eq!(*book.settled.lock().unwrap(), [(0, false)]);
    assert_eq!(gauge.passed().usage.tokens(), 0);
}

#[test]
fn images_are_reserved_for_beside_their_bytes() {
    let reply = r#"{"usage":{"input_tokens":7,"output_tokens":9}}"#;
    let place = model(sized(reply)).to_string();
    let (gauge, book) = with_book(&place);
    let stage = stage(&place, &gauge);
    let image = r#"{"model":"m","max_output_tokens":9,"input":[{"role":"user","content":[
        {"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]}"#;
    let answer = stage.ask(&post_with(&place, PATH, "", image));
    assert_eq!(status(&answer), "200", "{answer}");
    let reserved = book.reserved.lock().unwrap()[0];
    assert!(
        (IMAGE_TOKENS..IMAGE_TOKENS + 100).contains(&reserved),
        "{reserved}"
    );
    let two = image.replace(
        "[\n",
        "[{\"type\":\"input_image\",\"image_url\":\"data:,\"},",
    );
    assert_eq!(
        status(&stage.ask(&post_with(&place, PATH, "", &two))),
        "403"
    );
}

#[test]
fn a_call_that_counts_tokens_is_read_and_costs_nothing() {
    let place = replies(|_| sized(r#"{"input_tokens":12}"#)).to_string();
    let agent = |set: &dyn Fn(&mut provost_core::agent::Adapted)| {
        let mut agent = provost_core::agent::Adapter::named("claude")
            .and_then(provost_core::agent::Adapter::plain)
            .unwrap();
        let url = format!("http://{place}");
        agent.provider.as_mut().unwrap().base_url =
            provost_core::agent::provider::BaseUrl::parse(&url).unwrap();
        set(&mut agent);
        Arc::new(TokenMeter::of(&agent).unwrap())
    };
    let gauge = agent(&|agent| {
        agent.grants.models = Some(vec!["m".to_owned()]);
        agent.budget.tokens = Some(1);
    });
    let stage = stage(&place, &gauge);
    let ask = |body: &str| stage.ask(&post_with(&place, "/v1/messages/count_tokens", "", body));
    assert_eq!(status(&ask(r#"{"model":"m"}"#)), "200");
    assert_eq!(status(&ask(r#"{"model":"other"}"#)), "403");
    assert_eq!(
        status(&ask(r#"{"model":"m","tools":[{"name":"Odd"}]}"#)),
        "403"
    );
    assert_eq!(status(&ask("[]")), "400");
    assert_eq!((gauge.passed().requests, gauge.is_overspent()), (0, false));
}

/// A book that another process holds until the test says otherwise.
#[derive(Debug)]
struct HeldBook(Mutex<mpsc::Receiver<()>>);

impl SpendBook for HeldBook {
    fn reserve(
        &self,
        _: &str,
        _: &mut dyn FnMut(Grant) -> Option<Amount>,
    ) -> std::io::Result<Option<SpendRow>> {
        let _ = self.0.lock().unwrap().recv();
        Err(std::io::Error::other("held"))
    }

    fn settle(&self, _: &SpendRow, _: Amount, _: bool) {}
}

#[test]
fn a_book_that_is_held_does_not_keep_the_meter_from_its_limits() {
    let place = model(sized("{}")).to_string();
    let (free, held) = mpsc::channel();
    let gauge = Arc::into_inner(gauge(&place, Some(5000))).unwrap();
    let book = Arc::new(HeldBook(Mutex::new(held)));
    let gauge = Arc::new(gauge.with_book(book, SpendLimits::default()));
    let stage = stage(&place, &gauge);
    thread::scope(|scope| {
        let asked = scope.spawn(|| stage.ask(&post_with(&place, PATH, "", ASKED)));
        thread::sleep(Duration::from_millis(200));
        let (done, seen) = mpsc::channel();
        let other = Arc::clone(&gauge);
        scope.spawn(move || {
            let _ = done.send((other.is_overspent(), other.passed().requests));
        });
        let seen = seen.recv_timeout(Duration::from_secs(5));
        free.send(()).unwrap();
        assert_eq!(seen, Ok((false, 0)));
        let reply = asked.join().unwrap();
        assert!(reply.contains("TOKEN_LIMIT"), "{reply}");
    });
}

pub(super) fn rows(text: &str) -> Vec<RequestRow> {
    let row = |line| serde_json::from_str(line).unwrap();
    text.lines().map(row).collect()
}

#[test]
fn rows_that_exceed_a_grant_or_have_no_beginning_are_found() {
    let amount = |tokens| Amount {
        tokens,
        micro_usd: 0,
    };
    let grant = |tokens| Grant {
        tokens: Some(tokens),
        micro_usd: None,
    };
    let reserved = |number, tokens, left| RequestRow::Reserved {
        number,
        model: "m".to_owned(),
        reserved: amount(tokens),
        output: 1,
        left,
    };
    let opened = RequestRow::Opened { grant: grant(100) };
    let free = Grant::default();
    let cases = [
        (vec![], Err(BadRows::NoGrant)),
        (
            vec![opened.clone(), opened.clone()],
            Err(BadRows::TwoGrants),
        ),
        (
            vec![opened.clone(), reserved(0, 60, free), reserved(1, 60, free)],
            Err(BadRows::Beyond(1)),
        ),
        (
            vec![opened.clone(), reserved(0, 60, grant(50))],
            Err(BadRows::Beyond(0)),
        ),
        (
            vec![opened.clone(), RequestRow::Released { number: 3 }],
            Err(BadRows::Order(3)),
        ),
    ];
    for (rows, want) in cases {
        assert_eq!(replay(&rows), want, "{rows:?}");
    }
    let fine = [
        opened,
        reserved(0, 60, free),
        RequestRow::Released { number: 0 },
        reserved(1, 60, free),
    ];
    assert_eq!(replay(&fine).unwrap().open, amount(60));
}

#[test]
fn rows_name_bodies_by_digest_and_hold_no_secret() {
    let secret = "sk-very-secret-0123456789abcdef";
    let reply = format!(r#"{{"echo":"{secret}","usage":{{"input_tokens":7,"output_tokens":9}}}}"#);
    let place = model(sized(&reply)).to_string();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows");
    let meter = Arc::into_inner(gauge(&place, None)).unwrap();
    let known = Known::new([("KEY", secret)]);
    let log = std::fs::File::create(&file).unwrap();
    let gauge = Arc::new(meter.with_log(log, known.clone()));
    let stage = stage(&place, &gauge);
    stage.ask(&post_with(&place, PATH, "", ASKED));
    let odd = format!(r#"{{"model":"m","tools":[{{"name":"{secret}"}}]}}"#);
    stage.ask(&post_with(&place, PATH, "", &odd));
    stage.finish();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(secret), "{text}");
    let rows = rows(&text);
    let RequestRow::Settled {
        request, answer, ..
    } = &rows[2]
    else {
        panic!("{text}");
    };
    let digest = provost_core::object::sha256;
    assert_eq!(request.sha256, digest(ASKED.as_bytes()));
    let clean = known.scrub_text(reply).0;
    assert_eq!(answer.sha256, digest(clean.as_bytes()));
    assert!(
        matches!(
            &rows[3],
            RequestRow::Refused {
                code: Code::ModelRequestRefused,
                ..
            }
        ),
        "{text}"
    );
}
