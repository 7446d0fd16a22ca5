//! The names of the refs that runs leave in a repository.

/// Where refs live that keep what records name.
pub const KEPT: &str = "refs/provost/";
/// Where branches live that hold exactly a candidate.
pub const BRANCHES: &str = "refs/heads/provost/";

/// What a ref keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The commit that the work starts from.
    Base,
    /// What an attempt left, as it was captured for the gates.
    Captured,
    /// What an attempt left that no gate ever saw whole.
    Salvaged,
    /// Merges of a candidate with a target that moved.
    Merged,
    /// Trees with one half of what an attempt left.
    Crossed,
}

impl Kind {
    /// Where refs of this kind live.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Base => "refs/provost/base/",
            Self::Captured => "refs/provost/runs/",
            Self::Salvaged => "refs/provost/salvage/",
            Self::Merged => "refs/provost/merged/",
            Self::Crossed => "refs/provost/crossed/",
        }
    }

    /// The ref of the run `run_id`, or what all of its refs of this kind begin with.
    pub fn of_run(self, run_id: &str) -> String {
        format!("{}{run_id}", self.prefix())
    }
}

/// The branch with the candidate of the run `run_id`.
pub fn branch(run_id: &str) -> String {
    format!("{BRANCHES}{run_id}")
}

/// The run that the ref `name` belongs to, if it keeps something of one.
pub fn run_of(name: &str) -> Option<&str> {
    name.strip_prefix(KEPT)?.split('/').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_tells_its_run() {
        let kinds = [
            Kind::Base,
            Kind::Captured,
            Kind::Salvaged,
            Kind::Merged,
            Kind::Crossed,
        ];
        for kind in kinds {
            assert!(kind.prefix().starts_with(KEPT));
            assert_eq!(run_of(&kind.of_run("run_x")), Some("run_x"));
            assert_eq!(
                run_of(&format!("{}/1", kind.of_run("run_x"))),
                Some("run_x")
            );
        }
        assert_eq!(run_of(&branch("run_x")), None);
        assert_eq!(run_of("refs/heads/main"), None);
    }
}
