//! Reads programs that run another one: `timeout 5 rm x` writes what `rm x` writes.

use provost_core::gate::command::quote;

use super::options::{Given, Order, is_among};
use super::token::Word;
use super::{Reader, is_assignment, program, short};
use crate::hook::tool_call::EventError;

/// A program that runs the words after its own.
struct Wrapper {
    names: &'static str,
    /// Options that take a value.
    shorts: &'static str,
    longs: &'static str,
    /// How many words of its own stand before the other program.
    own: usize,
    /// Options whose value is a file that it writes.
    into: &'static str,
    /// Options whose value is the directory it runs the other program in.
    at: &'static str,
    /// Options whose value is a script.
    scripts: &'static str,
}

const PLAIN: Wrapper = Wrapper {
    names: "\
        builtin busybox chronic eatmydata fakeroot nocorrect noglob nohup pkexec setsid \
        toybox unshare",
    shorts: "",
    longs: "",
    own: 0,
    into: "",
    at: "",
    scripts: "",
};

const WRAPPERS: &[Wrapper] = &[
    PLAIN,
    Wrapper {
        names: "command exec",
        shorts: "a",
        ..PLAIN
    },
    Wrapper {
        names: "sudo doas",
        shorts: "aCDghpRrTtUu",
        longs: "\
            user group host prompt chdir chroot close-from role type other-user \
            command-timeout",
        at: "D chdir",
        ..PLAIN
    },
    Wrapper {
        names: "env",
        shorts: "uCS",
        longs: "unset chdir split-string",
        at: "C chdir",
        scripts: "S split-string",
        ..PLAIN
    },
    Wrapper {
        names: "time",
        shorts: "fo",
        longs: "format output",
        into: "o output",
        ..PLAIN
    },
    Wrapper {
        names: "nice",
        shorts: "n",
        longs: "adjustment",
        ..PLAIN
    },
    Wrapper {
        names: "ionice",
        shorts: "cnpPu",
        longs: "class classdata pid pgid uid",
        ..PLAIN
    },
    Wrapper {
        names: "timeout",
        shorts: "ks",
        longs: "kill-after signal",
        own: 1,
        ..PLAIN
    },
    Wrapper {
        names: "stdbuf",
        shorts: "ioe",
        longs: "input output error",
        ..PLAIN
    },
    Wrapper {
        names: "flock",
        shorts: "wEc",
        longs: "timeout wait conflict-exit-code command",
        own: 1,
        scripts: "c command",
        ..PLAIN
    },
    Wrapper {
        names: "chrt taskset setarch",
        shorts: "TPD",
        own: 1,
        ..PLAIN
    },
    Wrapper {
        names: "strace ltrace",
        shorts: "aebEIoOpPsSuUX",
        longs: "output",
        into: "o output",
        ..PLAIN
    },
    Wrapper {
        names: "runuser",
        shorts: "cgGsu",
        longs: "command group shell user",
        scripts: "c command",
        ..PLAIN
    },
    Wrapper {
        names: "su",
        shorts: "cgGsu",
        longs: "command group shell user",
        own: usize::MAX,
        scripts: "c command",
        ..PLAIN
    },
    Wrapper {
        names: "script",
        shorts: "cEIoOBT",
        longs: "command",
        own: usize::MAX,
        scripts: "c command",
        ..PLAIN
    },
];

/// Tools of projects that run a program by words of their own.
const RUNNERS: [&[&str]; 16] = [
    &["bun", "x"],
    &["bundle", "exec"],
    &["hatch", "run"],
    &["mise", "exec"],
    &["npm", "exec"],
    &["npm", "x"],
    &["pdm", "run"],
    &["pipenv", "run"],
    &["pipx", "run"],
    &["pnpm", "dlx"],
    &["pnpm", "exec"],
    &["poetry", "run"],
    &["rye", "run"],
    &["uv", "run"],
    &["uv", "tool", "run"],
    &["yarn", "dlx"],
];

