//! The allow-list of commands that comes with Provost, parsed once.

use std::sync::OnceLock;

use crate::gate::command::{CommandPolicy, PolicyError};

/// The shipped policy; it is read and held to its examples once.
pub(super) fn policy() -> Result<CommandPolicy, PolicyError> {
    static POLICY: OnceLock<CommandPolicy> = OnceLock::new();
    if let Some(policy) = POLICY.get() {
        return Ok(policy.clone());
    }
    let policy = CommandPolicy::shipped()?;
    Ok(POLICY.get_or_init(|| policy).clone())
}
