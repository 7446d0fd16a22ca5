//! `provost why RUN`: shows what was refused, by which line of the contract, and what would permit
//! it.

use clap::Args;
use provost_core::code::Code;
use provost_core::document::Format;
use provost_core::document::lines::Lines;
use provost_core::exit::Exit;
use provost_core::foreign_text::is_unseen;
use provost_core::json;
use provost_core::run::fact::ContractSource;
use provost_core::wording::counted;
use provost_engine::query::{self, ContractLines, RunArchive as _, Stage, WhyView};
use provost_engine::why::{Clause, Edit, Row, Why, Widening};
use serde_json::Value;

use super::run::refused;
use super::runs::Which;
use crate::answer::{Answer, Failure, Outcome};
use crate::places::Places;
use crate::show::one_line;
use crate::{input, report};

/// How many rows of one refusal the text output lists.
const MOST_SHOWN: usize = 40;

/// Show what was refused, by which line of the contract, and what would permit it.
#[derive(Args)]
#[command(after_help = "\
Everything is read from the ledger of the run. The change that would permit a refused action is the
smallest one: exact paths, one permission, one place of the network. This command widens nothing.

Example:
  provost why last")]
pub(super) struct Asked {
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(asked: &Asked) -> Outcome {
    let place = Places::look()?;
    if let Some(run_id) = place.find_refused(&asked.which.run)? {
        return refused::show(&place, &run_id);
    }
    let run_id = place.find_run(&asked.which.run)?;
    let records = place.records(&run_id)?;
    let why = Why::of(&records).map_err(|error| Failure::of(Code::EvidenceAltered, &error))?;
    let state = query::state(&place, &run_id)?;
    let opened = &state.opened;
    let source = contract_lines(&place, &run_id, opened.contract_source.as_ref());
    let own = query::is_own(&place, &run_id);
    let mut view = WhyView::of(why, &source, opened.typed, own);
    if own && query::stage(&place, &run_id) == Stage::Sealed && state.kept_work().is_ok() {
        let widening = view.widening.as_deref().filter(|it| !it.is_empty());
        view.permit_with = widening.and_then(|it| keep_work(&run_id, it));
    }
    let mut answer = Answer::data(&view, text(&view));
    if !own {
        answer.text +=
            "note: you did not begin this run on this machine; provost explain RUN_FOREIGN\n";
    }
    if view.why.verdict.is_none() && own {
        let stage = query::stage(&place, &run_id);
        answer.text += &format!("next: {}\n", report::go_on(&run_id, stage));
        if stage == Stage::Waiting {
            answer.exit = Exit::NotNow;
        }
    }
    Ok(answer)
}

/// The lines of the contract file in the bundle of `run_id`; a missing one has none.
fn contract_lines(place: &Places, run_id: &str, kept: Option<&ContractSource>) -> ContractLines {
    let Some(ContractSource { path, .. }) = kept else {
        return ContractLines::default();
    };
    let bytes = input::read(&place.run(run_id).join(path), json::LARGEST);
    let format = Format::of_name(path).unwrap_or(Format::Json);
    ContractLines {
        file: path.clone(),
        lines: Lines::of(format, &bytes.unwrap_or_default()),
    }
}

fn text(view: &WhyView) -> String {
    let why = &view.why;
    let mut text = match &why.verdict {
        None => format!("run {} has not ended\n", why.run_id),
        Some(verdict) if verdict.allow => {
            format!("accepted: {}\nnothing was refused\n", why.run_id)
        }
        Some(verdict) => format!("refused[{}]: {}\n", verdict.code, one_line(&verdict.reason)),
    };
    for refusal in &why.refusals {
        text += &format!("{}: {}\n", refusal.by, refusal.code);
        for row in refusal.rows.iter().take(MOST_SHOWN) {
            text += &shown(row, view.typed);
        }
        let more = refusal.rows.len().saturating_sub(MOST_SHOWN);
        if more > 0 {
            text += &format!("  and {more} more; --json lists all\n");
        }
    }
    if !why.model_requests.is_empty() {
        text += "model: asked for and not granted\n";
    }
    for row in why.model_requests.iter().take(MOST_SHOWN) {
        text += &shown(row, view.typed);
    }
    let (background, asked): (Vec<&Row>, Vec<&Row>) =
        why.network.iter().partition(|row| row.is_background());
    if !asked.is_empty() {
        text += "network: asked for and not granted\n";
    }
    for row in asked.iter().take(MOST_SHOWN) {
        text += &shown(row, view.typed);
    }
    if !background.is_empty() {
        let names: Vec<&str> = background
            .iter()
            .take(MOST_SHOWN)
            .filter_map(|row| row.about.as_deref())
            .collect();
        text += "network: asked for by the program itself, for updates or telemetry; not granted\n";
        text += &format!("  {}\n", one_line(&names.join(", ")));
    }
    text + &together(view)
}

fn shown(row: &Row, typed: bool) -> String {
    let about = row.about.as_deref().unwrap_or_default();
    let mut text = match about {
        "" => format!("  {}\n", one_line(&row.problem)),
        about => format!("  {}: {}\n", one_line(about), one_line(&row.problem)),
    };
    if let Some(clause) = &row.contract {
        text += &format!("    contract  {}\n", said(clause));
    }
    for one in &row.widening {
        text += &format!("    open by   {}\n", one_line(&words(one, typed)));
    }
    if let Some(note) = &row.note {
        text += &format!("    note      {}\n", one_line(note));
    }
    text
}

/// The value of a clause, and where it is written.
fn said(clause: &Clause) -> String {
    let value = match &clause.value {
        Value::Null => "says nothing".to_owned(),
        value => format!("is {}", short(&value.to_string())),
    };
    let line = match (&clause.file, clause.line) {
        (Some(file), Some(line)) => format!(" ({file} line {line})"),
        _ => String::new(),
    };
    format!("`{}` {}{line}", clause.pointer, one_line(&value))
}

/// The most characters of a value that the text output shows.
const LONGEST: usize = 200;

fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(LONGEST).collect();
    format!("{kept}…")
}

