//! A server that is killed while it carries out a command.

use std::thread;
use std::time::{Duration, Instant};

use provost_testkit::stage::{Ask, Stage};

use crate::field;
use crate::server::Server;

/// How long a command that the server started may take.
const PATIENCE: Duration = Duration::from_secs(8);

#[test]
fn a_command_of_a_killed_server_happened_once_or_not_at_all() {
    let Some(stage) = Stage::with_sandbox() else {
        return;
    };
    for (round, delay) in [0, 20, 400].into_iter().enumerate() {
        let script = format!("echo good {round} > src/a.txt");
        let run = stage
            .run(&script, &Ask::default())
            .text("run_id")
            .to_owned();
        let before: usize = commits(&stage);
        let mut server = Server::start(&stage);
        let cookie = server.enter();
        let inbox = server.get("/", &cookie).body;
        let token = field(&inbox, "form_token").to_owned();
        let land = inbox
            .split("action=\"")
            .find(|it| it.contains(&format!("{run}/land\"")));
        let path = land.unwrap().split('"').next().unwrap().to_owned();
        let sent = server.send(&path, &cookie, &format!("form_token={token}"));
        thread::sleep(Duration::from_millis(delay));
        server.kill();
        drop(sent);

        let server = Server::start(&stage);
        let cookie = server.enter();
        let page = path.replace("/land", "");
        let since = Instant::now();
        let mut landed = false;
        while !landed && since.elapsed() < PATIENCE {
            landed = server.get(&page, &cookie).body.contains("landed on");
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(
            commits(&stage),
            before + usize::from(landed),
            "after {delay} ms"
        );
        let body = server.get(&page, &cookie).body;
        assert_eq!(body.contains("/land\""), !landed, "after {delay} ms");
        // The page says which: a command that has no record was not carried out.
        let says = if body.contains(">DONE<") {
            landed
        } else {
            !landed || body.contains("NO ANSWER")
        };
        assert!(says, "after {delay} ms: {body}");
    }
}

fn commits(stage: &Stage) -> usize {
    let count = stage.git(&["rev-list", "--count", "main"]);
    count.trim().parse().unwrap()
}
