//! Says what programs write whose arguments name it.

use super::options::{Given, Order, is_among};
use super::token::Word;
use super::{
    Reader, archive, fetch, git, is_opening, own, project, script, search, short, stream, wrapper,
};
use crate::hook::tool_call::{EventError, patch};

/// Which of the words are written.
#[derive(Clone, Copy)]
enum Targets {
    None,
    All,
    /// All but the first.
    Rest,
    First,
    Second,
    /// The last, or the directory that an option names.
    Last,
}

/// A program that writes what its words name.
struct Writer {
    names: &'static str,
    /// Options that take a value.
    shorts: &'static str,
    longs: &'static str,
    targets: Targets,
    /// Options whose value is written.
    into: &'static str,
    /// Without one of these, the program does not write its words, if there are any.
    only: &'static str,
    /// With one of these, the program does not write its words.
    unless: &'static str,
}

const PLAIN: Writer = Writer {
    names: "dos2unix mkfifo rm rmdir shred sponge tee unix2dos unlink",
    shorts: "",
    longs: "",
    targets: Targets::All,
    into: "",
    only: "",
    unless: "",
};

const WRITERS: &[Writer] = &[
    PLAIN,
    Writer {
        names: "touch",
        shorts: "rdt",
        longs: "reference date time",
        ..PLAIN
    },
    Writer {
        names: "mkdir",
        shorts: "m",
        longs: "mode",
        ..PLAIN
    },
    Writer {
        names: "truncate",
        shorts: "sr",
        longs: "size reference",
        ..PLAIN
    },
    Writer {
        names: "mknod",
        shorts: "m",
        targets: Targets::First,
        ..PLAIN
    },
    // A link is another way to write a file: both ends count.
    Writer {
        names: "mv ln link",
        shorts: "tS",
        longs: "target-directory suffix",
        into: "t target-directory",
        ..PLAIN
    },
    Writer {
        names: "cp",
        shorts: "tS",
        longs: "target-directory suffix",
        targets: Targets::Last,
        into: "t target-directory",
        unless: "l link s symbolic-link",
        ..PLAIN
    },
    Writer {
        names: "cp",
        shorts: "tS",
        longs: "target-directory suffix",
        only: "l link s symbolic-link",
        ..PLAIN
    },
    Writer {
        names: "install",
        shorts: "gmotS",
        longs: "group mode owner suffix target-directory",
        targets: Targets::Last,
        into: "t target-directory",
        unless: "d directory",
        ..PLAIN
    },
    Writer {
        names: "install",
        shorts: "gmotS",
        longs: "group mode owner suffix target-directory",
        only: "d directory",
        ..PLAIN
    },
    Writer {
        names: "sort",
        shorts: "koStT",
        longs: "key output buffer-size field-separator temporary-directory",
        targets: Targets::None,
        into: "o output",
        ..PLAIN
    },
    Writer {
        names: "shuf",
        shorts: "ino",
        longs: "input-range head-count output",
        targets: Targets::None,
        into: "o output",
        ..PLAIN
    },
    Writer {
        names: "uniq",
        shorts: "fsw",
        longs: "skip-fields skip-chars check-chars",
        targets: Targets::Second,
        ..PLAIN
    },
    Writer {
        names: "xxd",
        shorts: "cglnos",
        targets: Targets::Second,
        ..PLAIN
    },
    Writer {
        names: "yq",
        targets: Targets::Rest,
        only: "i inplace in-place",
        ..PLAIN
    },
    Writer {
        names: "gofmt goimports shfmt",
        only: "w",
        ..PLAIN
    },
    Writer {
        names: "clang-format autopep8 yapf",
        only: "i in-place",
        ..PLAIN
    },
    Writer {
        names: "prettier",
        only: "w write",
        ..PLAIN
    },
    Writer {
        names: "eslint",
        shorts: "cfo",
        longs: "config ext format output-file rule",
        into: "o output-file",
        only: "fix",
        ..PLAIN
    },
    Writer {
        names: "black isort",
        shorts: "lt",
        longs: "line-length target-version config profile",
        unless: "check check-only diff version help",
        ..PLAIN
    },
    Writer {
        names: "rustfmt",
        longs: "edition config config-path emit color",
        unless: "check emit version help",
        ..PLAIN
    },
    Writer {
        names: "ed ex vi vim nvim nano emacs",
        shorts: "cSTuU",
        longs: "cmd",
        unless: "version help",
        ..PLAIN
    },
];

