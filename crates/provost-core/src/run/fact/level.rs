//! How important a fact is to those who read logs.

use super::Fact;
use crate::record::Level;

impl Fact {
    pub(super) fn level(&self) -> Level {
        match self {
            Self::Failed { .. }
            | Self::Rejected(_)
            | Self::Refused(_)
            | Self::Violation(_)
            | Self::Exhausted { .. } => Level::Error,
            Self::Lost {}
            | Self::Resumed { .. }
            | Self::Triggered(_)
            | Self::Asked { .. }
            | Self::QuestionAsked(_)
            | Self::QuestionExpired { .. }
            | Self::CancelRequested(_)
            | Self::ChildRefused(_)
            | Self::Expired {} => Level::Warn,
            Self::Finished { verdict } if !verdict.allow => Level::Error,
            _ => Level::Info,
        }
    }
}
