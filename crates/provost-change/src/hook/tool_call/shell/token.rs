//! The pieces that a command line is cut into.

/// A word, and whether a shell would still compute something in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) computed: bool,
    /// Whether it may become several words, because what is computed stands outside of quotes.
    pub(super) splits: bool,
}

impl Word {
    /// A part of this word, or what follows from it.
    pub(super) fn with(&self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            computed: self.computed,
            splits: self.splits,
        }
    }

    /// A word that only a shell can compute.
    pub(super) fn unknown(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            computed: true,
            splits: true,
        }
    }

    /// A word that stands for itself.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            computed: false,
            splits: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// The next word is written to.
    Into,
    /// The next word is a descriptor, or it is written to: `>&`.
    Copy,
    /// The next word is read, or copied from another descriptor; it is not written to.
    From,
    /// The next word is what the command reads.
    Text,
    /// A here-document that the command reads.
    Document(Word),
    /// A script that the shell runs to compute the next word.
    Script(String),
    /// The word before names a function whose body follows; it is run later.
    Define,
    /// A subshell begins, and ends.
    Open,
    Close,
    /// One simple command ends.
    End(End),
}

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
