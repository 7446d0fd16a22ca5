//! Matches git's ignore patterns exactly as git does.
//!
//! # Invariants
//!
//! - Patterns and names are bytes; any bytes are accepted and matching is never slow: a pattern of
//!   `m` and a name of `n` bytes take at most `m * n` steps.
//! - A pattern that git cannot use matches nothing.
//! - This module knows one file only: which files apply, and that an ignored directory excludes
//!   everything below it, is decided by the walker.

/// The patterns of one `.gitignore` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patterns(Vec<Pattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    ignore: bool,
    /// Whether it matches directories only.
    directory: bool,
    /// Whether it is compared with the last component only.
    base_name: bool,
    /// The literal bytes at the front.
    front: Vec<u8>,
    rest: Vec<Piece>,
}

impl Patterns {
    /// Parses the bytes of a `.gitignore` file.
    pub fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let lines = bytes.split(|byte| *byte == b'\n');
        Self(lines.filter_map(Pattern::parse).collect())
    }

    /// Whether `path`, relative to the directory of the file, is ignored; `None` if no pattern
    /// matches. The last matching pattern decides.
    pub fn decide(&self, path: &[u8], is_directory: bool) -> Option<bool> {
        let fits = |pattern: &&Pattern| (is_directory || !pattern.directory) && pattern.fits(path);
        self.0.iter().rev().find(fits).map(|pattern| pattern.ignore)
    }
}

impl Pattern {
    fn parse(line: &[u8]) -> Option<Self> {
        if line.is_empty() || line.starts_with(b"#") {
            return None;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Git works with text that ends at the first NUL.
        let line = line.split(|byte| *byte == 0).next().unwrap_or(line);
        let line = without_blanks(line);
        let (ignore, line) = match line.strip_prefix(b"!") {
            Some(rest) => (false, rest),
            None => (true, line),
        };
        let (directory, line) = match line.strip_suffix(b"/") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let base_name = !line.contains(&b'/');
        let glob = match line.strip_prefix(b"/") {
            Some(rest) if !base_name => rest,
            _ => line,
        };
        let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let literal = glob.iter().position(special).unwrap_or(glob.len());
        // Git compares the literal front of a path separately, so `**` right after it counts as if
        // it were at the beginning.
        let (front, rest) = glob.split_at(if base_name { 0 } else { literal });
        let slash = if base_name {
            Slash::Ordinary
        } else {
            Slash::Separates
        };
        Some(Self {
            ignore,
            directory,
            base_name,
            front: front.to_vec(),
            rest: pieces(rest, slash)?,
        })
    }

    fn fits(&self, path: &[u8]) -> bool {
        let last = || path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let name = if self.base_name { last() } else { path };
        name.strip_prefix(self.front.as_slice())
            .is_some_and(|rest| matches(&self.rest, rest))
    }
}

/// Removes unescaped trailing spaces.
fn without_blanks(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte != b' ' {
            end = at.min(line.len());
        }
    }
    // A backslash at the very end makes git give up trimming.
    if at > line.len() { line } else { &line[..end] }
}

/// How wildcards treat a slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slash {
    /// Matched like any other byte.
    Ordinary,
    /// Matched only by itself and by `**`.
    Separates,
}

/// One piece of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// One byte of this set, indexed by value.
    One(Vec<bool>),
    /// Any number of bytes, with or without slashes.
    Any {
        /// Whether slashes match.
        crosses: bool,
    },
    /// Matches nothing; the next two pieces are optional.
    Fork,
}

/// Parses a glob; `None` if git could not match anything with it.
fn pieces(glob: &[u8], slash: Slash) -> Option<Vec<Piece>> {
    let only = |wanted: u8| Piece::One((0..=u8::MAX).map(|byte| byte == wanted).collect());
    let open = |byte: u8| slash == Slash::Ordinary || byte != b'/';
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(byte) = glob.get(at) {
        at = match byte {
            b'*' => {
                let (stars, next) = star(glob, at, slash);
                pieces.extend(stars);
                next
            }
            b'?' => {
                pieces.push(Piece::One((0..=u8::MAX).map(open).collect()));
                at + 1
            }
            b'[' => {
                let end = class(glob, at, 0)?.1;
                let holds = |byte| open(byte) && class(glob, at, byte).is_some_and(|it| it.0);
                pieces.push(Piece::One((0..=u8::MAX).map(holds).collect()));
                end
            }
            b'\\' => {
                pieces.push(only(*glob.get(at + 1)?));
                at + 2
            }
            plain => {
                pieces.push(only(*plain));
                at + 1
            }
        };
    }
    Some(pieces)
}

/// The stars that begin at `at`, and where they end.
fn star(glob: &[u8], at: usize, slash: Slash) -> (Vec<Piece>, usize) {
    let stars = glob[at..].iter().take_while(|byte| **byte == b'*').count();
    let rest = &glob[at + stars..];
    let begins = at == 0 || glob[at - 1] == b'/';
    let ends = rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"\\/");
    let doubled = stars > 1 && begins && ends && slash == Slash::Separates;
    let crosses = doubled || slash == Slash::Ordinary;
    let mut pieces = vec![Piece::Any { crosses }];
    if doubled && rest.starts_with(b"/") {
        // `**/` also matches no directory.
        pieces.insert(0, Piece::Fork);
    }
    (pieces, at + stars)
}

