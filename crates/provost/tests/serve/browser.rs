//! Every page in the real Chromium.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use provost_testkit::stage::{Ask, until};

use crate::chromium::Chromium;
use crate::scene::{Scene, scene};
use crate::server::Server;
use crate::waiting;

/// Keeps an image of the page beside the build, for people to look at.
fn keep(browser: &mut Chromium, name: &str) {
    let image = BASE64_STANDARD.decode(browser.screenshot()).unwrap();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("serve");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(format!("{name}.png")), image).unwrap();
}

/// The pages, each with its name, its path and a text on it.
fn pages(scene: &Scene, repository: &str) -> Vec<(&'static str, String, &'static str)> {
    let refused = format!("/r/{repository}/{}", scene.refused);
    let accepted = format!("/r/{repository}/{}", scene.accepted);
    vec![
        ("inbox", "/".to_owned(), "waits for your approval"),
        ("runs", "/runs".to_owned(), "Case: write both files"),
        ("run", refused.clone(), "docs/readme.md"),
        ("accepted", accepted.clone(), "Claim and fact"),
        (
            "change",
            format!("{refused}/change"),
            "Outside the contract",
        ),
        (
            "split",
            format!("{accepted}/change?view=split"),
            "Evidence signed by",
        ),
        (
            "transcript",
            format!("{refused}/transcript"),
            "It decides nothing",
        ),
        (
            "evidence",
            format!("{refused}/evidence"),
            "the evidence holds",
        ),
        ("compare", format!("{refused}/compare"), "Agent worked"),
        (
            "case",
            format!("/c/{repository}/{}", scene.case),
            "no reviewer reads",
        ),
        ("ground", "/ground".to_owned(), "Held paths"),
    ]
}

#[test]
fn every_page_works_in_a_browser() {
    if provost_testkit::lacks(&["chromium"]) {
        return;
    }
    let Some(scene) = scene() else {
        return;
    };
    let server = Server::start(&scene.stage);
    let origin = format!("http://{}", server.host);
    let mut browser = Chromium::start();
    browser.size(360, false);
    browser.open(&server.link);
    assert_eq!(browser.value("location.href"), format!("{origin}/"));
    let title = browser.value("document.title");
    assert_eq!(title, "(4) Inbox · Provost");

    let run = &scene.waiting;
    let query = format!("document.querySelector('a[href$=\"{run}\"]').getAttribute('href')");
    let at = browser.value(&query).as_str().unwrap().to_owned();
    let repository = at.split('/').nth(2).unwrap().to_owned();
    for (name, path, text) in &pages(&scene, &repository) {
        for (width, dark) in [(360, false), (1280, true), (1280, false)] {
            browser.size(width, dark);
            browser.open(&format!("{origin}{path}"));
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(
                wide.as_u64().unwrap() <= u64::from(width),
                "{name}: {wide} at {width}"
            );
            let shown = browser.value("document.body.innerText");
            assert!(shown.as_str().unwrap().contains(text), "{name}: {shown}");
            let title = browser.value("document.title");
            assert!(
                title.as_str().unwrap().starts_with("(4) "),
                "{name}: {title}"
            );
            keep(
                &mut browser,
                &format!("{name}-{width}{}", if dark { "-dark" } else { "" }),
            );
        }
        usable_by_everyone(&mut browser, name);
        browser.scripts(false);
        browser.open(&format!("{origin}{path}"));
        let shown = browser.value("document.body.innerText");
        assert!(shown.as_str().unwrap().contains(text), "{name}: {shown}");
        browser.scripts(true);
    }
    by_keyboard(&mut browser, &origin);
    a_line_is_commented(
        &mut browser,
        &format!("{origin}/r/{repository}/{}/change", scene.refused),
    );
    clean(&browser, &origin);
}

/// No finding of axe-core that is serious or worse.
fn usable_by_everyone(browser: &mut Chromium, name: &str) {
    let tools = std::env::var_os("PROVOST_TEST_TOOLS").map(PathBuf::from);
    let rules = tools.map(|it| it.join("axe/node_modules/axe-core/axe.min.js"));
    let Some(rules) = rules.and_then(|it| std::fs::read_to_string(it).ok()) else {
        provost_testkit::skip("there is no axe-core");
        return;
    };
    browser.value(&rules);
    let found = browser.value(
        "axe.run(document).then(it => it.violations \
         .filter(one => ['serious', 'critical'].includes(one.impact)) \
         .map(one => one.id + ': ' + one.nodes.map(node => node.html).join(' ')))",
    );
    assert_eq!(found, serde_json::json!([]), "{name}");
}

