//! `provost serve`: the control room in a browser.

mod carry_out;
mod room;
mod tokens;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_host::user_state::UserState;
use provost_room::{registered, running};
use provost_web::{Announced, Listen};
use serde::Serialize;

use self::room::UserRoom;
use crate::answer::{Answer, Failure, Outcome};
use crate::places::{self, Places};
use crate::show::{Reader, one_line, print_message};

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
    /// Print a new link of the server that runs.
    Link(LinkArguments),
    /// List or remove registered repositories.
    #[command(subcommand)]
    Repositories(Repositories),
}

#[derive(Args)]
#[command(after_help = "\
The link opens one session and can be followed for a minute. The server is found in your state
directory; name its place if several run.

Example:
  provost serve link")]
struct LinkArguments {
    /// The socket, or the address with its port, as `provost serve` printed it.
    place: Option<String>,
}

#[derive(Subcommand)]
enum Repositories {
    /// List the repositories that the control room shows.
    List,
    /// Remove a repository from the list; nothing in it is touched.
    #[command(after_help = "Example:\n  provost serve repositories remove ~/old")]
    Remove {
        /// Its path, or its number in the list.
        repository: String,
    },
}

pub(super) fn run(serve: &Serve, reader: Reader) -> Outcome {
    match &serve.command {
        None => {}
        Some(ServeCommand::Token(token)) => return tokens::run(token),
        Some(ServeCommand::Link(LinkArguments { place })) => return link(place.as_deref()),
        Some(ServeCommand::Repositories(asked)) => return repositories(asked),
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
    let mut entry = None;
    provost_web::serve(Arc::new(room), &listen, |announced| {
        // Without an entry, only `provost serve link` does not work.
        match running::enter(&state, &announced.place, &announced.host) {
            Ok(made) => entry = Some(made),
            Err(failure) => print_message(&format!("note: {}", failure.verdict().reason)),
        }
        announce(announced, reader);
        if open {
            open_link(&announced.link);
        }
    })?;
    drop(entry);
    Ok(Answer::silent())
}

/// A new link of the server at `place`, or of the only one.
fn link(place: Option<&str>) -> Outcome {
    let state = state()?;
    let mut all = running::list(&state)?;
    if let Some(place) = place {
        all.retain(|server| server.place == place);
    }
    let server = match all.as_slice() {
        [server] => server,
        [] => {
            let failure = Failure::new(Code::NotFound, "no server of yours runs there");
            return Err(failure.hint("provost serve --open"));
        }
        [first, ..] => {
            let places: Vec<&str> = all.iter().map(|it| it.place.as_str()).collect();
            let reason = format!("several servers run: {}", places.join(", "));
            let hint = format!("provost serve link '{}'", first.place);
            return Err(Failure::new(Code::UsageError, reason).hint(hint));
        }
    };
    let link = running::link(&state, server)?;
    let at = ServedAt {
        place: &server.place,
        link: &link,
    };
    Ok(Answer::data(at, format!("{link}\n")))
}

#[derive(Serialize)]
struct RegisteredRow {
    id: String,
    path: PathBuf,
}

fn repositories(asked: &Repositories) -> Outcome {
    let state = state()?;
    let row = |path: PathBuf| RegisteredRow {
        id: registered::id(&path),
        path,
    };
    match asked {
        Repositories::List => {
            let rows: Vec<_> = registered::list(&state)?.into_iter().map(row).collect();
            let line = |row: &RegisteredRow| {
                format!(
                    "{}  {}\n",
                    row.id,
                    one_line(&row.path.display().to_string())
                )
            };
            let text: String = rows.iter().map(line).collect();
            Ok(Answer::data(rows, text))
        }
        Repositories::Remove { repository } => {
            let removed = row(registered::remove(&state, repository)?);
            Ok(Answer::data(removed, "removed\n"))
        }
    }
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

fn announce(Announced { place, link, .. }: &Announced, reader: Reader) {
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
