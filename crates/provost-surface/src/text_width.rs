//! Fits text into the columns of a terminal.

/// The beginning of `text` that fits into `width` columns, with a mark where something is missing.
pub fn within(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut cut = front(text, width.saturating_sub(1)).to_owned();
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// `text` in lines of `width` columns, broken between words; at most `most` lines, the last of which
/// has a mark where something is missing.
pub fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for mut word in text.split_whitespace() {
        while let Some(line) = lines.last_mut() {
            let used = columns(line);
            let gap = usize::from(used > 0);
            if used + gap + columns(word) <= width {
                if gap > 0 {
                    line.push(' ');
                }
                line.push_str(word);
                break;
            }
            if used == 0 {
                // A word that fits into no line.
                let part = match front(word, width) {
                    "" => &word[..word.chars().next().map_or(0, char::len_utf8)],
                    part => part,
                };
                line.push_str(part);
                word = &word[part.len()..];
            }
            if word.is_empty() {
                break;
            }
            lines.push(String::new());
        }
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            while let Some((front, _)) = last.rsplit_once(' ').filter(|_| columns(last) + 2 > width)
            {
                *last = front.to_owned();
            }
            *last = within(&format!("{last} …"), width);
        }
    }
    lines
}

/// The longest beginning of `text` that takes at most `width` columns.
fn front(text: &str, width: usize) -> &str {
    let mut left = width;
    for (at, character) in text.char_indices() {
        let Some(less) = left.checked_sub(columns_of(character)) else {
            return &text[..at];
        };
        left = less;
    }
    text
}

/// How many columns `text` takes at most.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// How many columns a character takes at most: two from the first wide script on.
fn columns_of(character: char) -> usize {
    if character < '\u{1100}' || ('\u{2000}'..'\u{2e80}').contains(&character) {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_takes_more_columns_than_there_are() {
        assert_eq!(within("one two", 7), "one two");
        assert_eq!(within("one two", 6), "one t…");
        assert_eq!(within("日本語", 6), "日本語");
        assert_eq!(within("日本語", 5), "日本…");
        assert_eq!(within("日本語", 4), "日…");
        assert_eq!(within("日本語", 1), "…");
        assert_eq!(within("x", 0), "");
    }

    #[test]
    fn text_is_broken_between_words_and_ends_with_a_mark() {
        let cases: [(&str, usize, &[&str]); 7] = [
            ("", 10, &[""]),
            ("one two", 7, &["one two"]),
            ("one\n\n two three", 7, &["one two", "three"]),
            ("one two three four five", 7, &["one two", "three …"]),
            ("one two six ten four", 7, &["one two", "six …"]),
            ("a abcdefghij b", 4, &["a", "abc…"]),
            ("日本語", 1, &["日", "…"]),
        ];
        for (text, width, want) in cases {
            assert_eq!(wrapped(text, width, 2), want, "{text:?}");
        }
    }
}