/// The number of a line puts its place into the words of the next attempt.
fn a_line_is_commented(browser: &mut Chromium, change: &str) {
    browser.open(change);
    browser.value("document.querySelector('a[data-at=\"src/a.txt:1\"]').click()");
    let query = "document.querySelector('#words textarea').value";
    assert_eq!(browser.value(query), "src/a.txt:1: ");
    // The words are still there when the page was left, and without the script.
    browser.open(&change.replace("/change", ""));
    browser.open(change);
    assert_eq!(browser.value(query), "src/a.txt:1: ");
    browser.scripts(false);
    browser.open(&format!("{change}?comment=src/a.txt:2"));
    assert_eq!(browser.value(query), "src/a.txt:1: \nsrc/a.txt:2: ");
    browser.scripts(true);
}

/// The first key leads to the content, the next ones through the navigation; a form is sent by
/// keys alone.
fn by_keyboard(browser: &mut Chromium, origin: &str) {
    browser.open(&format!("{origin}/"));
    let mut order = Vec::new();
    for _ in 0..4 {
        browser.key("Tab");
        let focused = browser.value("document.activeElement.textContent");
        order.push(focused.as_str().unwrap().to_owned());
    }
    assert_eq!(order, ["Skip to the content", "Inbox 4", "Runs", "Ground"]);
}

#[test]
fn a_case_is_approved_by_keys_alone_and_shows_its_parts() {
    if provost_testkit::lacks(&["chromium"]) {
        return;
    }
    let Some(scene) = scene() else {
        return;
    };
    let server = Server::start(&scene.stage);
    let mut browser = Chromium::start();
    browser.open(&server.link);
    let query = "document.querySelector('a[href^=\"/c/\"]').getAttribute('href')";
    let at = browser.value(query).as_str().unwrap().to_owned();
    browser.open(&format!("http://{}{at}", server.host));
    for _ in 0..20 {
        browser.key("Tab");
        if browser.value("document.activeElement.textContent") == "Approve and continue" {
            break;
        }
    }
    browser.key("Enter");
    let since = Instant::now();
    let text = "document.body.innerText";
    while !browser.value(text).to_string().contains("did the work") {
        assert!(
            since.elapsed() < Duration::from_secs(40),
            "{}",
            browser.value(text)
        );
        thread::sleep(Duration::from_millis(200));
    }
}

/// No error in the console, and no request to another host.
fn clean(browser: &Chromium, origin: &str) {
    for method in [
        "Runtime.exceptionThrown",
        "Log.entryAdded",
        "Runtime.consoleAPICalled",
    ] {
        let reported = browser.named(method);
        assert!(reported.is_empty(), "{reported:?}");
    }
    let requests = browser.named("Network.requestWillBeSent");
    assert!(requests.len() > 10, "{requests:?}");
    for request in requests {
        let url = request["params"]["request"]["url"].as_str().unwrap();
        assert!(url.starts_with(origin), "{url}");
    }
}

#[test]
fn an_open_page_shows_a_new_run_and_another_port_never_gets_the_cookie() {
    if provost_testkit::lacks(&["chromium"]) {
        return;
    }
    let Some((stage, _)) = waiting() else {
        return;
    };
    let server = Server::start(&stage);
    let mut browser = Chromium::start();
    browser.open(&server.link);
    browser.open(&format!("http://{}/runs", server.host));
    let count = "document.querySelectorAll('article.row').length";
    assert_eq!(browser.value(count), 1);
    let known = stage.runs();
    let running = stage.start("sleep 2; echo good > src/a.txt", &Ask::default());
    until("the run has begun", || {
        let runs = stage.runs();
        let mut new = runs.difference(&known);
        new.any(|run| stage.evidence(run, "events.jsonl").exists())
    });
    let since = Instant::now();
    while browser.value(count) != 2 {
        assert!(
            since.elapsed() < Duration::from_secs(1),
            "the page shows no new run"
        );
        thread::sleep(Duration::from_millis(20));
    }
    running.wait();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let agent = thread::spawn(move || {
        let mut seen = String::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).unwrap();
            seen += &String::from_utf8_lossy(&bytes[..read]);
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
            stream.write_all(answer.as_bytes()).unwrap();
        }
        seen
    });
    browser.open(&format!("http://127.0.0.1:{port}/favicon.ico"));
    browser.open(&format!("http://localhost:{port}/favicon.ico"));
    let seen = agent.join().unwrap();
    assert!(seen.contains("GET /favicon.ico"), "{seen}");
    assert!(!seen.to_lowercase().contains("cookie:"), "{seen}");
}
