//! Commits as the user makes them: by name and address, and signed if the user signs commits.
//!
//! # Invariants
//!
//! - Name and address are those of `git commit`: from the user's environment and configuration and
//!   from the configuration of the repository. git guesses none.
//! - Whether, with which key and by which program a commit is signed is read from the user's global
//!   configuration alone. A repository neither asks for a signature nor names a program.
//! - A program that signs is looked up outside the repository, and starts outside of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use provost_core::object::{Kind, Oid};

use super::run::{Output, SETTINGS, failed, unexpected, whole};
use super::{GitError, Person, Repository};

/// How long a user has to unlock a key.
const SIGN_LIMIT: Duration = Duration::from_mins(5);

/// What the global configuration says about signing, by lower-case name.
const SIGNING: &str = r"^(commit\.gpgsign|user\.signingkey|gpg\..*)$";

/// How commits of this user are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing(BTreeMap<String, String>);

/// A commit that could not be signed.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    #[error("the commit was not signed: {words}")]
    Refused {
        /// What git and the program printed.
        words: String,
    },
    #[error("git signed another commit than it was asked for")]
    Another,
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Author and committer as `git commit` would name them, with the time 0; `None` if git knows
    /// no name or no address.
    pub fn people(&self) -> Result<Option<[Person; 2]>, GitError> {
        let mut people = Vec::new();
        for variable in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            let mut command = self.user_command();
            command.args(["-c", "user.useConfigOnly=true", "var", variable]);
            let output = whole(command, "var".to_owned(), SIGN_LIMIT, Vec::new())?;
            if !output.status.success() {
                return is_anonymous(&output).map(|()| None);
            }
            let text = String::from_utf8_lossy(&output.stdout);
            people.push(person(&text).ok_or_else(|| unexpected("var"))?);
        }
        Ok(people.try_into().ok())
    }

    /// How the user signs commits; `None` if commits are not signed.
    pub fn signing(&self) -> Result<Option<Signing>, GitError> {
        let places = ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"];
        if places.iter().all(|name| std::env::var_os(name).is_none()) {
            return Ok(None);
        }
        let mut command = self.user_command();
        command.args(["config", "--global", "--includes", "--null"]);
        command.args(["--get-regexp", SIGNING]);
        let output = whole(command, "config".to_owned(), SIGN_LIMIT, Vec::new())?;
        match output.status.code() {
            Some(0) => {}
            // There is no such setting, or no such file.
            Some(1) => return Ok(None),
            _ => return Err(failed("config".to_owned(), &output)),
        }
        let text = String::from_utf8(output.stdout).map_err(|_| unexpected("config"))?;
        let mut settings = BTreeMap::new();
        for entry in text.split_terminator('\0') {
            // A name without a value is true.
            let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            settings.insert(name.to_owned(), value.to_owned());
        }
        let asked = settings.remove("commit.gpgsign").unwrap_or_default();
        let asked = matches!(asked.to_ascii_lowercase().as_str(), "true" | "yes" | "on")
            || asked.parse::<i64>().is_ok_and(|number| number != 0);
        Ok(asked.then_some(Signing(settings)))
    }

    /// The bytes of the commit `plain` with a signature, made by git with these settings.
    ///
    /// `people` and `message` are what `plain` is made of.
    pub fn signed_commit(
        &self,
        signing: &Signing,
        (tree, parent): (&Oid, &Oid),
        [author, committer]: [&Person; 2],
        message: &str,
        plain: &str,
    ) -> Result<String, SigningError> {
        let mut command = self.user_command();
        for (name, _) in std::env::vars_os() {
            // Such variables can hold settings too.
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(name);
            }
        }
        command.env("GIT_DIR", self.side.path());
        command.env("GIT_OBJECT_DIRECTORY", &self.objects);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        for (role, person) in [("AUTHOR", author), ("COMMITTER", committer)] {
            command.env(format!("GIT_{role}_NAME"), &person.name);
            command.env(format!("GIT_{role}_EMAIL"), &person.mail);
            command.env(
                format!("GIT_{role}_DATE"),
                format!("@{} +0000", person.time),
            );
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for (name, value) in &signing.0 {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.args(["commit-tree", "-S", "-p", parent.as_str(), tree.as_str()]);
        let input = message.as_bytes().to_vec();
        let output = whole(command, "commit-tree".to_owned(), SIGN_LIMIT, input);
        let output = output.map_err(|error| match error {
            GitError::TimedOut { .. } => SigningError::Refused {
                words: error.to_string(),
            },
            other => other.into(),
        })?;
        if !output.status.success() {
            let words = output.words.lines().collect::<Vec<_>>().join("; ");
            return Err(SigningError::Refused { words });
        }
        let oid = String::from_utf8_lossy(&output.stdout);
        let oid = Oid::try_from(oid.trim()).map_err(|_| unexpected("commit-tree"))?;
        let bytes = self.batch()?.one(&oid, Kind::Commit)?;
        let object = String::from_utf8(bytes).map_err(|_| SigningError::Another)?;
        let same = object != plain && unsigned(&object) == plain;
        same.then_some(object).ok_or(SigningError::Another)
    }

    /// git with the environment of the user, about this repository. It asks on the terminal of the
    /// user, if there is one.
    fn user_command(&self) -> Command {
        let mut command = Command::new(self.git.program());
        for place in ["GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
            command.env_remove(place);
        }
        command
            .env("PATH", self.outer_path())
            .env("GIT_DIR", &self.git_dir)
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if !std::io::stdin().is_terminal() {
            // So that the time limit reaches its children too.
            command.process_group(0);
        }
        command
    }

    /// The directories of `PATH` that are not in the repository.
    fn outer_path(&self) -> OsString {
        let inside = [
            self.top.as_deref(),
            self.checkout.as_deref(),
            Some(&self.common_dir),
        ];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let outer = std::env::split_paths(&path).filter(|directory| {
            let real = directory
                .canonicalize()
                .unwrap_or_else(|_| directory.clone());
            let mut inside = inside.iter().flatten();
            real.is_absolute() && !inside.any(|place| real.starts_with(place))
        });
        std::env::join_paths(outer).unwrap_or_default()
    }
}

