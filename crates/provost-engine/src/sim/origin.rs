//! A simulated repository of one commit.

use std::collections::BTreeMap;

use provost_core::code::Code;
use provost_core::object::{ObjectFormat, Oid, sha256};
use provost_core::path::RepoPath;
use provost_core::policy::Policy;

use super::oid;
use crate::opening::Origin;
use crate::ports::PortError;

/// A repository of one commit, `oid("base")`, which `HEAD` and `main` lead to.
#[derive(Debug, Clone)]
pub struct SimOrigin {
    pub policy: Policy,
    pub largest: Option<RepoPath>,
    /// The branches, by their full ref names.
    pub branches: Vec<String>,
    pub checked_out: Option<String>,
    /// The files whose content matters.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Default for SimOrigin {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            largest: RepoPath::try_from("app").ok(),
            branches: vec!["refs/heads/main".to_owned()],
            checked_out: Some("refs/heads/main".to_owned()),
            files: BTreeMap::new(),
        }
    }
}

impl Origin for SimOrigin {
    fn format(&self) -> ObjectFormat {
        ObjectFormat::Sha256
    }

    fn resolve(&self, revision: &str) -> Result<Oid, PortError> {
        let base = oid("base");
        let leads = ["HEAD", "main", &base.to_string(), &oid("tag").to_string()];
        if leads.contains(&revision) {
            return Ok(base);
        }
        let reason = format!("`{revision}` is no revision");
        Err(PortError::new(Code::NotFound, reason))
    }

    fn tree(&self, _: &Oid) -> Result<Oid, PortError> {
        Ok(oid("base tree"))
    }

    fn policy(&self, _: &Oid) -> Result<Policy, PortError> {
        Ok(self.policy.clone())
    }

    fn largest(&self, _: &Oid) -> Result<Option<RepoPath>, PortError> {
        Ok(self.largest.clone())
    }

    fn digest(&self, _: &Oid, path: &RepoPath) -> Result<Option<String>, PortError> {
        // Every file holds its own name.
        Ok(Some(sha256(path.as_str().as_bytes())))
    }

    fn read(&self, _: &Oid, path: &RepoPath, _: usize) -> Result<Option<Vec<u8>>, PortError> {
        Ok(self.files.get(path.as_str()).cloned())
    }

    fn checked_out(&self) -> Result<Option<String>, PortError> {
        Ok(self.checked_out.clone())
    }

    fn has_branch(&self, branch: &str) -> Result<bool, PortError> {
        Ok(self.branches.iter().any(|known| known == branch))
    }
}
