//! Writes the schemas of all formats into `schemas/`, or says which files are not up to date.

use std::fs;
use std::io;
use std::path::Path;

use provost_formats::schema::formats;

/// Writes every schema below `root`.
pub fn write(root: &Path) -> io::Result<()> {
    for format in formats() {
        fs::write(root.join(place(format.name)), format.text())?;
    }
    Ok(())
}

/// Where a schema of this name is kept.
fn place(name: &str) -> String {
    format!("schemas/{name}.json")
}

/// The files below `root` that do not hold what the types say.
pub fn stale(root: &Path) -> Vec<String> {
    formats()
        .filter(|format| {
            let kept = fs::read_to_string(root.join(place(format.name)));
            !kept.is_ok_and(|text| text == format.text())
        })
        .map(|format| place(format.name))
        .collect()
}
