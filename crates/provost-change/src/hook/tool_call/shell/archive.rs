//! Says what programs write that pack and unpack archives.

use super::Reader;
use super::options::{Given, Order};
use super::token::Word;
use crate::hook::tool_call::EventError;

/// Reads a call of the program `name`, if this module knows it.
pub(super) fn run(reader: &mut Reader, name: &str, arguments: &[Word]) -> Result<bool, EventError> {
    match name {
        "tar" | "gtar" | "bsdtar" => tar(reader, arguments)?,
        "unzip" => unzip(reader, arguments)?,
        "zip" => {
            let given = Given::read(arguments, "bntxi", "", Order::Mixed);
            let target = given.words.first().filter(|word| word.text != "-");
            reader.add_all(target)?;
            if given.has("m move") {
                reader.add_all(given.words.iter().skip(1))?;
            }
        }
        "7z" | "7za" | "7zr" => seven(reader, arguments)?,
        "cpio" => {
            let given = Given::read(arguments, "CDEFHIOR", "directory file", Order::Mixed);
            reader.add_all(given.values("O F file"))?;
            if given.has("i extract p pass-through") && !given.has("t list") {
                unpacked(reader, given.values("D directory").next())?;
            }
        }
        "ar" => {
            let reads = arguments
                .first()
                .is_some_and(|word| word.text.trim_start_matches('-').starts_with(['t', 'p']));
            if !reads {
                reader.add_all(arguments.get(1))?;
            }
        }
        "gzip" | "gunzip" | "bzip2" | "bunzip2" | "xz" | "unxz" | "lzma" | "zstd" | "unzstd"
        | "lz4" | "compress" | "uncompress" => packed(reader, arguments)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Files that come out of an archive, in this directory unless a word names one.
fn unpacked(reader: &mut Reader, place: Option<&Word>) -> Result<(), EventError> {
    reader.add(place.unwrap_or(&Word::plain(".")))
}

/// A file that replaces another.
fn packed(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let given = Given::read(arguments, "oSTD", "suffix output-dir-flat", Order::Mixed);
    let reads = "c stdout to-stdout t test l list h help V version";
    if given.has(reads) {
        return Ok(());
    }
    reader.add_all(given.values("o"))?;
    reader.add_all(given.words.iter().filter(|word| word.text != "-"))
}

/// The letters of the first word need no dash; the values of some follow in their order.
fn dashed(arguments: &[Word], values: &str) -> Vec<Word> {
    let Some((first, rest)) = arguments.split_first() else {
        return Vec::new();
    };
    if first.text.starts_with('-') {
        return arguments.to_vec();
    }
    let mut rest = rest.iter().cloned();
    let mut all = Vec::new();
    for letter in first.text.chars() {
        all.push(Word::plain(format!("-{letter}")));
        if values.contains(letter) {
            all.extend(rest.next());
        }
    }
    all.extend(rest);
    all
}

fn tar(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    const VALUES: &str = "bCfFgHIKLNTVX";
    let longs = "\
        file directory exclude files-from transform strip-components use-compress-program \
        to-command checkpoint-action";
    let given = Given::read(&dashed(arguments, VALUES), VALUES, longs, Order::Mixed);
    if given.has("to-command F use-compress-program I checkpoint-action") {
        return Err(EventError::Obscure(
            "tar with a program of its own".to_owned(),
        ));
    }
    let absolute = "P absolute-names";
    if given.has("remove-files") || given.has("x extract get") && given.has(absolute) {
        return Err(EventError::Obscure(
            "tar that removes files, or leaves its directory,".to_owned(),
        ));
    }
    if given.has("x extract get") {
        if given.has("O to-stdout") {
            return Ok(());
        }
        let places: Vec<&Word> = given.values("C directory").collect();
        if places.len() > 1 {
            return Err(EventError::Obscure("tar with two directories".to_owned()));
        }
        return unpacked(reader, places.first().copied());
    }
    let makes = "c create r append u update A catenate concatenate delete";
    if given.has(makes) {
        let files = given.values("f file");
        let files: Vec<&Word> = files.filter(|word| word.text != "-").collect();
        reader.add_all(files)?;
    }
    Ok(())
}

fn unzip(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let given = Given::read(arguments, "dP", "", Order::Mixed);
    if given.words.is_empty() || given.has("l t p v Z z") {
        return Ok(());
    }
    unpacked(reader, given.values("d").next())
}

fn seven(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let verb = arguments.first().map(|word| word.text.as_str());
    match verb {
        None | Some("l" | "t" | "b" | "h" | "i") => Ok(()),
        Some("x" | "e") => {
            let mut places = arguments
                .iter()
                .filter_map(|word| Some(word.with(word.text.strip_prefix("-o")?)));
            let place = places.next();
            unpacked(reader, place.as_ref())
        }
        Some(_) => {
            let mut words = arguments.iter().skip(1);
            reader.add_all(words.find(|word| !word.text.starts_with('-')))
        }
    }
}
