//! Formats counts and texts for people, so that one thing is never "1 things".

/// `count` of `thing`, singular or plural.
pub fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

/// `text`, at most `most` characters of it.
pub fn clipped(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The one of `names` that is closest to `name`, if one is close enough.
pub fn closest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word longer than any name cannot be close, and would only take time.
    if name.len() > 64 {
        return None;
    }
    let near = name.chars().count() / 3;
    let rated = names
        .into_iter()
        .map(|known| (distance(name, known), known));
    rated
        .filter(|(distance, _)| *distance <= near.max(1))
        .min()
        .map(|(_, known)| known)
}

/// The edit distance: how many letters to add, remove or replace.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = at;
        row[0] = at + 1;
        for (column, known) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *known);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_many() {
        assert_eq!(counted(0, "file"), "0 files");
        assert_eq!(counted(1, "file"), "1 file");
        assert_eq!(counted(2, "acceptance command"), "2 acceptance commands");
    }

    #[test]
    fn a_name_that_was_meant_is_near() {
        let names = ["task_id", "task_type", "allowed_paths"];
        let cases = [
            ("taks_id", Some("task_id")),
            ("allowed_path", Some("allowed_paths")),
            ("task_typ", Some("task_type")),
            ("color", None),
            ("", None),
        ];
        for (name, want) in cases {
            assert_eq!(closest(name, names), want, "{name}");
        }
        assert_eq!(closest(&"x".repeat(100_000), names), None);
    }
}
