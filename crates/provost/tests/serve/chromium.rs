//! The real Chromium, driven over its debugging pipe.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Chromium {
    child: Child,
    to: File,
    from: BufReader<File>,
    next: u64,
    session: String,
    /// Everything that the page reported.
    pub(crate) events: Vec<Value>,
    _directory: TempDir,
}

impl Chromium {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = directory.path().join(name);
            assert!(
                Command::new("mkfifo")
                    .arg(&path)
                    .status()
                    .unwrap()
                    .success()
            );
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        let profile = directory.path().join("profile");
        let child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<\"$0\" 4>\"$FROM\""])
            .arg(&to)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args(["--disable-sync", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .env("FROM", &from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = File::options().write(true).open(&to).unwrap();
        let from = BufReader::new(File::open(&from).unwrap());
        let mut browser = Self {
            child,
            to,
            from,
            next: 0,
            session: String::new(),
            events: Vec::new(),
            _directory: directory,
        };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", attach);
        let session = attached["sessionId"].as_str().unwrap();
        session.clone_into(&mut browser.session);
        for name in [
            "Page.enable",
            "Runtime.enable",
            "Log.enable",
            "Network.enable",
        ] {
            browser.ask(name, json!({}));
        }
        browser
    }

    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "Chromium ended");
        serde_json::from_slice(&bytes).unwrap()
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method });
        message["params"] = params;
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let answer = self.message();
            if answer["id"] == json!(self.next) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Loads a page, and waits until it is complete.
    pub(crate) fn open(&mut self, url: &str) {
        self.ask("Page.navigate", json!({ "url": url }));
        loop {
            let event = self.message();
            let loaded = event["method"] == "Page.loadEventFired";
            self.events.push(event);
            if loaded {
                return;
            }
        }
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true,
            "awaitPromise": true });
        self.ask("Runtime.evaluate", asked)["result"]["value"].clone()
    }

    pub(crate) fn key(&mut self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            let code = if key == "Tab" { 9 } else { 13 };
            let mut pressed = json!({ "type": kind, "key": key, "code": key,
                "windowsVirtualKeyCode": code });
            // A button is pressed by the letter that the key types.
            if key == "Enter" && kind == "rawKeyDown" {
                pressed["type"] = json!("keyDown");
                pressed["text"] = json!("\r");
            }
            self.ask("Input.dispatchKeyEvent", pressed);
        }
    }

    /// Whether pages may run scripts.
    pub(crate) fn scripts(&mut self, run: bool) {
        let off = json!({ "value": !run });
        self.ask("Emulation.setScriptExecutionDisabled", off);
    }

    pub(crate) fn size(&mut self, width: u32, dark: bool) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1,
            "mobile": width < 500 });
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.ask("Emulation.setEmulatedMedia", media);
    }

    /// The page as an image, in base64.
    pub(crate) fn screenshot(&mut self) -> String {
        let image = self.ask(
            "Page.captureScreenshot",
            json!({ "captureBeyondViewport": true }),
        );
        image["data"].as_str().unwrap().to_owned()
    }

    /// The events with this name.
    pub(crate) fn named(&self, method: &str) -> Vec<&Value> {
        let all = self.events.iter();
        all.filter(|event| event["method"] == method).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
