//! Says what programs write that fetch something from the network.

use super::Reader;
use super::options::{Given, Order};
use super::token::Word;
use crate::hook::tool_call::EventError;

/// Reads a call of the program `name`, if this module knows it.
pub(super) fn run(reader: &mut Reader, name: &str, arguments: &[Word]) -> Result<bool, EventError> {
    match name {
        "curl" => curl(reader, arguments)?,
        "wget" => wget(reader, arguments)?,
        "gh" => gh(reader, arguments)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The file that a download is stored in by default.
fn kept(word: &Word) -> Word {
    let path = word.text.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = path.split_once('/').map(|(_, rest)| rest);
    let name = name.and_then(|rest| rest.rsplit('/').next());
    let name = name.filter(|name| !name.is_empty()).unwrap_or("index.html");
    word.with(name)
}

fn curl(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    const WRITTEN: &str = "\
        alt-svc libcurl o output D dump-header c cookie-jar trace trace-ascii stderr \
        etag-save hsts";
    let longs = "alt-svc libcurl output output-dir dump-header cookie-jar trace trace-ascii stderr \
        etag-save hsts header data data-binary data-raw request user user-agent url max-time \
        connect-timeout retry form config cacert";
    let given = Given::read(arguments, "AbcCdDeEFHKmoPQrtTuUwxXyYz", longs, Order::Mixed);
    if given.has("K config") {
        return Err(EventError::Obscure("curl --config".to_owned()));
    }
    let place = given.values("output-dir").next().cloned();
    reader.inside(place.as_ref(), |reader| {
        let files = given.values(WRITTEN).filter(|word| word.text != "-");
        reader.add_all(&files.cloned().collect::<Vec<_>>())?;
        if given.has("O remote-name remote-name-all") {
            let names: Vec<Word> = given.words.iter().map(kept).collect();
            reader.add_all(&names)?;
        }
        Ok(())
    })
}

fn wget(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let longs = "\
        output-document directory-prefix output-file append-output input-file header \
        user-agent timeout tries user password post-data";
    let given = Given::read(arguments, "ABDeIilOoPQRtTUwXa", longs, Order::Mixed);
    reader.add_all(given.values("o output-file a append-output"))?;
    if given.has("spider V version h help") {
        return Ok(());
    }
    let mut documents = given.values("O output-document").peekable();
    if documents.peek().is_some() {
        let files: Vec<&Word> = documents.filter(|word| word.text != "-").collect();
        return reader.add_all(files);
    }
    let place = given.values("P directory-prefix").next();
    if place.is_some() || given.has("r recursive m mirror i input-file") {
        return reader.add(place.unwrap_or(&Word::plain(".")));
    }
    let names: Vec<Word> = given.words.iter().map(kept).collect();
    reader.add_all(&names)
}

/// What `gh` writes.
fn gh(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let given = Given::read(arguments, "RDpO", "repo dir output", Order::Mixed);
    let words: Vec<&str> = given.words.iter().map(|word| word.text.as_str()).collect();
    match words.as_slice() {
        ["pr", "checkout" | "co", ..] => Err(EventError::Obscure("gh pr checkout".to_owned())),
        ["repo", "clone", ..] | ["release" | "run", "download", ..] => {
            let place = given.values("D dir O output").next();
            reader.add(place.or(given.words.get(3)).unwrap_or(&Word::plain(".")))
        }
        _ => Ok(()),
    }
}
