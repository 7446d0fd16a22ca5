//! The API: scopes, cursors, tags, problems and the stream of changes.

use futures_util::StreamExt as _;
use serde_json::Value;

use super::*;

/// A site with a token of each scope: reading, commanding.
fn site() -> (Site, String, String) {
    let made = |name: &str, scope| -> NewToken { new_token(name, scope, 0, 2_000_000).unwrap() };
    let (read, command) = (
        made("reader", TokenScope::Read),
        made("robot", TokenScope::Command),
    );
    let site = Site::new(vec![read.row, command.row]);
    let bearer = |token: &str| format!("Bearer {token}");
    (site, bearer(&read.token), bearer(&command.token))
}

fn json(answer: &Answered) -> Value {
    serde_json::from_str(&answer.text).unwrap()
}

fn command(site: &mut Site, bearer: &str, path: &str, body: &str) -> Answered {
    let host = site.app.door.host().to_owned();
    let request = Request::post(path)
        .header(header::HOST, host)
        .header(header::AUTHORIZATION, bearer);
    site.ask(request.body(Body::from(body.to_owned())).unwrap())
}

#[test]
fn only_a_token_that_may_command_commands() {
    let (mut site, read, may) = site();
    let path = "/api/v1/runs/0123456789abcdef/run_1/cancel";
    let body = r#"{"reason": "enough"}"#;
    assert_eq!(
        command(&mut site, &read, path, body).status,
        StatusCode::FORBIDDEN
    );
    let cookie = site.enter();
    let host = site.app.door.host().to_owned();
    let with_cookie = Request::post(path)
        .header(header::HOST, host)
        .header(header::ORIGIN, site.app.door.origin())
        .header(header::COOKIE, cookie);
    let answer = site.ask(with_cookie.body(Body::from(body)).unwrap());
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(site.done(), 0);
    assert_eq!(command(&mut site, &may, path, body).status, StatusCode::OK);
    let asked = site.room.asked.lock().unwrap().clone();
    let name = "robot".to_owned();
    assert_eq!(asked, [AskedBy::Token { name }]);
    for (body, path) in [
        (r#"{"reson": "x"}"#, path),
        ("[", path),
        ("{}", "/api/v1/runs/0123456789abcdef/run_1/approve"),
        ("{}", "/api/v1/runs/0123456789abcdef/run_1/explode"),
    ] {
        let answer = command(&mut site, &may, path, body);
        assert!(
            answer.status.is_client_error(),
            "{body} {path}: {}",
            answer.text
        );
        assert_eq!(
            answer.headers[header::CONTENT_TYPE],
            "application/problem+json"
        );
    }
    assert_eq!(site.done(), 1);
}

#[test]
fn a_cursor_continues_a_list_and_a_tag_saves_an_answer() {
    let (mut site, read, _) = site();
    let auth = ("authorization", read.as_str());
    let mut seen = Vec::new();
    let mut path = "/api/v1/runs/0123456789abcdef?limit=2".to_owned();
    loop {
        let answer = site.get(&path, &[auth]);
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let list = json(&answer);
        for item in list["items"].as_array().unwrap() {
            seen.push(item["run_id"].as_str().unwrap().to_owned());
        }
        match list["next"].as_str() {
            Some(next) => path = format!("/api/v1/runs/0123456789abcdef?limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["run_5", "run_4", "run_3", "run_2", "run_1"]);
    let found = site.get("/api/v1/runs/0123456789abcdef?q=TASK+3", &[auth]);
    assert_eq!(json(&found)["items"][0]["run_id"], "run_3");
    let tag = found.headers[header::ETAG].to_str().unwrap().to_owned();
    let asked = [auth, ("if-none-match", tag.as_str())];
    let again = site.get("/api/v1/runs/0123456789abcdef?q=TASK+3", &asked);
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    assert_eq!(again.text, "");
    let other = site.get("/api/v1/runs/0123456789abcdef?q=TASK+4", &asked);
    assert_eq!(other.status, StatusCode::OK);
}

#[test]
fn every_error_is_a_problem_with_a_code() {
    let (mut site, read, _) = site();
    for path in [
        "/api/v1/nowhere",
        "/api/v1/runs/unknown",
        "/api/v1/runs/0123456789abcdef?cursor=%00",
        "/api/v1/runs/0123456789abcdef?limit=x",
        "/api/v1/runs/%ff",
        "/api/v1/runs/0123456789abcdef/run_9",
        "/api/v1/runs/0123456789abcdef/run_1/cancel",
        "/api/v1/cases/0123456789abcdef/case_1",
        "/api/v1/ground/0123456789abcdef",
    ] {
        let answer = site.get(path, &[("authorization", &read)]);
        assert!(answer.status.is_client_error(), "{path}: {}", answer.status);
        let problem = json(&answer);
        assert_eq!(problem["status"], answer.status.as_u16(), "{path}");
        assert!(
            problem["code"].as_str().is_some_and(|it| !it.is_empty()),
            "{path}"
        );
    }
}

/// The next event of a stream, as text.
fn events(site: &mut Site, bearer: &str, last: Option<&str>, most: usize) -> String {
    let host = site.app.door.host().to_owned();
    let mut request = Request::get("/api/v1/events")
        .header(header::HOST, host)
        .header(header::AUTHORIZATION, bearer);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let router = &mut site.router;
    site.runtime.block_on(async {
        let request = request.body(Body::empty()).unwrap();
        let response = router.call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let parts = response.into_body().into_data_stream().take(most);
        let parts: Vec<_> = parts.collect().await;
        let parts = parts.into_iter().map(|it| it.unwrap().to_vec());
        String::from_utf8(parts.flatten().collect()).unwrap()
    })
}

#[test]
fn a_stream_of_changes_is_resumed_where_it_broke() {
    let (mut site, read, _) = site();
    for number in 1..=3 {
        site.room.changes.lock().unwrap().push(RoomChange {
            number,
            repository: "0123456789abcdef".to_owned(),
            id: Some(format!("run_{number}")),
            kind: RoomChangeKind::Changed,
        });
    }
    let instance = site.app.door.instance().to_owned();
    let text = events(&mut site, &read, Some(&format!("{instance}-1")), 2);
    assert!(!text.contains("reset") && !text.contains("run_1"), "{text}");
    assert!(text.contains("run_2") && text.contains("run_3"), "{text}");
    assert!(text.contains(&format!("id: {instance}-3")), "{text}");
    // A number of another server says nothing here, and neither does one that is forgotten.
    for last in [None, Some("another-1"), Some("junk"), Some("-")] {
        let text = events(&mut site, &read, last, 1);
        assert!(text.contains("event: reset"), "{last:?}: {text}");
    }
    let text = events(&mut site, &read, Some(&format!("{instance}-0")), 1);
    assert!(text.contains("event: reset"), "{text}");
}

#[test]
fn the_openapi_document_is_the_one_that_is_checked_in() {
    let kept = include_str!("../../../../schemas/openapi.v1.json");
    let now = serde_json::to_string_pretty(&crate::openapi()).unwrap() + "\n";
    assert_eq!(kept, now, "run `cargo xtask schemas`");
}

#[test]
fn every_route_of_the_openapi_document_is_answered() {
    let (mut site, read, may) = site();
    let document = crate::openapi();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path
            .replace("{repository}", "0123456789abcdef")
            .replace("{run}", "run_1")
            .replace("{case}", "case_1")
            .replace("{command}", "resume");
        let answer = match methods.get("get") {
            Some(_) => site.get(&path, &[("authorization", &read)]),
            None => command(&mut site, &may, &path, "{}"),
        };
        assert!(
            !answer.text.contains("no such route"),
            "{path}: {}",
            answer.text
        );
        assert_ne!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
}
