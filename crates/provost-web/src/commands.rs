//! Commands of people: forms whose origin and token the guard has checked.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use provost_core::code::Code;
use provost_engine::ports::PortError;

use crate::door::Visitor;
use crate::guard::CheckedForm;
use crate::pages;
use crate::room::{AskedBy, RoomCommand};
use crate::server::App;

pub(crate) async fn carry_out(
    State(app): State<App>,
    Path((repository, run, name)): Path<(String, String, String)>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<CheckedForm>,
) -> Response {
    let command = match parse(&name, &form.0) {
        Ok(command) => command,
        Err(error) => return pages::failed(&error),
    };
    let target = match command {
        _ if run.starts_with("case_") => format!("/c/{repository}/{run}"),
        RoomCommand::Retry { .. } | RoomCommand::KeepWork => "/runs".to_owned(),
        _ => format!("/r/{repository}/{run}"),
    };
    let sends_words = matches!(command, RoomCommand::Retry { words: Some(_) });
    let about = (repository.clone(), run.clone());
    let asked = AskedBy::Session { id: visitor.id };
    let done = app
        .ask(move |room| room.carry_out(&repository, &run, &command, &asked))
        .await;
    match done {
        // A page that is loaded again must not send the form again.
        Ok(_) => {
            if sends_words {
                app.drafts.keep(about, "");
            }
            (StatusCode::SEE_OTHER, [(header::LOCATION, target)]).into_response()
        }
        Err(error) => pages::failed(&error),
    }
}

/// Keeps the words for the next attempt that are not sent yet.
pub(crate) async fn keep_words(
    State(app): State<App>,
    Path((repository, run)): Path<(String, String)>,
    Extension(form): Extension<CheckedForm>,
) -> Response {
    let target = format!("/r/{repository}/{run}/change#words");
    let about = (repository.clone(), run.clone());
    // Only a run that exists has words.
    let known = app.ask(move |room| room.run(&repository, &run).map(drop));
    if let Err(error) = known.await {
        return pages::failed(&error);
    }
    let words = form.0.get("words").map_or("", String::as_str);
    app.drafts.keep(about, words);
    (StatusCode::SEE_OTHER, [(header::LOCATION, target)]).into_response()
}

pub(crate) fn parse(
    name: &str,
    fields: &BTreeMap<String, String>,
) -> Result<RoomCommand, PortError> {
    let field = |name: &str| fields.get(name).map(|it| it.trim().to_owned());
    let text = |name: &str| field(name).unwrap_or_default();
    let digest = || {
        let digest = field("digest").filter(|it| !it.is_empty());
        digest.ok_or_else(|| {
            PortError::new(Code::UsageError, "the form does not name what it answers")
        })
    };
    Ok(match name {
        "approve" => RoomCommand::Approve { digest: digest()? },
        "reject" => RoomCommand::Reject {
            digest: digest()?,
            reason: text("reason"),
        },
        "cancel" => RoomCommand::Cancel {
            reason: text("reason"),
        },
        "retry" => RoomCommand::Retry {
            words: field("words").filter(|it| !it.is_empty()),
        },
        "keep-work" => RoomCommand::KeepWork,
        "land" => RoomCommand::Land,
        "resume" => RoomCommand::Resume,
        _ => return Err(PortError::new(Code::NotFound, "there is no such command")),
    })
}
