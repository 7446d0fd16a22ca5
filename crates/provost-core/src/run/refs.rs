//! The names of the refs that runs leave in a repository.

/// The prefix of refs that keep objects which records name.
pub const KEPT: &str = "refs/provost/";
/// The prefix of branches that hold exactly a candidate.
pub const BRANCHES: &str = "refs/heads/provost/";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The commit that the work starts from.
    Base,
    /// The work of an attempt, as captured for the gates.
    Captured,
    /// Work of an attempt that no gate saw in full.
    Salvaged,
    /// Merges of a candidate with a moved target, and the commits that land.
    Merged,
    /// Trees for cross-tests.
    Crossed,
}

impl Kind {
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Base => "refs/provost/base/",
            Self::Captured => "refs/provost/runs/",
            Self::Salvaged => "refs/provost/salvage/",
            Self::Merged => "refs/provost/merged/",
            Self::Crossed => "refs/provost/crossed/",
        }
    }

    /// The ref of the run `run_id`, or the common prefix of its refs of this kind.
    pub fn of_run(self, run_id: &str) -> String {
        format!("{}{run_id}", self.prefix())
    }
}

pub fn branch(run_id: &str) -> String {
    format!("{BRANCHES}{run_id}")
}

/// The run that the ref `name` belongs to, if it is a ref of a run.
pub fn run_of(name: &str) -> Option<&str> {
    name.strip_prefix(KEPT)?.split('/').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_of_a_ref_is_found() {
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
