//! Reads a repository's own policy from the text of its `provost.toml`.

use provost_core::policy::{Flaw, Policy, Written};

/// The largest policy we read, in bytes.
pub const LARGEST: usize = 256 * 1024;

/// Why a policy was refused.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// More than [`LARGEST`] bytes.
    #[error("provost.toml: has more than {LARGEST} bytes")]
    TooLarge,
    /// Not UTF-8.
    #[error("provost.toml: is not UTF-8")]
    NotText,
    /// Not TOML, or with fields that a policy has not.
    #[error("provost.toml: {0}")]
    Syntax(String),
    /// A value that breaks a rule.
    #[error("provost.toml: {0}")]
    Flaw(Flaw),
}

/// Reads a policy.
pub fn parse(bytes: &[u8]) -> Result<Policy, PolicyError> {
    if bytes.len() > LARGEST {
        return Err(PolicyError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| PolicyError::NotText)?;
    let written: Written =
        toml::from_str(text).map_err(|error| PolicyError::Syntax(error.to_string()))?;
    Policy::try_from(written).map_err(PolicyError::Flaw)
}

#[cfg(test)]
mod tests {
    use provost_core::run::fact::WorkspaceChoice;

    use super::*;

    #[test]
    fn a_policy_adds_to_the_rules() {
        let policy = parse(
            b"[protect]\noracle = [\"spec/\"]\n[commands]\nallow = [\"make test\"]\n\
              [agents.mine]\ncommand = \"my-agent --fast 'a b'\"\n\
              [workspace]\nkind = \"overlay\"\n[box]\nloopback = true\n\
              [[prepare]]\nrun = \"npm ci\"\ninputs = [\"package-lock.json\"]\n\
              outputs = [\"node_modules\"]\nnet = [\"registry.npmjs.org:443\"]\n[limits]\nprocesses = 64\n",
        )
        .unwrap();
        assert_eq!(policy.commands, [["make", "test"]]);
        assert_eq!(policy.workspace, WorkspaceChoice::Overlay);
        assert_eq!(policy.limits.processes, Some(64));
        assert_eq!(policy.agents["mine"], ["my-agent", "--fast", "a b"]);
        assert_eq!(policy.protect.oracle.entries().len(), 1);
        assert!(policy.loopback);
        assert_eq!(policy.prepare[0].run, [["npm", "ci"]]);
    }

    #[test]
    fn a_policy_that_does_not_parse_is_refused() {
        let cases: [&[u8]; 10] = [
            b"[[prepare]]\nrun = \"npm ci\"",
            b"surprise = 1",
            b"[workspace]\nkind = \"fast\"",
            b"[protect]\noracle = [\"../x\"]",
            b"[commands]\nallow = [\"'unclosed\"]",
            b"[agents.x]\ncommand = \"\"",
            b"\xff",
            b"[protect]\n[protect]\n",
            b"[limits]\nprocesses = 1",
            b"[limits]\nram = 64",
        ];
        for bytes in cases {
            let error = parse(bytes).unwrap_err().to_string();
            assert!(error.starts_with("provost.toml: "), "{error}");
        }
    }
}
