use super::*;

fn refusal(line: &str) -> String {
    let words = std::iter::once("provost").chain(line.split(' '));
    let error = command().try_get_matches_from(words.clone()).unwrap_err();
    let words: Vec<String> = words.map(str::to_owned).collect();
    let failure = wrong(&error.render().to_string(), &named(&words));
    format!(
        "{}\nhint: {}",
        failure.reason,
        failure.hint.unwrap_or_default()
    )
}

#[test]
fn a_wrong_command_line_is_answered_with_what_was_meant() {
    insta::assert_snapshot!(refusal("rnu"), @r"
    unrecognized subcommand 'rnu'
    hint: a similar subcommand exists: 'runs'; see provost --help
    ");
    insta::assert_snapshot!(refusal("qqqqq"), @r"
    unrecognized subcommand 'qqqqq'
    hint: provost --help
    ");
    insta::assert_snapshot!(refusal("run x --allw src --accept true"), @r"
    unexpected argument '--allw' found
    hint: a similar argument exists: '--allow'; see provost run --help
    ");
    insta::assert_snapshot!(refusal("retry last --qqq x"), @r"
    unexpected argument '--qqq' found
    hint: provost retry --help
    ");
    insta::assert_snapshot!(refusal("run --allow src"), @r"
    the following required arguments were not provided: <OBJECTIVE>
    hint: provost run --help
    ");
    insta::assert_snapshot!(refusal("check scop src"), @r"
    unrecognized subcommand 'scop'
    hint: a similar subcommand exists: 'scope'; see provost check --help
    ");
    insta::assert_snapshot!(refusal("sandbox --timeout soon -- true"), @r"
    invalid value 'soon' for '--timeout <TIME>': write 90, 90s, 20m, 2h or 7d
    hint: provost sandbox --help
    ");
}

/// The path and the summary of every command.
fn abouts(command: &clap::Command, path: &str, all: &mut Vec<(String, Option<String>)>) {
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        let about = below.get_about().map(ToString::to_string);
        abouts(below, &path, all);
        all.push((path, about));
    }
}

#[test]
fn no_part_of_a_command_speaks_in_its_place() {
    let mut brief = Vec::new();
    abouts(&Cli::command(), "provost", &mut brief);
    let mut whole = Cli::command();
    whole.build();
    let mut full = Vec::new();
    abouts(&whole, "provost", &mut full);
    for said in brief {
        assert!(full.contains(&said), "{said:?} is described otherwise");
    }
}

#[test]
fn every_command_is_in_one_group_and_every_group_names_commands() {
    command().debug_assert();
    let mut grouped: Vec<&str> = help::ALL
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    grouped.sort_unstable();
    let command = Cli::command();
    let mut there: Vec<&str> = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    there.sort_unstable();
    assert_eq!(grouped, there);
}
