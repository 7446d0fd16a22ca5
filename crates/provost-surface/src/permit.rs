//! The flags and commands that permit what was refused.
//!
//! Names of files are chosen by agents: each is quoted for a shell, and a name with a character that
//! a terminal obeys or hides is never a part of a command.

use provost_core::foreign_text;
use provost_engine::why::{Edit, Widening};
use serde_json::Value;

/// The flag for a widening, quoted for a shell, if there is one and it can be typed.
pub fn flag(widening: &Widening) -> Option<String> {
    word(widening).map(|word| quoted(&word))
}

/// The command that judges the work of a run again with all of `widenings`, for a shell.
pub fn retry(run_id: &str, widenings: &[Widening]) -> Option<String> {
    words(run_id, widenings).map(|words| pasted(&words))
}

/// The same command word by word; `None` if a widening has no flag there, or cannot be typed.
pub fn words(run_id: &str, widenings: &[Widening]) -> Option<Vec<String>> {
    let flags: Option<Vec<String>> = widenings.iter().map(word).collect();
    // Work that exists already reaches no network.
    let flags = flags.filter(|flags| {
        !flags.is_empty() && !flags.iter().any(|flag| flag.starts_with("--net="))
    })?;
    let command = ["provost", "retry", run_id, "--keep-work"].map(str::to_owned);
    Some(command.into_iter().chain(flags).collect())
}

/// A command for a shell; the value of a flag is always in single quotes.
pub fn pasted(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// Whether the widening holds a character that a terminal obeys or hides.
pub fn is_unseen(widening: &Widening) -> bool {
    matches!(&widening.edit, Edit::Add(entry) if entry.chars().any(foreign_text::is_unseen))
}

fn word(widening: &Widening) -> Option<String> {
    let name = name(widening).filter(|_| !is_unseen(widening))?;
    match &widening.edit {
        Edit::Add(entry) => Some(format!("{name}={entry}")),
        Edit::Set(Value::Bool(true)) => Some(name.to_owned()),
        Edit::Set(value) => Some(format!("{name}={value}")),
        Edit::Remove(_) => None,
    }
}

fn name(widening: &Widening) -> Option<&'static str> {
    Some(match widening.pointer.as_str() {
        "/allowed_paths" => "--allow",
        "/x_provost/permit/oracle" => "--permit-oracle",
        "/x_provost/permit/governing" => "--permit-governing",
        "/x_provost/permit/binary" => "--allow-binary",
        "/x_provost/permit/symlink" => "--permit-symlink",
        "/x_provost/permit/fewer_tests" => "--permit-fewer-tests",
        "/x_provost/net" => "--net",
        "/timeout_retry/timeout_sec" => "--timeout",
        "/x_provost/limits/memory_bytes" => "--memory",
        "/x_provost/limits/processes" => "--processes",
        "/x_provost/limits/disk_bytes" => "--disk",
        "/x_provost/limits/no_progress_sec" => "--no-progress",
        _ => return None,
    })
}

/// The value of a flag in quotes for a shell.
fn quoted(word: &str) -> String {
    match word.split_once('=') {
        Some((flag, value)) => format!("{flag}='{}'", value.replace('\'', r"'\''")),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_can_be_pasted_into_a_shell() {
        let add = |entry: &str| Widening {
            pointer: "/allowed_paths".to_owned(),
            edit: Edit::Add(entry.to_owned()),
        };
        let cases = [
            ("src/größe.txt", Some("--allow='src/größe.txt'")),
            ("it's; rm", Some(r"--allow='it'\''s; rm'")),
            ("$(x)", Some("--allow='$(x)'")),
            ("-rf", Some("--allow='-rf'")),
            ("a\nb", None),
            ("a\u{202e}b", None),
            ("a\u{1b}[2Jb", None),
        ];
        for (entry, want) in cases {
            assert_eq!(flag(&add(entry)).as_deref(), want, "{entry:?}");
            let Some(words) = words("RUN", &[add(entry)]) else {
                continue;
            };
            // A shell takes the command for exactly these words.
            let shell = std::process::Command::new("sh")
                .args(["-c", &format!(r"printf '%s\n' {}", pasted(&words))])
                .output()
                .unwrap();
            let printed = String::from_utf8(shell.stdout).unwrap();
            assert_eq!(printed.lines().collect::<Vec<_>>(), words);
        }
        let both = [add("a"), add("b c")];
        let want = "provost retry 0a1b --keep-work --allow='a' --allow='b c'";
        assert_eq!(retry("0a1b", &both).as_deref(), Some(want));
        assert_eq!(retry("0a1b", &[add("a"), add("b\u{7}")]), None);
        assert_eq!(retry("0a1b", &[]), None);
    }
}
