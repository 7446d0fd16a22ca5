//! Signs the answers of a person with the person key, and reads its passphrase.
//!
//! # Invariants
//!
//! - A passphrase comes from a terminal without echo, or from the file that the user names; never
//!   from an argument or a variable.
//! - Without a terminal and without a file, nothing is signed.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::code::Code;
use provost_core::person_key::{AnswerStatement, PersonSignature};
use provost_core::question::{AnswerMeans, Needs};
use provost_host::keys::Keys;
use provost_host::keys::person::{PersonKey, PersonKeyError};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use zeroize::Zeroizing;

use crate::answer::Failure;

/// The longest passphrase, in bytes.
const LONGEST: u64 = 4096;

/// The command that makes a person key.
pub const MAKE_ONE: &str = "provost key new --person makes one";

/// The flags of commands that may sign.
#[derive(Debug, Clone, Default, Args)]
pub struct SigningFlags {
    /// Sign the answer with your person key, even where none is asked for.
    #[arg(long)]
    pub person_key: bool,

    /// The file whose first line is the passphrase of your person key; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
}

/// How an answer is given.
pub type Given = (AnswerMeans, Option<PersonSignature>);

/// Gives an answer at a terminal: signed if a yes needs it or the flags ask for it.
///
/// `statement` is called with the way of the answer before it is signed.
pub fn give(
    flags: &SigningFlags,
    needs: Needs,
    statement: &AnswerStatement<'_>,
) -> Result<Given, Failure> {
    let asked = flags.person_key || flags.passphrase_file.is_some();
    if !asked && (needs == Needs::Terminal || !statement.allow) {
        return Ok((AnswerMeans::Terminal, None));
    }
    let key = own()?;
    let ask = || match &flags.passphrase_file {
        Some(file) => from_file(file),
        None => from_terminal("passphrase of your person key: "),
    };
    let signature = key.sign(&statement.signed_bytes(), ask)?;
    let signature = PersonSignature::of(&key.named.key, &signature);
    Ok((AnswerMeans::PersonKey, Some(signature)))
}

/// The person key of this user.
fn own() -> Result<PersonKey, Failure> {
    let key = Keys::find().map_err(PersonKeyError::from)?.person()?;
    let missing = || {
        let reason = "the answer needs your person key, and you have none";
        Failure::new(Code::PersonKeyNeeded, reason).hint(MAKE_ONE)
    };
    key.ok_or_else(missing)
}

/// The public person keys whose answers count on this machine, one line each.
pub fn counting() -> Result<Vec<String>, Failure> {
    let keys = Keys::find().map_err(PersonKeyError::from)?;
    let keys = keys.trusted_persons()?;
    Ok(keys.iter().map(|named| named.key.to_string()).collect())
}

/// A passphrase for a new key: from the file, or typed twice.
pub fn new_passphrase(file: Option<&Path>) -> Result<Zeroizing<String>, Failure> {
    if let Some(file) = file {
        return from_file(file);
    }
    let first = from_terminal("passphrase for the new person key: ")?;
    let again = from_terminal("the same again: ")?;
    if first != again {
        return Err(Failure::new(Code::UsageError, "the passphrases differ"));
    }
    Ok(first)
}

fn from_file(file: &Path) -> Result<Zeroizing<String>, Failure> {
    let unreadable = |error: io::Error| {
        let reason = format!("`{}`: {error}", file.display());
        Failure::new(Code::InputUnreadable, reason)
    };
    let mut line = Zeroizing::new(String::new());
    let read = if file == Path::new("-") {
        io::stdin().lock().take(LONGEST).read_line(&mut line)
    } else {
        let file = File::open(file).map_err(unreadable)?;
        BufReader::new(file.take(LONGEST)).read_line(&mut line)
    };
    read.map_err(unreadable)?;
    let end = line.trim_end_matches(['\r', '\n']).len();
    line.truncate(end);
    Ok(line)
}

/// Reads a line from the terminal of this process without showing it.
fn from_terminal(prompt: &str) -> Result<Zeroizing<String>, Failure> {
    let none = || {
        let reason = "the passphrase of your person key is read from a terminal, and there is none";
        Failure::new(Code::PersonKeyNeeded, reason).hint("add --passphrase-file FILE")
    };
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    let terminal = terminal.map_err(|_| none())?;
    let quiet = Quiet::begin(&terminal).map_err(|_| none())?;
    let typed = quiet.line(prompt);
    let typed = typed.map_err(|error| Failure::of(Code::HostFailed, &error))?;
    typed.ok_or_else(|| Failure::new(Code::UsageError, "no passphrase was typed"))
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn begin(terminal: &'a File) -> io::Result<Self> {
        let before = termios::tcgetattr(terminal.as_fd())?;
        let mut quiet = before.clone();
        // Without signals too: Ctrl-C would leave the terminal without echo.
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(terminal.as_fd(), OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }

    /// The line that is typed; `None` if the user gave up.
    fn line(&self, prompt: &str) -> io::Result<Option<Zeroizing<String>>> {
        let mut terminal = self.terminal;
        terminal.write_all(prompt.as_bytes())?;
        let mut typed = Zeroizing::new(Vec::new());
        let mut byte = [0];
        let done = loop {
            if terminal.read(&mut byte)? == 0 {
                break false;
            }
            match byte[0] {
                b'\r' | b'\n' => break true,
                // Ctrl-C and Ctrl-D.
                3 | 4 => break false,
                8 | 127 => {
                    typed.pop();
                }
                other if (typed.len() as u64) < LONGEST => typed.push(other),
                _ => {}
            }
        };
        terminal.write_all(b"\n")?;
        let text = String::from_utf8(std::mem::take(&mut *typed));
        Ok(text.ok().filter(|_| done).map(Zeroizing::new))
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let fd = self.terminal.as_fd();
        let _ = termios::tcsetattr(fd, OptionalActions::Flush, &self.before);
    }
}