/// Whether `pieces` match all of `text`.
fn matches(pieces: &[Piece], text: &[u8]) -> bool {
    // Every position in the pieces that the text so far may have reached.
    let mut places = vec![false; pieces.len() + 1];
    places[0] = true;
    spread(pieces, &mut places);
    for byte in text {
        let mut next = vec![false; pieces.len() + 1];
        for (at, piece) in pieces.iter().enumerate().filter(|(at, _)| places[*at]) {
            match piece {
                Piece::One(bytes) => next[at + 1] |= bytes[usize::from(*byte)],
                Piece::Any { crosses } => next[at] |= *crosses || *byte != b'/',
                Piece::Fork => {}
            }
        }
        places = next;
        spread(pieces, &mut places);
    }
    places[pieces.len()]
}

/// Adds the positions that are reached without another byte.
fn spread(pieces: &[Piece], places: &mut [bool]) {
    for (at, piece) in pieces.iter().enumerate() {
        if !places[at] {
            continue;
        }
        match piece {
            Piece::One(_) => {}
            Piece::Any { .. } => places[at + 1] = true,
            Piece::Fork => {
                places[at + 1] = true;
                places[at + 3] = true;
            }
        }
    }
}

/// Whether the class that begins at `at` contains `letter`, and where it ends; `None` if it has no
/// end.
fn class(glob: &[u8], at: usize, letter: u8) -> Option<(bool, usize)> {
    let mut at = at + 1;
    let negated = matches!(glob.get(at), Some(b'!' | b'^'));
    if negated {
        at += 1;
    }
    let mut found = false;
    let mut previous = None;
    loop {
        let byte = *glob.get(at)?;
        let range = byte == b'-' && !matches!(glob.get(at + 1), None | Some(b']'));
        if let (true, Some(low)) = (range, previous) {
            at += 1;
            if glob[at] == b'\\' {
                at += 1;
            }
            found |= (low..=*glob.get(at)?).contains(&letter);
            previous = None;
        } else if let Some(name) = named(glob, at) {
            found |= holds(name, letter)?;
            at += name.len() + 3;
            previous = None;
        } else {
            if byte == b'\\' {
                at += 1;
            }
            let literal = *glob.get(at)?;
            found |= literal == letter;
            previous = Some(literal);
        }
        at += 1;
        if *glob.get(at)? == b']' {
            return Some((found != negated, at + 1));
        }
    }
}

/// The name in `[:name:]`, if that begins at `at`.
fn named(glob: &[u8], at: usize) -> Option<&[u8]> {
    let rest = glob.get(at..)?.strip_prefix(b"[:")?;
    let end = rest.iter().position(|byte| *byte == b']')?;
    rest[..end].strip_suffix(b":")
}

/// Whether the class of this name contains `letter`; `None` if there is no such class.
fn holds(name: &[u8], letter: u8) -> Option<bool> {
    Some(match name {
        b"alnum" => letter.is_ascii_alphanumeric(),
        b"alpha" => letter.is_ascii_alphabetic(),
        b"blank" => matches!(letter, b' ' | b'\t'),
        b"cntrl" => letter.is_ascii_control(),
        b"digit" => letter.is_ascii_digit(),
        b"graph" => letter.is_ascii_graphic(),
        b"lower" => letter.is_ascii_lowercase(),
        b"print" => letter.is_ascii_graphic() || letter == b' ',
        b"punct" => letter.is_ascii_punctuation(),
        b"space" => matches!(letter, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => letter.is_ascii_uppercase(),
        b"xdigit" => letter.is_ascii_hexdigit(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_pattern_about_a_path_decides() {
        let patterns = Patterns::parse(b"*.o\n!keep.o\n/build/\n# x\n\nx\\ \ny   \r\n");
        let cases: [(&str, bool, Option<bool>); 9] = [
            ("a.o", false, Some(true)),
            ("d/a.o", false, Some(true)),
            ("d/keep.o", false, Some(false)),
            ("build", true, Some(true)),
            ("build", false, None),
            ("d/build", true, None),
            ("x ", false, Some(true)),
            ("y", false, Some(true)),
            ("# x", false, None),
        ];
        for (path, is_directory, want) in cases {
            assert_eq!(
                patterns.decide(path.as_bytes(), is_directory),
                want,
                "{path}"
            );
        }
    }

    #[test]
    fn no_pattern_is_slow() {
        let pattern = [b"*a".repeat(100), b"b".to_vec()].concat();
        let name = b"a".repeat(4000);
        assert_eq!(Patterns::parse(&pattern).decide(&name, false), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(patterns: Vec<u8>, path: Vec<u8>, is_directory: bool) {
            let _ = Patterns::parse(&patterns).decide(&path, is_directory);
        }

        #[test]
        fn any_brackets_are_taken(
            patterns in "[\\[\\]!^:a\\-\\\\*?/]{0,12}",
            path in "[a\\-\\]:/]{0,6}",
        ) {
            let _ = Patterns::parse(patterns.as_bytes()).decide(path.as_bytes(), false);
        }
    }
}
