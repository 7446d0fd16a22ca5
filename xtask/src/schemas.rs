//! Writes the schemas of all formats into `schemas/`, or lists the files that are not up to date.

use std::fs;
use std::io;
use std::path::Path;

use provost_formats::schema::formats;

pub fn write(root: &Path) -> io::Result<()> {
    for format in formats() {
        fs::write(root.join(place(format.name)), format.text())?;
    }
    Ok(())
}

fn place(name: &str) -> String {
    format!("schemas/{name}.json")
}

/// What is wrong with the files below `root` that differ from the schemas of the types.
pub fn stale(root: &Path) -> Vec<String> {
    formats()
        .filter(|format| {
            let kept = fs::read_to_string(root.join(place(format.name)));
            !kept.is_ok_and(|text| text == format.text())
        })
        .map(|format| {
            let place = place(format.name);
            format!("{place}: is not what the types say; run `cargo xtask schemas`")
        })
        .collect()
}