fn words(widening: &Widening, typed: bool) -> String {
    let Widening { pointer, edit } = widening;
    let flag = flag(widening).filter(|flag| typed && can_be_seen(flag));
    let flag = flag.map(|flag| format!(" ({flag})"));
    let flag = flag.unwrap_or_default();
    match edit {
        Edit::Add(entry) => format!("add `{entry}` to `{pointer}`{flag}"),
        Edit::Remove(entry) => format!("take `{entry}` out of `{pointer}`{flag}"),
        Edit::Set(value) => format!("set `{pointer}` to {value}{flag}"),
    }
}

/// The command that judges the work of `run_id` again with all of `widening`, word by word; `None`
/// if a widening has no flag, or cannot be seen in full.
fn keep_work(run_id: &str, widening: &[Widening]) -> Option<Vec<String>> {
    let words = ["provost", "retry", run_id, "--keep-work"];
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    for one in widening {
        let name = flag_name(one).filter(|name| *name != "--net")?;
        words.push(match &one.edit {
            Edit::Add(entry) => format!("{name}={entry}"),
            Edit::Set(Value::Bool(true)) => name.to_owned(),
            Edit::Set(value) => format!("{name}={value}"),
            Edit::Remove(_) => return None,
        });
    }
    words.iter().all(|word| can_be_seen(word)).then_some(words)
}

/// Whether a person sees every character of `word`, and a terminal obeys none.
fn can_be_seen(word: &str) -> bool {
    !word.chars().any(is_unseen)
}

/// A command for a shell; the value of a flag is always in single quotes.
fn pasted(words: &[String]) -> String {
    let word = |word: &String| match word.split_once('=') {
        Some((flag, value)) => format!("{flag}='{}'", value.replace('\'', r"'\''")),
        None => word.clone(),
    };
    let words: Vec<String> = words.iter().map(word).collect();
    words.join(" ")
}

