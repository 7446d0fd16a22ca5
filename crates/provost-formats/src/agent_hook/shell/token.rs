//! The pieces that a command line is cut into.

/// A word, and whether a shell would still compute something in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) computed: bool,
}

impl Word {
    /// A word that is what it says.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            computed: false,
        }
    }
}

/// A piece of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// The next word is written to.
    Into,
    /// The next word is not: it is read, or copied from another descriptor.
    From,
    /// The next word is what the command reads.
    Text,
    /// What the command reads.
    Document(Word),
    /// What the shell runs to make the next word.
    Script(String),
    /// The word before names what follows; it is run later.
    Define,
    /// A shell of its own begins, and ends.
    Open,
    Close,
    /// One simple command is over.
    End(End),
}

/// What stands between two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|` or `&`: each side is a process of its own.
    Aside,
    /// `;` or the end of a line.
    Then,
}
