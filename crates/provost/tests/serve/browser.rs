//! Every page in the real Chromium.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use provost_testkit::stage::Ask;

use crate::chromium::Chromium;
use crate::server::Server;
use crate::waiting;

/// Keeps an image of the page beside the build, for people to look at.
fn keep(browser: &mut Chromium, name: &str) {
    let image = BASE64_STANDARD.decode(browser.screenshot()).unwrap();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("serve");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(format!("{name}.png")), image).unwrap();
}

#[test]
fn every_page_works_in_a_browser() {
    if provost_testkit::lacks(&["chromium"]) {
        return;
    }
    let Some((stage, _)) = waiting() else {
        return;
    };
    let ask = Ask::default();
    let refused = stage.run("echo good > src/a.txt; echo x > docs/readme.md", &ask);
    let run = refused.text("run_id").to_owned();
    let server = Server::start(&stage);
    let origin = format!("http://{}", server.host);
    let mut browser = Chromium::start();
    browser.size(360, false);
    browser.open(&server.link);
    assert_eq!(browser.value("location.href"), format!("{origin}/"));
    let title = browser.value("document.title");
    assert_eq!(title, "(2) Inbox · Provost");

    let query = format!("document.querySelector('a[href$=\"{run}\"]').getAttribute('href')");
    let at = browser.value(&query).as_str().unwrap().to_owned();
    let pages = [
        ("inbox", "/".to_owned(), "waits for your approval"),
        ("runs", "/runs".to_owned(), "The filter looks at"),
        ("run", at.clone(), "docs/readme.md"),
        ("change", format!("{at}/change"), "+good"),
        (
            "transcript",
            format!("{at}/transcript"),
            "It decides nothing",
        ),
        ("evidence", format!("{at}/evidence"), "the evidence holds"),
    ];
    for (name, path, text) in &pages {
        for (width, dark) in [(360, false), (360, true), (1280, false)] {
            browser.size(width, dark);
            browser.open(&format!("{origin}{path}"));
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(
                wide.as_u64().unwrap() <= u64::from(width),
                "{name}: {wide} at {width}"
            );
            let shown = browser.value("document.body.innerText");
            assert!(shown.as_str().unwrap().contains(text), "{name}: {shown}");
            keep(
                &mut browser,
                &format!("{name}-{width}{}", if dark { "-dark" } else { "" }),
            );
        }
    }
    by_keyboard(&mut browser, &origin);
    clean(&browser, &origin);
}

/// The first key leads to the content, the next ones through the navigation.
fn by_keyboard(browser: &mut Chromium, origin: &str) {
    browser.open(&format!("{origin}/"));
    let mut order = Vec::new();
    for _ in 0..3 {
        browser.key("Tab");
        let focused = browser.value("document.activeElement.textContent");
        order.push(focused.as_str().unwrap().to_owned());
    }
    assert_eq!(order, ["Skip to the content", "Inbox 2", "Runs"]);
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
    let count = "document.querySelectorAll('article').length";
    assert_eq!(browser.value(count), 1);
    let running = stage.start("sleep 2; echo good > src/a.txt", &Ask::default());
    let since = Instant::now();
    while browser.value(count) != 2 {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "the page shows no new run"
        );
        thread::sleep(Duration::from_millis(50));
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
