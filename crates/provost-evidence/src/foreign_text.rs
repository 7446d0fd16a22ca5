//! Neutralises text that others wrote, before it is shown.
//!
//! Agents, repositories and documents choose names and messages. Shown as they are, they could
//! move the cursor, hide or reorder what stands around them, or add a line that looks like ours.
//!
//! # Invariants
//!
//! - Nothing in a result is obeyed by a terminal, and nothing in it is invisible: such a character
//!   is shown as its escape, like `\u{1b}`.
//! - Neutralising a result again changes nothing.

/// `text` with its lines and tabs, and nothing else that is obeyed or invisible.
pub fn neutralise(text: &str) -> String {
    escaped(text, |letter| matches!(letter, '\n' | '\t'))
}

/// `text` as a part of one line: its line ends and tabs are escaped too.
pub fn one_line(text: &str) -> String {
    escaped(text, |_| false)
}

/// The first line of `text` that is not blank, at most `most` characters of it.
pub fn first_line(text: &str, most: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    match line.char_indices().nth(most) {
        Some((end, _)) => one_line(&line[..end]) + "…",
        None => one_line(line),
    }
}

/// `text` for an element or an attribute of XML or HTML.
pub fn markup(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in neutralise(text).chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            other => safe.push(other),
        }
    }
    safe
}

/// Whether a terminal obeys `letter`, or shows nothing for it, or shows others differently.
pub fn is_unseen(letter: char) -> bool {
    let directs = matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
    let fills = matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{3164}'
            | '\u{ffa0}'
    );
    let hides = matches!(letter, '\u{180e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
    let is_tag = matches!(letter, '\u{e0000}'..='\u{e007f}');
    let is_no_character = u32::from(letter) & 0xfffe == 0xfffe;
    letter.is_control() || directs || fills || hides || is_tag || is_no_character
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            letter if stays(letter) || !is_unseen(letter) => safe.push(letter),
            '\n' | '\r' | '\t' => safe.extend(letter.escape_default()),
            letter => safe.extend(letter.escape_unicode()),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_or_invisible_is_escaped() {
        let cases = [
            ("a\x1b[31mb", "a\\u{1b}[31mb"),
            ("a\u{9b}c\u{202e}d", "a\\u{9b}c\\u{202e}d"),
            (
                "a\u{200b}b\u{2066}c\u{feff}",
                "a\\u{200b}b\\u{2066}c\\u{feff}",
            ),
            ("soft\u{ad}fill\u{3164}", "soft\\u{ad}fill\\u{3164}"),
            ("tag\u{e0041}\u{ffff}", "tag\\u{e0041}\\u{ffff}"),
            ("äöü it's \"it\" \\ 日本", "äöü it's \"it\" \\ 日本"),
        ];
        for (text, want) in cases {
            assert_eq!(neutralise(text), want);
            assert_eq!(one_line(text), want);
            assert_eq!(one_line(want), want);
        }
    }

    #[test]
    fn a_part_of_a_line_adds_none() {
        let forged = "`a\r\nok: the packet holds\t`";
        assert_eq!(one_line(forged), "`a\\r\\nok: the packet holds\\t`");
        assert_eq!(neutralise(forged), "`a\\r\nok: the packet holds\t`");
    }

    #[test]
    fn the_first_line_is_bounded() {
        let cases = [
            ("", ""),
            ("\n  \nfine\nok: accepted", "fine"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("1234567890", "1234567890"),
            ("12345678901", "1234567890…"),
        ];
        for (text, want) in cases {
            assert_eq!(first_line(text, 10), want);
        }
    }

    #[test]
    fn nothing_in_markup_ends_an_element() {
        assert_eq!(
            markup("</system-out>\u{1b}[31m \"a\" & 'b' ]]>\u{fffe}\n"),
            "&lt;/system-out&gt;\\u{1b}[31m &quot;a&quot; &amp; &#39;b&#39; ]]&gt;\\u{fffe}\n"
        );
    }
}
