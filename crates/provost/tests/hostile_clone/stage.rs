//! Two users: one who prepares a repository full of traps, and one who gets it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::ops::Deref;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use provost_testkit::stage::{Outcome, Stage, only_home};

/// The value of a variable that only its user knows.
pub(crate) const SECRET: &str = "canary-5e1f0a9d7c3b42e8";

/// A stage with the homes of users and their repositories.
pub(crate) struct Users {
    stage: Stage,
    requests: Arc<Mutex<Vec<String>>>,
    /// Where the server is.
    pub(crate) place: String,
}

impl Deref for Users {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl Users {
    pub(crate) fn new() -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let place = server(Arc::clone(&requests));
        let stage = Stage::empty();
        for name in ["author", "victim/outside"] {
            fs::create_dir_all(stage.path(name)).unwrap();
        }
        stage.write("victim/private", &format!("{SECRET}\n"));
        Self {
            stage,
            requests,
            place,
        }
    }

    /// The program under test as `user` in the directory `at`.
    pub(crate) fn call(&self, user: &str, at: &str, words: &[&str]) -> Command {
        let mut command = self.provost(words);
        only_home(&mut command, Some(&self.path(user)));
        command.current_dir(self.path(at));
        command.env("CANARY_TOKEN", SECRET);
        command
    }

    /// What it answers.
    pub(crate) fn ask(&self, user: &str, at: &str, words: &[&str]) -> Outcome {
        self.spawn(self.call(user, at, words)).wait()
    }

    /// Forgets the requests so far.
    pub(crate) fn hush(&self) {
        self.requests.lock().unwrap().clear();
    }

    /// The requests that the server got since.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A server on the loopback that keeps what it is sent; its place.
fn server(requests: Arc<Mutex<Vec<String>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines = lines.map_while(Result::ok);
            let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            requests.lock().unwrap().push(request.join("\n"));
            let reply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ngood\n";
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    place
}
