//! Short ids for people; programs get whole ones.

/// How many random digits of an id are shown; a user may type less of them.
const DIGITS: usize = 8;

/// The kinds of names that are shortened.
const KINDS: [&str; 4] = ["run_", "plan_", "chain_", CASE];

/// Cases keep their kind: commands take a run or a case.
const CASE: &str = "case_";

/// The first random digits of `id`, which are enough to find it; other names are given back whole.
pub fn short_id(id: &str) -> &str {
    match id.rsplit_once('_') {
        Some((_, digits)) => digits.get(..DIGITS).unwrap_or(digits),
        None => id,
    }
}

/// `text` with every whole id in its short form, except in paths and names of branches.
pub fn with_short_ids(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = first_id(rest) {
        let length = id_length(&rest[at..]);
        let (before, after) = rest.split_at(at);
        let (id, after) = after.split_at(length);
        short += before;
        let is_part = |letter: char| letter.is_alphanumeric() || "_/.-".contains(letter);
        let joined = short.chars().next_back().is_some_and(is_part);
        let goes_on = after
            .chars()
            .next()
            .is_some_and(|it| it == '/' || it == '-')
            || after
                .strip_prefix('.')
                .is_some_and(|it| it.starts_with(is_part));
        let is_kept = joined || goes_on || !is_whole(id);
        if !is_kept && id.starts_with(CASE) {
            short += CASE;
        }
        short += if is_kept { id } else { short_id(id) };
        rest = after;
    }
    short + rest
}

/// Where the first name of a known kind begins.
fn first_id(text: &str) -> Option<usize> {
    KINDS.iter().filter_map(|kind| text.find(kind)).min()
}

/// How many bytes of `text`, which begins with a kind, belong to a name.
fn id_length(text: &str) -> usize {
    let kind = text.find('_').map_or(0, |at| at + 1);
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let end = text[kind..].find(|letter| !is_part(letter));
    kind + end.unwrap_or(text.len() - kind)
}

/// Whether `id` is `kind_DATE_TIME_MILLISECONDS_DIGITS`, or `kind_DIGITS`.
fn is_whole(id: &str) -> bool {
    let digits = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let random = |part: &str| {
        part.len() >= 12 && part.bytes().all(|byte| b"0123456789abcdef".contains(&byte))
    };
    match id.split('_').collect::<Vec<&str>>().as_slice() {
        [_, end] => random(end),
        [_, date, time, millis, end] => {
            digits(date, 8) && digits(time, 6) && digits(millis, 3) && random(end)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_in_a_sentence_and_whole_in_a_path() {
        let id = "run_20260131_235959_999_0123456789ab";
        let cases = [
            ("accepted: ID\n", "accepted: 01234567\n"),
            (
                "(ID), provost show ID.",
                "(01234567), provost show 01234567.",
            ),
            ("provost/ID", "provost/ID"),
            ("ID/report.json", "ID/report.json"),
            ("ID.stdout", "ID.stdout"),
            ("xID", "xID"),
            ("run_1 and run_", "run_1 and run_"),
            (
                "run_20260131_235959_999_0123456789abé",
                "run_20260131_235959_999_0123456789abé",
            ),
        ];
        for (text, want) in cases {
            let [text, want] = [text, want].map(|text| text.replace("ID", id));
            assert_eq!(with_short_ids(&text), want);
        }
        assert_eq!(
            with_short_ids("chain_0123456789abcdef runs"),
            "01234567 runs"
        );
        assert_eq!(
            with_short_ids("provost land case_20260131_235959_999_0123456789ab"),
            "provost land case_01234567"
        );
        assert_eq!(short_id("run_nothing"), "nothing");
        assert_eq!(short_id("01JD3Z6Q8W"), "01JD3Z6Q8W");
    }
}
