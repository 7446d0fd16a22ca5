//! Reads the list of attacks.

use std::fs;
use std::path::Path;

/// Fewer attacks than this are not the whole list.
const LEAST: usize = 45;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attack {
    /// The program and its argument.
    pub(super) name: String,
    pub(super) counts: Counts,
    /// The least privileged user who can do it without a sandbox.
    pub(super) who: Who,
    /// What it tries.
    pub(super) words: String,
}

/// What shows that an attack escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// It printed what it could not know.
    Reads,
    /// Its exit status says so.
    Does,
    /// A process of it was alive after the end.
    Lasts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Root,
    User,
}

impl Who {
    /// The users that this process can become.
    pub(super) fn here() -> Vec<Self> {
        if rustix::process::geteuid().is_root() {
            vec![Self::Root, Self::User]
        } else {
            vec![Self::User]
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<Attack>, String> {
    let text = fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let attacks: Vec<Attack> = lines
        .map(|line| parse(line).ok_or_else(|| format!("not an attack: {line}")))
        .collect::<Result<_, _>>()?;
    if attacks.len() < LEAST {
        return Err(format!(
            "{} attacks, at least {LEAST} are wanted",
            attacks.len()
        ));
    }
    Ok(attacks)
}

pub(super) fn parse(line: &str) -> Option<Attack> {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, counts, who, words] = parts[..] else {
        return None;
    };
    let counts = match counts {
        "reads" => Counts::Reads,
        "does" => Counts::Does,
        "lasts" => Counts::Lasts,
        _ => return None,
    };
    let who = match who {
        "root" => Who::Root,
        "user" => Who::User,
        _ => return None,
    };
    Some(Attack {
        name: name.to_owned(),
        counts,
        who,
        words: words.to_owned(),
    })
}
