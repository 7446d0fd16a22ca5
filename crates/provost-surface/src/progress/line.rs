//! Makes one terminal line from the output of a program.

use provost_core::foreign_text::is_unseen;

/// `text` as one line that a terminal prints and does not obey.
///
/// Escape sequences are removed as a whole, so that no rest of one is left. Text that a program
/// overwrote by a carriage return is not shown.
pub(super) fn printable(text: &str) -> String {
    let text = text.trim_end_matches(['\r', '\n']);
    let text = text.rsplit('\r').find(|part| !part.trim().is_empty());
    let mut line = String::new();
    let mut rest = text.unwrap_or_default().chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\x1b' => match rest.next() {
                Some('[') => skip(&mut rest, |it| ('\x40'..='\x7e').contains(&it)),
                // A title, a link or another text for the terminal, up to its end.
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    skip(&mut rest, |it| matches!(it, '\x07' | '\u{9c}' | '\\'));
                }
                _ => {}
            },
            '\u{9b}' => skip(&mut rest, |it| ('\x40'..='\x7e').contains(&it)),
            '\t' | '\n' => line.push(' '),
            other if is_unseen(other) => {}
            other => line.push(other),
        }
    }
    line
}

/// Skips everything up to the first character that `ends` a sequence.
fn skip(rest: &mut impl Iterator<Item = char>, ends: impl Fn(char) -> bool) {
    for character in rest.by_ref() {
        if ends(character) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_nothing_that_a_terminal_obeys() {
        let cases = [
            ("plain", "plain"),
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[2K\x1b[1A up", " up"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\u{9b}31mred", "red"),
            ("10%\r50%\r90%\r", "90%"),
            ("old\r\n", "old"),
            ("a\tb\x07\x08c", "a bc"),
            ("a\u{202e}b\u{200b}c", "abc"),
            ("\x1b[", ""),
            ("\x1b]0;never ends", ""),
            ("\r\r", ""),
        ];
        for (text, want) in cases {
            assert_eq!(printable(text), want, "{text:?}");
        }
    }
}
