//! Finds names that some file system treats as the same name.
//!
//! A repository is checked out on file systems of all kinds. NTFS and HFS+ ignore case; HFS+
//! ignores some code points and normalises accents in its own way. NTFS drops trailing dots and
//! spaces, reads what follows a colon as the name of a stream, and resolves short names such as
//! `GIT~1`. A rule that knew only one spelling of a name could be evaded.
//!
//! # Invariants
//!
//! - [`fold`] maps two spellings to the same text whenever one of these file systems confuses them,
//!   except streams and short names; only a [`Reading`] considers those.
//! - When in doubt, a name counts as protected: a name that only might be read as a protected one
//!   is.

use unicode_normalization::UnicodeNormalization as _;

/// The canonical spelling of all names that are treated as `name`.
pub fn fold(name: &str) -> String {
    if name.is_ascii() {
        return ends_trimmed(name).to_ascii_lowercase();
    }
    // To upper case and back, because some lower-case letters share one capital. Letter by letter,
    // because folding must not depend on the end of a word.
    let visible = name.chars().filter(|letter| !is_skipped(*letter)).nfd();
    let cased = visible
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase);
    let folded: String = cased.nfd().collect();
    ends_trimmed(&folded).to_owned()
}

/// [`fold`] for each component of a path, which need not be UTF-8.
pub fn fold_path(path: &[u8]) -> Vec<u8> {
    let part = |part: &[u8]| match std::str::from_utf8(part) {
        Ok(text) => fold(text).into_bytes(),
        Err(_) => part.to_ascii_lowercase(),
    };
    let parts: Vec<Vec<u8>> = path.split(|byte| *byte == b'/').map(part).collect();
    parts.join(&b'/')
}

/// Whether git, on some system, would treat a directory of this name as a repository.
pub fn is_git(name: &[u8]) -> bool {
    // NTFS reads a backslash as a slash.
    name.split(|byte| *byte == b'\\').any(|part| {
        let may = matches!(part.first(), Some(b'.' | b'g' | b'G')) || !part.is_ascii();
        if !may {
            return false;
        }
        let end = part.iter().position(|byte| *byte == b':');
        let Ok(text) = std::str::from_utf8(&part[..end.unwrap_or(part.len())]) else {
            return false;
        };
        // If there is a `.git`, it was created first, so no other number belongs to it.
        matches!(fold(text).as_str(), ".git" | "git~1")
    })
}

/// A name as the most permissive file system reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    folded: String,
    /// Whether it can be a short name; most names cannot, and are compared often.
    may_be_short: bool,
}

impl Reading {
    pub fn of(name: &str) -> Self {
        let stream = name.find(':').unwrap_or(name.len());
        let folded = fold(&name[..stream]);
        Self {
            may_be_short: folded.contains('~'),
            folded,
        }
    }

    /// Whether the name may be read as `known`, which is folded and ASCII.
    pub fn is(&self, known: &str) -> bool {
        self.folded == known || self.is_short(known)
    }

    /// Whether the name may be read as one that begins with `beginning`, which is folded and ASCII.
    pub fn begins(&self, beginning: &str) -> bool {
        let letters = || beginning.replace('.', "");
        self.folded.starts_with(beginning)
            || self.short().is_some_and(|short| short.begins(&letters()))
    }

    /// Whether the name may be read as one that has these pieces in their order, with any letters
    /// between them; the pieces are folded and ASCII.
    pub fn has_pieces(&self, pieces: &[&str]) -> bool {
        let (Some((before, rest)), Some(after)) = (pieces.split_first(), pieces.last()) else {
            return false;
        };
        let plainly = || {
            let mut text = self.folded.strip_prefix(before)?;
            let (end, middle) = rest.split_last()?;
            for piece in middle {
                text = text.split_once(piece)?.1;
            }
            text.strip_suffix(end)
        };
        let short = || {
            self.short()
                .is_some_and(|short| short.is_around(before, after))
        };
        plainly().is_some() || short()
    }

