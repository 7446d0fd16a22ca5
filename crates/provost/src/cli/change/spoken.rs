//! Messages that are written for tools, in the words of the command line.

/// A message for tools, with the tools and arguments replaced by commands and flags.
pub(super) fn spoken(text: &str) -> String {
    const WORDS: [(&str, &str); 10] = [
        ("analyze_repository", "provost change analyze"),
        ("on_conflict=\"queue\"", "provost change queue"),
        (
            "dirty_scope_policy=\"continue_own_wip\"",
            "--continue-own-wip",
        ),
        (
            "manage_change_intent, action=\"promote\"",
            "provost change promote",
        ),
        (
            "manage_change_intent(action=\"recover\")",
            "provost change recover",
        ),
        (
            "manage_change_intent, action=\"renew\"",
            "provost change renew",
        ),
        ("in changed_files", "with --file"),
        ("as after_run_id", "with --after"),
        ("(after_run_id)", "(--after)"),
        ("(before_run_id)", "(--before)"),
    ];
    let change = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
    WORDS.iter().fold(text.to_owned(), change)
}
