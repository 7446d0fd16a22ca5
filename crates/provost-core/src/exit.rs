//! Says how a command ends.

/// The exit status of a command; the same number means the same thing everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done, or the answer is yes.
    Yes = 0,
    /// The tool worked and the answer is no.
    No = 1,
    /// The request is wrong.
    Usage = 2,
    /// Not now: something else has to happen first.
    NotNow = 3,
    /// The environment lacks something.
    Lacking = 4,
    /// Evidence cannot be trusted.
    Untrusted = 5,
    /// A bug of ours.
    Bug = 70,
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> Self {
        exit as Self
    }
}