/// Programs whose arguments do not name what they write.
const OBSCURE: &str = "\
    alias at batch bind chroot complete coproc coreutils dbus-run-session enable fc mmv \
    nsenter numactl prename prlimit setpriv ssh-agent systemd-run";

/// Programs and builtins of the shell that write no file.
const READERS: &str = "\
    ! - . : [ [[ ]] } ag b2sum base64 basename break cal case cat cksum cmp column comm continue \
    cut date declare df diff dirname do done du echo egrep else esac exit expand export expr \
    false fgrep fi file fmt fold free getconf groups grep hash head hexdump history hostname id \
    jobs join jq kill less let local ls lscpu lsof man md5sum more nl nproc numfmt od paste \
    pgrep pkill popd pr printenv printf ps pwd read readlink readonly realpath return rev rg seq \
    set sha1sum sha256sum sha512sum shift shopt sleep stat strings stty sync tac tail test then \
    times tokei top tr tree true tsort tty type typeset ulimit umask uname unexpand unset uptime \
    wait wc whereis which who whoami yes zcat zgrep zless";

fn is_writer(name: &str) -> bool {
    WRITERS.iter().any(|one| is_among(name, one.names))
}

/// Reads one simple command; its first word is the program.
pub(super) fn run(
    reader: &mut Reader,
    words: &[Word],
    documents: &[Word],
    line: &str,
) -> Result<(), EventError> {
    let start = words.iter().position(|word| !is_opening(&word.text));
    subscripts(words)?;
    let Some((name, arguments)) = start.and_then(|at| words[at..].split_first()) else {
        return variables("", words);
    };
    let program = name.text.rsplit('/').next().unwrap_or_default();
    let is_known = name.text.contains('/') && !name.splits && !program.contains(['$', '`']);
    if name.computed && !is_known {
        return Err(EventError::Program(short(&name.text)));
    }
    variables(program, words)?;
    if wrapper::run(reader, program, arguments, documents, line)? {
        return Ok(());
    }
    match program {
        // Words before lists of words; the commands that they run follow after the next end.
        "case" => Ok(()),
        "for" | "select" if arguments.get(1).is_some_and(|word| word.text == "in") => Ok(()),
        "for" | "select" => run(reader, body(arguments), documents, line),
        "function" => run(
            reader,
            arguments.get(1..).unwrap_or_default(),
            documents,
            line,
        ),
        "cd" | "pushd" | "popd" => {
            script::travel(reader, program, arguments);
            Ok(())
        }
        "sh" | "ash" | "bash" | "dash" | "fish" | "ksh" | "mksh" | "rbash" | "zsh" => {
            script::shell(reader, arguments, documents)
        }
        "source" | "." => script::file(reader, arguments),
        "eval" => script::eval(reader, arguments),
        "watch" => {
            let given = Given::read(arguments, "nq", "interval", Order::First);
            script::eval(reader, &given.words)
        }
        "trap" => script::trap(reader, arguments),
        "apply_patch" | "applypatch" => reader.add_all(&patched(line)?),
        "git" => git::run(reader, arguments),
        "provost" => own::judge(arguments),
        "find" => search::find(reader, arguments, documents, line),
        "fd" | "fdfind" => search::fd(reader, arguments, documents, line),
        "xargs" | "parallel" => search::xargs(reader, arguments, documents, line),
        "mapfile" | "readarray" | "history" | "hash" | "crontab" | "rename" => {
            by_option(program, arguments)
        }
        name if name.starts_with("python") => {
            reader.call.is_open = true;
            // A module that is a program is read as one.
            let at = arguments.iter().position(|word| word.text == "-m");
            let rest = at
                .and_then(|at| arguments.get(at + 1..))
                .unwrap_or_default();
            run(reader, rest, documents, line)
        }
        name if is_among(name, OBSCURE) => Err(EventError::Obscure(name.to_owned())),
        name => {
            let known = stream::run(reader, name, arguments)?
                || archive::run(reader, name, arguments)?
                || fetch::run(reader, name, arguments)?
                || project::run(reader, name, arguments)?;
            if known {
                return Ok(());
            }
            own::renamed(name, arguments)?;
            reader.call.is_open |= READERS.split(' ').all(|one| one != name) && !is_writer(name);
            plain(reader, name, arguments)
        }
    }
}

/// Refuses a subscript with a command, which bash runs when it computes the word as a number.
fn subscripts(words: &[Word]) -> Result<(), EventError> {
    let has_command = |word: &Word| {
        word.text.contains("[$(") || word.text.contains("[`") && word.text.matches('`').count() > 1
    };
    if words.iter().any(has_command) {
        return Err(EventError::Unclear("a command in a subscript"));
    }
    Ok(())
}