/// Fails unless git says that it knows no name or address.
fn is_anonymous(output: &Output) -> Result<(), GitError> {
    let signs = [
        "ident name",
        "tell me who you are",
        "was given and auto-detection",
    ];
    if signs.iter().any(|sign| output.words.contains(sign)) {
        Ok(())
    } else {
        Err(failed("var".to_owned(), output))
    }
}

/// `Name <address> seconds zone`, without its time.
fn person(text: &str) -> Option<Person> {
    let (name, rest) = text.trim_end().split_once(" <")?;
    let (mail, _) = rest.rsplit_once('>')?;
    let bad = |text: &str| {
        text.trim().is_empty()
            || text.contains(|letter: char| "<>".contains(letter) || letter.is_control())
    };
    (!bad(name) && !bad(mail)).then(|| Person {
        name: name.to_owned(),
        mail: mail.to_owned(),
        time: 0,
    })
}

/// A commit without its signature.
fn unsigned(object: &str) -> String {
    let (head, message) = object.split_once("\n\n").unwrap_or((object, ""));
    let mut lines: Vec<&str> = Vec::new();
    let mut in_signature = false;
    for line in head.lines() {
        let begins = line.starts_with("gpgsig ") || line.starts_with("gpgsig-sha256 ");
        in_signature = begins || in_signature && line.starts_with(' ');
        if !in_signature {
            lines.push(line);
        }
    }
    format!("{}\n\n{message}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_all_that_may_be_added() {
        let plain = "tree a\nparent b\nauthor x\ncommitter x\n\nFix\n\n gpgsig no\n";
        let signed = "tree a\nparent b\nauthor x\ncommitter x\n\
                      gpgsig -----BEGIN\n \n abc\n -----END\n\nFix\n\n gpgsig no\n";
        assert_eq!(unsigned(signed), plain);
        assert_eq!(unsigned(plain), plain);
        assert_ne!(unsigned(&signed.replace("gpgsig -", "encoding -")), plain);
    }

    #[test]
    fn an_identity_is_a_name_and_an_address() {
        let found = |text| person(text).map(|it| (it.name, it.mail));
        let some = |name: &str, mail: &str| Some((name.to_owned(), mail.to_owned()));
        assert_eq!(found("A B <a@b> 1 +0000\n"), some("A B", "a@b"));
        assert_eq!(found("A <> 1 +0000\n"), None);
        assert_eq!(found("\n"), None);
    }
}