    /// The canonical spelling of its long forms.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    pub fn may_be_short(&self) -> bool {
        self.may_be_short
    }

    /// Whether the name is `known` itself, in one of its long spellings.
    pub fn is_plainly(&self, known: &str) -> bool {
        self.folded == known
    }

    fn short(&self) -> Option<Short<'_>> {
        self.may_be_short.then(|| Short::parse(&self.folded))?
    }

    fn is_short(&self, known: &str) -> bool {
        let Some(short) = self.short() else {
            return false;
        };
        let known = known.trim_start_matches('.');
        let (stem, ending) = known.rsplit_once('.').unwrap_or((known, ""));
        let stem = stem.replace('.', "");
        let whole = stem.len().min(short.room) == short.head.len();
        ending.get(..3).unwrap_or(ending) == short.ending
            && (whole && short.begins(&stem) || short.is_hashed(&stem))
    }
}

/// A name such as `gitmod~1` or `packag~2.jso`, which NTFS gives to names longer than 8.3.
///
/// If too many names begin alike, it keeps two letters and adds four digits of a hash: `gi7eba~1`.
struct Short<'a> {
    head: &'a str,
    ending: &'a str,
    /// How many letters the number leaves for the head.
    room: usize,
}

impl<'a> Short<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let (head, rest) = name.split_once('~')?;
        let (number, ending) = rest.split_once('.').unwrap_or((rest, ""));
        let counts = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        let room = 7_usize.checked_sub(number.len())?;
        let fits = !number.is_empty() && !head.is_empty() && head.len() <= room && head.is_ascii();
        (counts && fits).then_some(Self { head, ending, room })
    }

    /// Whether this can be the short form of a name that begins with `letters`.
    fn begins(&self, letters: &str) -> bool {
        let seen = letters.get(..self.room).unwrap_or(letters);
        self.head.starts_with(seen) || self.is_hashed(letters)
    }

    /// Whether this can be the short form of a name with this beginning and end.
    fn is_around(&self, before: &str, after: &str) -> bool {
        let letters = before.trim_start_matches('.').replace('.', "");
        let ending = after.rsplit_once('.').map(|(_, ending)| ending);
        let ends = ending.is_none_or(|ending| ending.get(..3).unwrap_or(ending) == self.ending);
        let begins = letters.is_empty() || self.begins(&letters);
        ends && begins && (ending.is_some() || !letters.is_empty())
    }

    fn is_hashed(&self, letters: &str) -> bool {
        let (Some(head), Some(hash)) = (self.head.get(..2), self.head.get(2..)) else {
            return false;
        };
        letters.starts_with(head)
            && self.head.len() == self.room
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

/// The first invisible or bidirectional-control character of `name`: a name with one looks like
/// another name.
pub fn invisible(name: &str) -> Option<char> {
    name.chars()
        .find(|letter| is_skipped(*letter) || is_blank(*letter))
}

/// Whether `letter` has no width on a screen, although file systems do not ignore it.
fn is_blank(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{2060}'..='\u{2069}' | '\u{3164}'
            | '\u{ffa0}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// Whether HFS+ ignores `letter` in a name.
fn is_skipped(letter: char) -> bool {
    matches!(
        letter,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
    )
}

fn ends_trimmed(name: &str) -> &str {
    name.trim_end_matches(['.', ' '])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_that_some_file_system_confuses_are_one() {
        let cases = [
            ("README.md", "readme.MD", true),
            ("Stra\u{df}e", "STRASSE", true),
            ("\u{17f}ecret", "Secret", true),
            ("\u{c9}", "\u{e9}", true),
            ("\u{e9}", "e\u{301}", true),
            ("\u{c9}", "e\u{301}", true),
            ("K", "\u{212a}", true),
            ("\u{3c3}", "\u{3c2}", true),
            ("\u{3a3}a\u{3a3}", "\u{3c3}a\u{3c2}", true),
            ("\u{ac00}", "\u{1100}\u{1161}", true),
            ("a\u{200c}b", "ab", true),
            ("a. .", "a", true),
            ("dir./x", "DIR/X ", true),
            ("a", "b", false),
            ("e", "\u{e9}", false),
            ("File::Copy.3", "File::Spec.3", false),
            ("a.b", "ab", false),
        ];
        for (one, other, want) in cases {
            let same = fold_path(one.as_bytes()) == fold_path(other.as_bytes());
            assert_eq!(same, want, "{one:?} {other:?}");
        }
        assert_ne!(fold_path(b"\xffa"), fold_path(b"\xfea"));
        assert_eq!(fold_path(b"\xffA"), fold_path(b"\xffa"));
    }

    #[test]
    fn a_repository_is_known_by_all_its_names() {
        let yes = [
            ".git",
            ".GIT",
            ".Git",
            "git~1",
            "GIT~1",
            ".git ",
            ".git.",
            ".git...  ",
            "git~1 .",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            "git~1:x",
            ".git .:x",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\u{206f}",
            ".g\u{200d}\u{200e}i\u{202a}t",
            ".gi\u{200f}T",
            "a\\.git",
            ".git\\config",
            "a\\GIT~1 \\b",
        ];
        for name in yes {
            assert!(is_git(name.as_bytes()), "{name:?}");
        }
        assert!(is_git(b".git:\xff"));
        let no = [
            "",
            "git",
            ".gi",
            ".gitx",
            ".github",
            "git~2",
            "git~10",
            "git~",
            "xgit~1",
            ". git",
            " .git",
            ".git-keep",
            ".gita:b",
            "a.git",
            "\u{200c}",
            ":.git",
            "g",
        ];
        for name in no {
            assert!(!is_git(name.as_bytes()), "{name:?}");
        }
        assert!(!is_git(b".git\xff"));
    }

    #[test]
    fn invisible_letters_are_found() {
        for name in [
            "a\u{200b}b",
            "\u{202e}fdp.exe",
            "\u{2066}x",
            "x\u{feff}",
            "\u{e0041}",
        ] {
            assert!(invisible(name).is_some(), "{name:?}");
        }
        for name in [
            "caf\u{e9}",
            "stra\u{df}e",
            "\u{2764}\u{fe0f}.md",
            "\u{65e5}\u{672c}",
            "a b",
        ] {
            assert_eq!(invisible(name), None, "{name:?}");
        }
    }

    #[test]
    fn short_names_stand_for_long_ones() {
        let cases = [
            (".gitmodules", "gitmod~1", true),
            (".gitmodules", "GITMOD~4", true),
            (".gitmodules", "GI7EBA~1", true),
            (".gitmodules", "gi7eb~10", true),
            (".gitignore", "gi250a~1. .", true),
            (".gitattributes", "gi7d29~9", true),
            (".mailmap", "maba30~1", true),
            (".mailmap", "mailma~1", true),
            (".provost", "provos~1", true),
            ("provost.toml", "PROVOS~1.TOM", true),
            (".env", "env~1", true),
            ("cargo.toml", "cargo~1.tom", true),
            (".gitlab-ci.yml", "gitlab~12.yml", false),
            (".gitlab-ci.yml", "gitla~12.yml", true),
            (".gitmodules", "gitmod~0", false),
            (".gitmodules", "gitmod~", false),
            (".gitmodules", "gitmo~1", false),
            (".gitmodules", "gitmod~1x", false),
            (".gitmodules", "gitmod~1.x", false),
            (".gitmodules", "gizzzz~1", false),
            (".gitmodules", "git~1", false),
            ("provost.toml", "provos~1", false),
            (".env", "e~1", false),
        ];
        for (known, name, want) in cases {
            assert_eq!(Reading::of(name).is(known), want, "{name} for {known}");
        }
        for (beginning, name, want) in [
            (".env.", "env~1.loc", true),
            (".env.", "ENVPRO~1.LOC", true),
            ("jest.config.", "jestco~1.js", true),
            (".provost", "PROVOS~3", true),
            (".env.", "en~1.loc", false),
            ("jest.config.", "jesting~1.js", false),
        ] {
            let begins = Reading::of(name).begins(beginning);
            assert_eq!(begins, want, "{name} for {beginning}");
        }
    }

    proptest! {
        #[test]
        fn folding_is_idempotent_and_takes_any_bytes(text in ".{0,12}", bytes: Vec<u8>) {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once);
            let _ = (is_git(&bytes), fold_path(&bytes), Reading::of(&text).is(".git"));
        }

        #[test]
        fn case_and_form_of_letters_do_not_count(text in "[a-z\u{e9}\u{f1}\u{fc}\u{3b1}-\u{3c9}.]{1,8}") {
            let composed: String = text.nfc().collect();
            let apart: String = text.nfd().collect();
            prop_assert_eq!(fold(&composed), fold(&apart));
            prop_assert_eq!(fold(&text.to_uppercase()), fold(&text));
        }
    }
}
