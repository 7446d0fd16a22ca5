//! The style and the script, which are parts of the program.

use axum::response::Response;

use super::own;

pub(crate) async fn style() -> Response {
    own(
        "text/css; charset=utf-8",
        include_str!("../../assets/app.css"),
    )
}

pub(crate) async fn script() -> Response {
    let text = include_str!("../../assets/app.js");
    own("text/javascript; charset=utf-8", text)
}

pub(crate) async fn icon() -> Response {
    own("image/svg+xml", include_str!("../../assets/icon.svg"))
}
