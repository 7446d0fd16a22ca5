//! Decides which branch a result lands on, before any work is done.

use provost_core::code::Code;

use crate::ports::PortError;

/// The branch that the contract names, else the one that is checked out, as a full ref name.
///
/// A missing branch is refused at once, before an agent spends time on the work.
pub(crate) fn choose(
    named: Option<&str>,
    checked_out: Option<String>,
    exists: impl FnOnce(&str) -> Result<bool, PortError>,
) -> Result<String, PortError> {
    let branch = match (named, checked_out) {
        (Some(name), _) if name.starts_with("refs/heads/") => name.to_owned(),
        (Some(name), _) => format!("refs/heads/{name}"),
        (None, Some(branch)) => branch,
        (None, None) => {
            let reason = "no branch is checked out, so the result has nowhere to go; \
                          name a branch with --target";
            return Err(PortError::new(Code::UsageError, reason));
        }
    };
    if exists(&branch)? {
        return Ok(branch);
    }
    let short = branch.trim_start_matches("refs/heads/");
    let reason =
        format!("there is no branch `{short}` to land on; make it, or name another with --target");
    Err(PortError::new(Code::NotFound, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(named: Option<&str>, checked_out: Option<&str>) -> Result<String, Code> {
        let exists = |branch: &str| Ok(["refs/heads/main", "refs/heads/a/b"].contains(&branch));
        choose(named, checked_out.map(str::to_owned), exists).map_err(|error| error.code)
    }

    #[test]
    fn a_result_is_meant_for_a_branch_that_is_there() {
        let main = Some("refs/heads/main");
        let cases = [
            (None, main, Ok("refs/heads/main")),
            (Some("a/b"), main, Ok("refs/heads/a/b")),
            (Some("refs/heads/a/b"), None, Ok("refs/heads/a/b")),
            (Some("mian"), main, Err(Code::NotFound)),
            (None, Some("refs/heads/unborn"), Err(Code::NotFound)),
            (None, None, Err(Code::UsageError)),
        ];
        for (named, checked_out, want) in cases {
            let want = want.map(str::to_owned);
            assert_eq!(check(named, checked_out), want, "{named:?} {checked_out:?}");
        }
    }
}
