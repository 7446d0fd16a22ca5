//! The fence of an attempt: the number of its lease, and which attempt it is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Written `N.A`: attempt `A` under lease `N`, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fence {
    pub lease: u64,
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no fence: two numbers from 1 with a point between them, such as 7.1")]
pub struct BadFence(String);

impl TryFrom<String> for Fence {
    type Error = BadFence;

    fn try_from(text: String) -> Result<Self, BadFence> {
        let parts = text.split_once('.');
        let parsed = parts.and_then(|(lease, attempt)| {
            let fence = Self {
                lease: lease.parse().ok()?,
                attempt: attempt.parse().ok()?,
            };
            let is_spelled = fence.to_string() == text;
            (fence.lease > 0 && fence.attempt > 0 && is_spelled).then_some(fence)
        });
        parsed.ok_or(BadFence(text))
    }
}

impl std::str::FromStr for Fence {
    type Err = BadFence;

    fn from_str(text: &str) -> Result<Self, BadFence> {
        Self::try_from(text.to_owned())
    }
}

impl From<Fence> for String {
    fn from(fence: Fence) -> Self {
        fence.to_string()
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.lease, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_has_one_spelling() {
        for good in ["1.1", "18446744073709551615.4294967295"] {
            assert_eq!(good.parse::<Fence>().unwrap().to_string(), good);
        }
        for bad in [
            "", "1", "0.1", "1.0", "01.1", "1.+1", "1.1 ", "1.1.1", "-1.1", "a.b",
        ] {
            assert!(bad.parse::<Fence>().is_err(), "{bad}");
        }
    }
}
