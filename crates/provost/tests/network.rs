//! Types what the page about the network says into a shell, so that it stays true.
//!
//! In a `console` block a line with `$ ` is a command, and the lines below it are all it prints to
//! its standard output. The server of the page is one of the test's own.

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::path::Path;
    use std::thread;

    use provost_testkit::stage::{PATH, Stage, only_home, program};

    const PAGE: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/network.md"
    ));
    /// The port of the page's server.
    const PORT: &str = "8080";

    /// A server that greets, or sends the credential back that it was sent; its port.
    fn server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let head: Vec<String> = lines
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                let credential = head.iter().find(|line| line.starts_with("Authorization"));
                let body = match credential {
                    Some(line) => format!("{line}\n"),
                    None => "hello\n".to_owned(),
                };
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n");
                let reply = format!("{head}Connection: close\r\n\r\n{body}");
                let _ = stream.write_all(reply.as_bytes());
            }
        });
        port.to_string()
    }

    /// The commands of the page, each with what it prints.
    fn steps(page: &str) -> Vec<(String, String)> {
        let mut steps: Vec<(String, String)> = Vec::new();
        let blocks = page.split("```console\n").skip(1);
        for line in blocks.flat_map(|block| block.split("```").next().unwrap_or("").lines()) {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push((command.to_owned(), String::new())),
                None => steps.last_mut().unwrap().1 += &format!("{line}\n"),
            }
        }
        steps
    }

    #[test]
    fn the_console_blocks_do_what_they_show() {
        if provost_testkit::lacks(&["curl", "python3"]) {
            return;
        }
        let page = PAGE.replace(PORT, &server());
        let steps = steps(&page);
        assert_eq!(steps.len(), 4, "the page lost an example");
        let stage = Stage::empty();
        let program = program();
        let own = program.parent().unwrap().display();
        for (line, want) in steps {
            let mut command = stage.command("sh");
            only_home(&mut command, Some(Path::new("/nonexistent")));
            command
                .args(["-c", &line])
                .env("PATH", format!("{own}:{PATH}"));
            let outcome = stage.spawn(command).wait();
            assert_eq!(outcome.out(), want, "$ {line}\n{outcome:?}");
        }
    }
}