/// The flag of `provost run` for the same widening.
fn flag(widening: &Widening) -> Option<String> {
    let name = flag_name(widening)?;
    match &widening.edit {
        Edit::Add(entry) => Some(format!("{name} {}", quoted(entry))),
        Edit::Set(Value::Bool(true)) => Some(name.to_owned()),
        Edit::Set(value) => Some(format!("{name} {value}")),
        Edit::Remove(_) => None,
    }
}

fn flag_name(widening: &Widening) -> Option<&'static str> {
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

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let safe = |letter: char| letter.is_alphanumeric() || "/._-:@+,=".contains(letter);
    if word.chars().all(safe) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// All widenings in one line, for the next run.
fn together(view: &WhyView) -> String {
    if view.why.refusals.is_empty() {
        return String::new();
    }
    let Some(all) = &view.widening else {
        return "more than a wider contract is needed\n".to_owned();
    };
    let flags: Vec<String> = all.iter().filter_map(flag).collect();
    let count = counted(all.len(), "change");
    let mut text = format!("{count} of the contract would have permitted it\n");
    if let Some(words) = &view.permit_with {
        return text + &format!("permit with: {}\n", pasted(words));
    }
    if !flags.iter().all(|flag| can_be_seen(flag)) {
        return text + "  a name holds characters that cannot be seen, so no command is offered\n";
    }
    if view.typed && flags.len() == all.len() {
        text += &format!(
            "  the same `provost run` with: {}\n",
            one_line(&flags.join(" "))
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_that_are_shell_code_are_harmless_and_unseen_ones_are_no_command() {
        let add = |entry: &str| Widening {
            pointer: "/allowed_paths".to_owned(),
            edit: Edit::Add(entry.to_owned()),
        };
        let command = |entry: &str| {
            let words = keep_work("RUN", &[add(entry)])?;
            let text = pasted(&words);
            // A shell takes it for exactly these words.
            let shell = std::process::Command::new("sh")
                .args(["-c", &format!(r"printf '%s\n' {text}")])
                .output()
                .unwrap();
            let printed = String::from_utf8(shell.stdout).unwrap();
            assert_eq!(printed.lines().collect::<Vec<_>>(), words, "{text}");
            Some(text)
        };
        let cases = [
            ("src/a b", "--allow='src/a b'"),
            ("$(touch x)", "--allow='$(touch x)'"),
            ("`touch x`; rm -rf .", "--allow='`touch x`; rm -rf .'"),
            ("it's && echo", r"--allow='it'\''s && echo'"),
            ("-rf", "--allow='-rf'"),
            ("a=b' $HOME", r"--allow='a=b'\'' $HOME'"),
            ("größe/日本", "--allow='größe/日本'"),
        ];
        for (entry, want) in cases {
            let want = format!("provost retry RUN --keep-work {want}");
            assert_eq!(command(entry), Some(want));
        }
        for unseen in [
            "a\nb",
            "a\u{1b}[2Jb",
            "a\u{202e}b",
            "a\u{200b}b",
            "a\u{ad}b",
            "a\u{3164}b",
            "a\u{feff}b",
            "a\u{e0041}b",
            "a\u{7f}b",
        ] {
            assert_eq!(command(unseen), None, "{unseen:?}");
            let shown = words(&add(unseen), true);
            assert!(!shown.contains("--allow"), "{shown}");
        }
    }

    #[test]
    fn a_flag_can_be_pasted_into_a_shell() {
        let add = |entry: &str| Widening {
            pointer: "/allowed_paths".to_owned(),
            edit: Edit::Add(entry.to_owned()),
        };
        let cases = [
            ("src/größe.txt", "--allow src/größe.txt"),
            ("a b", "--allow 'a b'"),
            ("it's; rm", r"--allow 'it'\''s; rm'"),
            ("$(x)", "--allow '$(x)'"),
        ];
        for (entry, want) in cases {
            assert_eq!(flag(&add(entry)).as_deref(), Some(want));
        }
    }
}
