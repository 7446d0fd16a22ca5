//! What every command prints, for a person and for a program, refusals included.
//!
//! Each test runs a series of commands of the real program and compares all that they said with a
//! snapshot, so that a change of words or fields is a change of these files and is reviewed as one.
//! `INSTA_UPDATE=always cargo test -p provost --test answers` writes them anew.

#[cfg(test)]
#[cfg(feature = "formats")]
mod boards;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod checks;
#[cfg(test)]
#[cfg(feature = "formats")]
mod evidence;
#[cfg(test)]
#[cfg(feature = "formats")]
mod help;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod screens;
#[cfg(test)]
mod setup;

#[cfg(test)]
use provost_testkit::stage::Stage;

#[cfg(test)]
fn stage() -> Option<Stage> {
    Stage::with_sandbox()
}

/// The words of a run of `script`, for a person.
#[cfg(test)]
fn run<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = [
        "run",
        "Make it good",
        "--agent-cmd",
        agent,
        "--allow",
        "src",
    ];
    let mut words = words.to_vec();
    if !more.contains(&"--accept") {
        words.extend(["--accept", "sh check.sh"]);
    }
    words.extend(more);
    words
}
