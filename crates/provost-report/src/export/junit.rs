//! Writes `JUnit` XML, as build servers read it.
//!
//! There is one suite for each acceptance command. Its cases are the tests that the command named,
//! if it named all that it counted; else the command itself is the one case.

use provost_core::foreign_text::markup;
use provost_core::gate::command;
use provost_core::run::State;
use provost_core::run::fact::{CommandRun, Ending, Side};
use provost_core::run::judge::render_ending;

use super::cases::{self, Case, Outcome};

/// The most bytes of a log that a document quotes.
const MOST: usize = 64 * 1024;

/// The document about the candidate of the run; `log` reads its logs.
pub fn render(state: &State, log: &dyn Fn(&str) -> Vec<u8>) -> String {
    let run = state.tests.get(&Side::Candidate);
    let commands = run.map_or(&[][..], |run| &run.commands);
    let suites: Vec<Suite> = commands.iter().map(|ran| Suite::of(ran, log)).collect();
    let sum = |of: fn(&Suite) -> usize| suites.iter().map(of).sum::<usize>();
    let time: u64 = commands.iter().map(|ran| ran.wall_ms).sum();
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    text += &format!(
        "<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"0\" \
         time=\"{}\">\n",
        markup(&state.names.run_id),
        sum(|suite| suite.cases.len()),
        sum(|suite| suite.count(Outcome::Failed)),
        sum(|suite| suite.count(Outcome::Skipped)),
        seconds(time)
    );
    for suite in &suites {
        text += &suite.render(suite.began.as_deref().unwrap_or(&state.latest));
    }
    text + "</testsuites>\n"
}

/// One acceptance command.
struct Suite {
    name: String,
    line: String,
    began: Option<String>,
    wall_ms: u64,
    ending: Ending,
    cases: Vec<Case>,
    stdout: String,
    stderr: String,
}

impl Suite {
    fn of(ran: &CommandRun, log: &dyn Fn(&str) -> Vec<u8>) -> Self {
        let read = |name: &str| String::from_utf8_lossy(&log(name)).into_owned();
        let (stdout, stderr) = (read(&ran.stdout.file), read(&ran.stderr.file));
        let passed = ran.ending == Ending::Exited(0);
        let named = ran.tally.as_ref();
        let named = named.and_then(|tally| cases::of(&stdout, &stderr, tally));
        // A command that failed although all its tests passed is a failed case itself.
        let explains =
            |cases: &Vec<Case>| passed || cases.iter().any(|case| case.outcome == Outcome::Failed);
        let cases = named.filter(explains).unwrap_or_else(|| {
            vec![Case {
                name: command::line(&ran.argv),
                outcome: if passed {
                    Outcome::Passed
                } else {
                    Outcome::Failed
                },
                millis: Some(ran.wall_ms),
            }]
        });
        Self {
            name: ran.name.clone(),
            line: command::line(&ran.argv),
            began: ran.began.clone(),
            wall_ms: ran.wall_ms,
            ending: ran.ending,
            cases,
            stdout,
            stderr,
        }
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.cases
            .iter()
            .filter(|case| case.outcome == outcome)
            .count()
    }

    fn render(&self, at: &str) -> String {
        let name = markup(&self.name);
        let mut text = format!(
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" \
             errors=\"0\" time=\"{}\" timestamp=\"{}\">\n",
            self.cases.len(),
            self.count(Outcome::Failed),
            self.count(Outcome::Skipped),
            seconds(self.wall_ms),
            markup(at)
        );
        let property = |key: &str, value: &str| {
            format!(
                "      <property name=\"{key}\" value=\"{}\"/>\n",
                markup(value)
            )
        };
        text += "    <properties>\n";
        text += &property("command", &self.line);
        text += &property("ending", &render_ending(self.ending));
        text += "    </properties>\n";
        for case in &self.cases {
            let called = markup(&case.name);
            let inner = match case.outcome {
                Outcome::Passed => String::new(),
                Outcome::Skipped => "<skipped/>".to_owned(),
                Outcome::Failed => {
                    let message = markup(&render_ending(self.ending));
                    format!("<failure message=\"{message}\"/>")
                }
            };
            let time = case.millis.map(|it| format!(" time=\"{}\"", seconds(it)));
            let time = time.unwrap_or_default();
            text += &format!(
                "    <testcase classname=\"{name}\" name=\"{called}\"{time}>{inner}</testcase>\n"
            );
        }
        text += &stream("system-out", &self.stdout);
        text += &stream("system-err", &self.stderr);
        text + "  </testsuite>\n"
    }
}

fn stream(name: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("    <{name}>{}</{name}>\n", markup(tail(text)))
}

/// The end of `text`, at most [`MOST`] bytes, from a character boundary.
fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(MOST);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_begins_at_a_letter() {
        let long = format!("é{}", "x".repeat(MOST - 1));
        assert_eq!(tail(&long).len(), MOST - 1);
    }
}