/// The commands of a loop over the arguments of the shell: `for x do …` and `for x { … }`.
fn body(arguments: &[Word]) -> &[Word] {
    let is_begin = |word: &Word| matches!(word.text.as_str(), "do" | "{");
    let at = arguments.iter().position(is_begin);
    at.and_then(|at| arguments.get(at + 1..))
        .unwrap_or_default()
}

/// Programs that one option makes harmless, or harmful.
fn by_option(program: &str, arguments: &[Word]) -> Result<(), EventError> {
    let has = |name: &str| has_option(arguments, name);
    let harmless = match program {
        "mapfile" | "readarray" => !has("-C"),
        "history" => !has("-w") && !has("-a"),
        "hash" => !has("-p"),
        "crontab" => has("-l"),
        _ => has("-n"),
    };
    if harmless {
        return Ok(());
    }
    Err(EventError::Obscure(program.to_owned()))
}

/// Whether one of the words is the short option `name`, with or without its value.
fn has_option(arguments: &[Word], name: &str) -> bool {
    arguments.iter().any(|word| word.text.starts_with(name))
}

/// Refuses variables that would make a program run another, make git run a program, or change
/// where it reads its settings.
fn variables(program: &str, words: &[Word]) -> Result<(), EventError> {
    const SETTING: [&str; 8] = [
        "declare", "doas", "env", "export", "local", "readonly", "sudo", "typeset",
    ];
    /// Variables that shells and loaders obey.
    const MOVING: [&str; 6] = [
        "BASH_ENV",
        "CDPATH",
        "ENV",
        "LD_AUDIT",
        "LD_PRELOAD",
        "PROMPT_COMMAND",
    ];
    let settles = SETTING.contains(&program);
    let before = words
        .iter()
        .take_while(|word| settles || is_opening(&word.text));
    for word in before {
        if let Some((name, value)) = word.text.split_once('=')
            && (MOVING.contains(&name) || !git::is_harmless(name, value) || value.contains("$("))
        {
            return Err(EventError::Setting(format!("{}=", short(name))));
        }
    }
    Ok(())
}

/// The files of a patch on the line.
fn patched(line: &str) -> Result<Vec<Word>, EventError> {
    Ok(patch::paths(line)?.into_iter().map(Word::plain).collect())
}

/// A program of the table, or one that is not known to write.
fn plain(reader: &mut Reader, name: &str, arguments: &[Word]) -> Result<(), EventError> {
    for writer in WRITERS.iter().filter(|one| is_among(name, one.names)) {
        let given = Given::read(arguments, writer.shorts, writer.longs, Order::Mixed);
        reader.add_all(given.values(writer.into))?;
        let asked = writer.only.is_empty() || given.has(writer.only);
        if !asked || given.has(writer.unless) {
            continue;
        }
        let words = given.words.iter();
        let formats = matches!(writer.targets, Targets::All) && !writer.only.is_empty();
        match writer.targets {
            // A formatter without words takes all files.
            Targets::All if formats && given.words.is_empty() => reader.add(&Word::plain("."))?,
            Targets::None => {}
            Targets::All => reader.add_all(words)?,
            Targets::Rest => reader.add_all(words.skip(1))?,
            Targets::First => reader.add_all(words.take(1))?,
            Targets::Second => reader.add_all(words.skip(1).take(1))?,
            Targets::Last if given.has(writer.into) => {}
            Targets::Last if given.has("T no-target-directory") => {
                reader.add_all(given.words.last())?;
            }
            Targets::Last => destination(reader, &given.words)?,
        }
    }
    Ok(())
}

/// The last of `words`; each of the others goes into it, if it clearly is a directory.
pub(super) fn destination(reader: &mut Reader, words: &[Word]) -> Result<(), EventError> {
    let Some((last, sources)) = words.split_last() else {
        return Ok(());
    };
    let place = last.text.trim_end_matches('/');
    let is_directory = place.len() < last.text.len() || matches!(place, "." | "..");
    if !is_directory || place.is_empty() || last.computed {
        return reader.add(last);
    }
    for source in sources {
        let name = source.text.trim_end_matches('/').rsplit('/').next();
        let computed = source.computed || matches!(name, None | Some("" | "." | ".."));
        let text = format!("{place}/{}", name.unwrap_or_default());
        reader.add(&Word {
            computed,
            ..source.with(text)
        })?;
    }
    Ok(())
}
