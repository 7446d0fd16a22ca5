//! Gives an agent copies of the evidence why earlier work was refused.

use std::fs;

use provost_core::code::Code;
use provost_core::object::sha256;
use provost_core::path::is_segment;
use provost_core::run::effect::AgentEffect;
use provost_engine::ports::PortError;

use super::{Machine, host};

/// The directory of an attempt that holds the copies.
pub(super) const COPIES: &str = "evidence";

impl Machine {
    /// Replaces the copies; fails unless each has exactly the bytes that the contract names.
    pub(super) fn copy_evidence(&self, agent: &AgentEffect) -> Result<(), PortError> {
        if agent.evidence.is_empty() {
            return Ok(());
        }
        let directory = self.places.attempt(agent.attempt).join(COPIES);
        match fs::create_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            made => made.map_err(host("make the directory of the evidence"))?,
        }
        for shown in &agent.evidence {
            let bytes = fs::read(self.bundle.join(&shown.file)).map_err(host("read evidence"))?;
            if sha256(&bytes) != shown.sha256 || !is_segment(&shown.name) {
                let reason = format!("`{}` is not what the contract names", shown.file);
                return Err(PortError::new(Code::EvidenceAltered, reason));
            }
            fs::write(directory.join(&shown.name), &bytes).map_err(host("copy evidence"))?;
        }
        Ok(())
    }
}