/// The program and its arguments, if `name` is a tool that runs it.
fn runs<'a>(name: &str, arguments: &'a [Word]) -> Option<&'a [Word]> {
    if matches!(name, "npx" | "bunx" | "pnpx" | "uvx") {
        return Some(arguments);
    }
    let fits = |runner: &&&[&str]| {
        let mut words = arguments.iter();
        let mut verbs = runner.iter().skip(1);
        runner[0] == name && verbs.all(|verb| words.next().is_some_and(|it| it.text == *verb))
    };
    let runner = RUNNERS.iter().find(fits)?;
    arguments.get(runner.len() - 1..)
}

/// Reads the program that a tool of a project runs; it may be named with a version.
fn of_project(
    reader: &mut Reader,
    arguments: &[Word],
    documents: &[Word],
    line: &str,
) -> Result<(), EventError> {
    let longs = "call directory extra from group index-url package project python spec with \
        with-requirements";
    let given = Given::read(arguments, "cp", longs, Order::First);
    for script in given.values("c call") {
        let shell = [Word::plain("sh"), Word::plain("-c"), script.clone()];
        program::run(reader, &shell, documents, line)?;
    }
    let mut words = given.words;
    if let Some(first) = words.first_mut() {
        // `@scope/name@1` and `name==1` name versions.
        let end = first.text.get(1..).and_then(|text| text.find(['@', '=']));
        first
            .text
            .truncate(end.map_or(first.text.len(), |at| at + 1));
    }
    program::run(reader, &words, documents, line)
}

/// Whether `name` runs another program; if so, that one was read.
pub(super) fn run(
    reader: &mut Reader,
    name: &str,
    arguments: &[Word],
    documents: &[Word],
    line: &str,
) -> Result<bool, EventError> {
    if let Some(arguments) = runs(name, arguments) {
        return of_project(reader, arguments, documents, line).map(|()| true);
    }
    let Some(wrapper) = WRAPPERS.iter().find(|one| is_among(name, one.names)) else {
        return Ok(false);
    };
    let given = Given::read(arguments, wrapper.shorts, wrapper.longs, Order::First);
    if name == "command" && given.has("v V") {
        return Ok(true);
    }
    reader.add_all(given.values(wrapper.into))?;
    for script in given.values(wrapper.scripts) {
        if script.computed {
            return Err(EventError::Program(short(&script.text)));
        }
        if name == "env" {
            // Its words, and those that follow, are one command.
            let rest = given
                .words
                .iter()
                .map(|word| format!(" {}", quote(&word.text)));
            if given.words.iter().any(|word| word.computed) {
                return Err(EventError::Program(short(&script.text)));
            }
            reader.aside(&format!("env {}{}", script.text, rest.collect::<String>()))?;
            return Ok(true);
        }
        reader.aside(&script.text)?;
    }
    if name == "script" {
        return reader.add_all(&given.words).map(|()| true);
    }
    let mut rest = given.words.as_slice();
    if matches!(name, "env" | "sudo" | "doas") {
        let set = rest.iter().take_while(|it| is_assignment(&it.text));
        rest = &rest[set.count()..];
    }
    let (own, rest) = rest.split_at(wrapper.own.min(rest.len()));
    if name == "flock" {
        lock(reader, own, rest)?;
    }
    reader.inside(given.values(wrapper.at).next(), |reader| {
        // `flock` and programs that switch users also take a command by an option after the words.
        let rest = match rest {
            [option, script, ..] if matches!(option.text.as_str(), "-c" | "--command") => {
                let shell = [Word::plain("sh"), Word::plain("-c"), script.clone()];
                return program::run(reader, &shell, documents, line);
            }
            rest => rest,
        };
        program::run(reader, rest, documents, line)
    })?;
    Ok(true)
}

/// A lock is a file that is made; a lock among temporary files does not count.
fn lock(reader: &mut Reader, own: &[Word], rest: &[Word]) -> Result<(), EventError> {
    const TEMPORARY: [&str; 4] = ["/tmp/", "/run/", "/var/lock/", "/dev/shm/"];
    let is_temporary = |word: &&Word| {
        TEMPORARY.iter().any(|place| word.text.starts_with(place)) && !word.text.contains("..")
    };
    let is_number = |word: &&Word| word.text.bytes().all(|byte| byte.is_ascii_digit());
    let kept = own.iter().filter(|word| !is_temporary(word));
    // `flock 9` locks a descriptor that is open already.
    let kept = kept.filter(|word| !(rest.is_empty() && is_number(word)));
    reader.add_all(kept)
}
