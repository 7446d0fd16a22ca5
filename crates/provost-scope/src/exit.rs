//! The exit status of commands.

/// The exit status of a command; the same number means the same thing everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done, or the answer is yes.
    Yes,
    /// The tool worked and the answer is no.
    No,
    /// The request is wrong.
    Usage,
    /// Not now: something else has to happen first.
    NotNow,
    /// The environment lacks something.
    Lacking,
    /// Evidence cannot be trusted.
    Untrusted,
    /// A bug in Provost.
    Bug,
    /// The status of another command that was executed; it has that command's meaning.
    Of(u8),
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Yes => 0,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::NotNow => 3,
            Exit::Lacking => 4,
            Exit::Untrusted => 5,
            Exit::Bug => 70,
            Exit::Of(status) => status,
        }
    }
}
