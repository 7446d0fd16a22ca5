//! What the program says about itself.

use provost_testkit::stage::Stage;

/// The commands below `words`, as their help lists them.
fn below(stage: &Stage, words: &[&str]) -> Vec<String> {
    let help = stage.ask(&[words, &["--help"]].concat());
    let text = String::from_utf8(help.stdout).unwrap();
    let listed = text.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let name = |line: &str| {
        let line = line.strip_prefix("  ")?;
        let name = line.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    };
    listed.lines().map_while(name).collect()
}

/// All commands, whose groups have names of their own.
fn top(stage: &Stage) -> Vec<String> {
    let help = stage.ask(&["help", "--all"]);
    let text = String::from_utf8(help.stdout).unwrap();
    let (commands, _) = text.split_once("Options:\n").unwrap();
    let name = |line: &str| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        Some(name.to_owned())
    };
    commands.lines().filter_map(name).collect()
}

#[test]
fn every_command_says_what_it_does() {
    let stage = Stage::new();
    let mut transcript = stage.transcript();
    transcript.plain(&["--help"]);
    transcript.plain(&["help", "--all"]);
    transcript.plain(&["help", "contract", "new"]);
    transcript.plain(&["help", "nothing"]);
    for command in top(&stage) {
        transcript.plain(&[&command, "--help"]);
        for inner in below(&stage, &[&command]) {
            transcript.plain(&[&command, &inner, "--help"]);
        }
    }
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn pages_are_listed_and_printed() {
    let stage = Stage::new();
    let mut transcript = stage.transcript();
    transcript.plain(&["explain"]);
    transcript.json(&["explain"]);
    transcript.plain(&["explain", "DIFF_REFUSED"]);
    transcript.plain(&["explain", "NO_SUCH_CODE"]);
    transcript.plain(&["schema"]);
    transcript.plain(&["schema", "nothing"]);
    insta::assert_snapshot!(transcript.text());
}
