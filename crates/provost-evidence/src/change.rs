//! The differences between the base tree and the files that an agent left.
//!
//! These are facts that the host reads from disk; the diff gate judges them.

use serde::{Deserialize, Serialize};

use crate::object::{Mode, Oid};
use crate::path::RawPath;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub mode: Mode,
    pub oid: Oid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub path: RawPath,
    /// `None` if the base tree does not have the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Node>,
    /// `None` if the agent removed the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Node>,
    /// Whether the content before or after is not text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// Where the content came from, when it was moved or copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The target of a new symbolic link, as written in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<RawPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The path in the base tree.
    pub path: RawPath,
    pub how: Movement,
    /// How much of the content is equal, in percent; 100 is every byte.
    #[serde(default = "exact", skip_serializing_if = "is_exact")]
    pub likeness: u8,
}

pub const EXACT: u8 = 100;

fn exact() -> u8 {
    EXACT
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_exact(likeness: &u8) -> bool {
    *likeness == EXACT
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Movement {
    /// The source is gone.
    Rename,
    /// The source is still there.
    Copy,
}

/// Something on disk that a tree cannot hold faithfully.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub path: RawPath,
    pub kind: FindingKind,
    /// Details, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A repository inside the repository.
    NestedRepository,
    /// A fifo, socket or device.
    SpecialFile,
    /// A file or directory that cannot be read.
    Unreadable,
    /// A name that is not UTF-8, or holds a control character or a backslash.
    BadName,
    /// Two names that are equal where case and Unicode normalisation do not count.
    CaseTwin,
    /// Two captured paths that are one file.
    HardLink,
    /// A set-uid or set-gid bit.
    SetId,
    /// A file over the size limit.
    TooLarge,
    /// Directories nested over the depth limit.
    TooDeep,
    /// More entries than the limit.
    TooMany,
    /// Bytes made to collide under SHA-1.
    Collision,
    /// A secret that the base does not have. A tree can hold it, and should not.
    Secret,
}

impl FindingKind {
    /// Whether there are bytes on disk that the tree does not contain.
    ///
    /// The history of a nested repository does not count: its files are captured.
    pub fn leaves_work_out(self) -> bool {
        match self {
            Self::Unreadable | Self::TooLarge | Self::TooDeep | Self::TooMany | Self::Collision => {
                true
            }
            Self::NestedRepository
            | Self::SpecialFile
            | Self::BadName
            | Self::CaseTwin
            | Self::HardLink
            | Self::SetId
            | Self::Secret => false,
        }
    }
}

/// Paths that the ignore rules of the base commit exclude: build output, counted and not captured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    pub files: u64,
    pub bytes: u64,
}
