//! `provost serve`: the control room in a browser.

mod carry_out;
mod room;
mod tokens;

use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_host::user_state::UserState;
use provost_web::{Announced, Listen};
use serde::Serialize;

use self::room::UserRoom;
use crate::answer::{Answer, Failure, Outcome};
use crate::places::{self, Places};
use crate::show::{Reader, print_message};

/// Show and command your runs in a browser, on this machine only.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
The repository around the current directory is registered; every registered one is shown. Without
flags a unix socket in your state directory is served, for you alone. The link opens one session and
can be followed for a minute. `provost explain serve` describes the pages and the API.

Examples:
  provost serve --open
  provost serve token new ci --scope read --expires 7d")]
pub(super) struct Serve {
    #[command(subcommand)]
    command: Option<ServeCommand>,

    /// Serve on a free port of 127.0.0.1 instead of the socket.
    #[arg(long)]
    tcp: bool,

    /// Open the link in a browser; implies --tcp.
    #[arg(long)]
    open: bool,
}

#[derive(Subcommand)]
enum ServeCommand {
    /// Make, list or revoke tokens of the API.
    #[command(subcommand)]
    Token(tokens::Token),
}

pub(super) fn run(serve: &Serve, reader: Reader) -> Outcome {
    if let Some(ServeCommand::Token(token)) = &serve.command {
        return tokens::run(token);
    }
    let state = state()?;
    let room = UserRoom::new(state.clone())?;
    let listen = if serve.tcp || serve.open {
        Listen::Loopback
    } else {
        let directory = state.made().map_err(places::refused)?;
        Listen::Socket(directory.join("serve.sock"))
    };
    let open = serve.open;
    provost_web::serve(Arc::new(room), &listen, |announced| {
        announce(announced, reader);
        if open {
            open_link(&announced.link);
        }
    })?;
    Ok(Answer::silent())
}

/// The state of this user, outside the repository around the current directory if there is one.
fn state() -> Result<UserState, Failure> {
    match Places::look() {
        Ok(place) => place.own(),
        Err(failure) if failure.code == Code::NotARepository => {
            let nowhere = std::path::Path::new("/nonexistent");
            UserState::find(nowhere).map_err(places::refused)
        }
        Err(failure) => Err(failure),
    }
}

#[derive(Serialize)]
struct ServedAt<'a> {
    place: &'a str,
    link: &'a str,
}

fn announce(Announced { place, link }: &Announced, reader: Reader) {
    let text = match reader {
        Reader::Program => serde_json::to_string(&ServedAt { place, link }).unwrap_or_default(),
        Reader::Person => format!("serving at {place}\n{link}"),
    };
    print_line(&text);
    if reader == Reader::Program {
        return;
    }
    print_message("the link opens one session, within a minute; Ctrl-C ends the server");
    if place.starts_with('/') {
        print_message("a browser cannot open a socket; for a browser: provost serve --open");
    }
}

/// Data of a command that does not end.
fn print_line(text: &str) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    // A closed pipe is not our failure.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Opens the link with the user's browser; without one, the user follows the printed link.
fn open_link(link: &str) {
    let opened = Command::new("xdg-open")
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match opened {
        Ok(mut child) => {
            std::thread::spawn(move || child.wait());
        }
        Err(_) => print_message("no browser can be started here: follow the link yourself"),
    }
}
