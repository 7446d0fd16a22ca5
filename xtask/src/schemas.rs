//! Writes the schemas of all formats into `schemas/`, or lists the files that are not up to date.

use std::fs;
use std::io;
use std::path::Path;

use provost_core::schema::Format;
use provost_engine::bundle::formats::FORMATS;
use provost_formats::schema;

/// The formats of documents, and those of files in sealed directories.
fn formats() -> impl Iterator<Item = &'static Format> {
    schema::formats().chain(FORMATS)
}

pub fn write(root: &Path) -> io::Result<()> {
    for format in formats() {
        fs::write(root.join(place(format.name)), format.text())?;
    }
    fs::write(root.join(place(OPENAPI)), openapi()?)
}

/// The API of the control room, which is no format of a file.
const OPENAPI: &str = "openapi.v1";

fn openapi() -> io::Result<String> {
    Ok(serde_json::to_string_pretty(&provost_web::openapi())? + "\n")
}

fn place(name: &str) -> String {
    format!("schemas/{name}.json")
}

/// What is wrong with the files below `root` that differ from the schemas of the types.
pub fn stale(root: &Path) -> Vec<String> {
    let texts = formats().map(|format| (format.name, format.text()));
    let openapi = openapi().unwrap_or_default();
    texts
        .chain([(OPENAPI, openapi)])
        .filter(|(name, text)| {
            let kept = fs::read_to_string(root.join(place(name)));
            !kept.is_ok_and(|kept| kept == *text)
        })
        .map(|(name, _)| {
            let place = place(name);
            format!("{place}: is not what the types say; run `cargo xtask schemas`")
        })
        .collect()
}
