//! The pages: views of the engine as HTML.

pub(crate) mod assets;
pub(crate) mod case;
pub(crate) mod change;
pub(crate) mod compare;
pub(crate) mod evidence;
mod forms;
pub(crate) mod ground;
pub(crate) mod inbox;
mod patch;
mod plot;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod transcript;

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, html};
use provost_core::code::Code;
use provost_core::foreign_text::one_line;
use provost_core::time;
use provost_engine::ports::PortError;

use crate::guard::Refused;
use crate::room::{AskedCommand, CommandOutcome, ControlRoom};

/// The style; only a request with a session gets it.
const STYLE: &str = "/assets/app.css";

/// An entry of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavigationEntry {
    Inbox,
    Runs,
    Ground,
}

/// A page with its place in the navigation.
pub(crate) struct Page {
    pub(crate) title: String,
    /// Which entry of the navigation it belongs to.
    pub(crate) place: NavigationEntry,
    /// How many things wait for the user; on every page, and in its title.
    pub(crate) waiting: usize,
    pub(crate) body: Markup,
}

impl Page {
    /// The page `title`, with what waits for the user now.
    fn of(room: &dyn ControlRoom, title: impl Into<String>, body: Markup) -> Self {
        Self {
            title: title.into(),
            place: NavigationEntry::Runs,
            waiting: inbox::count(room),
            body,
        }
    }

    pub(crate) fn response(&self) -> Response {
        let count = match self.waiting {
            0 => String::new(),
            count => format!("({count}) "),
        };
        let entry = |place: NavigationEntry, href: &str, words: &str| {
            let here = (self.place == place).then_some("true");
            html! { a href=(href) aria-current=[here] { (words) } }
        };
        let inbox = (self.place == NavigationEntry::Inbox).then_some("true");
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (count) (self.title) " · Provost" }
                    link rel="icon" href="/assets/icon.svg";
                    link rel="stylesheet" href=(STYLE);
                    script src="/assets/app.js" defer {}
                }
                body {
                    a .skip href="#main" { "Skip to the content" }
                    header {
                        span .brand { "Provost" }
                        nav aria-label="Main" {
                            a #inbox-link href="/" aria-current=[inbox] {
                                "Inbox"
                                @if self.waiting > 0 { " " span .count { (self.waiting) } }
                            }
                            (entry(NavigationEntry::Runs, "/runs", "Runs"))
                            (entry(NavigationEntry::Ground, "/ground", "Ground"))
                        }
                    }
                    main #main tabindex="-1" { (self.body) }
                }
            }
        };
        Html(page.into_string()).into_response()
    }
}

/// A page, or why there is none.
fn shown(page: Result<Page, PortError>) -> Response {
    match page {
        Ok(page) => page.response(),
        Err(error) => failed(&error),
    }
}

/// A page without navigation: its reader may have no session.
fn bare(status: StatusCode, title: &str, style: Option<&str>, body: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Provost" }
                @if let Some(style) = style { link rel="stylesheet" href=(style); }
            }
            body { main #main { h1 { (title) } (body) } }
        }
    };
    (status, Html(page.into_string())).into_response()
}

pub(crate) fn refused(Refused { status, reason }: Refused) -> Response {
    let body = html! {
        p { (reason) "." }
        p { code { "provost explain SESSION_REFUSED" } }
    };
    bare(status, "Refused", None, &body)
}

pub(crate) fn failed(error: &PortError) -> Response {
    let body = html! {
        p { strong { (error.code.name()) } " " (one_line(&error.reason)) }
        @if let Some(hint) = &error.hint { p { code { (one_line(hint)) } } }
        p { code { "provost explain " (error.code.name()) } }
        p { a href="/" { "Inbox" } }
    };
    bare(status_of(error.code), "Not done", Some(STYLE), &body)
}

pub(crate) async fn missing() -> Response {
    failed(&PortError::new(Code::NotFound, "there is no such page"))
}

/// The status of HTTP for a failure.
pub(crate) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::UsageError | Code::InputInvalid => StatusCode::BAD_REQUEST,
        Code::HostFailed | Code::Bug => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    }
}

/// A file of the program itself.
fn own(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// How long ago `then` was, in a few letters.
fn age(then: Option<&str>, now: i64) -> String {
    let then = then.and_then(|then| time::parse(then).ok());
    let Some(then) = then else {
        return String::new();
    };
    let seconds = now.saturating_sub(then).max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn length(millis: u64) -> String {
    match millis / 1000 {
        0 => format!("{millis} ms"),
        seconds @ 0..60 => format!("{seconds}.{} s", millis % 1000 / 100),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// A row of a list of facts; nothing if there is no value.
fn fact(name: &str, value: &str) -> Markup {
    html! {
        @if !value.is_empty() { dt { (name) } dd { (one_line(value)) } }
    }
}

/// What came of the commands about a run or a case that pages and programs asked for.
fn asked_commands(room: &dyn ControlRoom, repository: &str, id: &str) -> Markup {
    let commands = room.commands(repository, id);
    html! {
        @if !commands.is_empty() {
            h2 #commands { "Commands" }
            ul .plain-list { @for one in &commands { li { (asked_command(one)) } } }
        }
    }
}

/// One command, with who asked and what came of it.
fn asked_command(one: &AskedCommand) -> Markup {
    let state = match &one.outcome {
        CommandOutcome::Running => pill("", "RUNNING"),
        CommandOutcome::Done => pill("good", "DONE"),
        CommandOutcome::Refused { code, .. } => pill("bad", code),
        CommandOutcome::NotBegun => pill("wait", "NOT BEGUN"),
        CommandOutcome::NoAnswer => pill("wait", "NO ANSWER"),
    };
    html! {
        (state) " " strong { (one_line(&one.command)) }
        " by " (one_line(&one.by)) " at " (one_line(&one.at))
        @match &one.outcome {
            CommandOutcome::Refused { reason, .. } => p { (one_line(reason)) },
            CommandOutcome::NotBegun => p { "The server ended before it began: ask again." },
            CommandOutcome::NoAnswer => p {
                "Its process ended without an answer; the run shows what happened."
            },
            CommandOutcome::Running | CommandOutcome::Done => {},
        }
    }
}

/// That a server which just started has not read everything yet.
fn unread(count: usize) -> Markup {
    html! {
        @if count > 0 {
            p .wait role="status" {
                (count) " older runs are still being read; load the page again to see them."
            }
        }
    }
}

/// A word about a state, in the colour of its class.
fn pill(class: &str, words: &str) -> Markup {
    html! { span class={ "pill " (class) } { (words) } }
}
