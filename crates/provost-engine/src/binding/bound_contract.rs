//! The contract that a binding enforces.

use provost_core::code::Code;
use provost_core::contract::additions::AdditionsFrom;
use provost_core::contract::check::{Purpose, Rules};
use provost_core::contract::{self, Contract};
use provost_core::document::{self, Format};
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::object::Oid;
use provost_core::policy::Policy;
use provost_core::verdict::Verdict;

use super::Binding;
use crate::opening::{Origin, with_files};
use crate::ports::PortError;

/// Why a hook refuses before the diff gate does.
#[derive(Debug)]
pub enum HookStop {
    Refused(Verdict),
    Failed(PortError),
}

impl From<PortError> for HookStop {
    fn from(error: PortError) -> Self {
        Self::Failed(error)
    }
}

/// A contract that a binding enforces.
#[derive(Debug)]
pub struct BoundContract {
    pub contract: Contract,
    pub policy: Policy,
    pub base: Oid,
}

impl BoundContract {
    /// The contract of `binding`, if `bytes` of its file are unchanged and are a contract; the file
    /// cannot be read if there are none.
    pub fn of(
        binding: &Binding,
        bytes: Option<&[u8]>,
        origin: &dyn Origin,
    ) -> Result<Self, HookStop> {
        binding.check(bytes).map_err(HookStop::Refused)?;
        let refuse = |reason: String| HookStop::Refused(Verdict::deny(Code::HookBroken, reason));
        let format = Format::of_name(&binding.contract).unwrap_or(Format::Json);
        let value = document::parse(format, bytes.unwrap_or_default())
            .map_err(|error| refuse(format!("the bound contract cannot be read: {error}")))?;
        let document = contract::from_value(&value)
            .map_err(|error| refuse(format!("the bound contract is invalid: {error}")))?;
        let policy = origin
            .tree(&binding.base)
            .and_then(|tree| origin.policy(&tree))
            .map_err(|error| refuse(format!("the base of the bound contract: {error}")))?;
        let commands = CommandPolicy::shipped().and_then(|it| it.with(policy.commands.clone()));
        let commands = commands.map_err(|error| PortError::of(Code::Bug, error))?;
        let tree = origin.tree(&binding.base)?;
        let resolved = with_files(origin, &tree, |read| {
            let rules = Rules {
                policy: &commands,
                trust: Trust::FromFile,
                purpose: Purpose::Run,
                additions: AdditionsFrom::Base(read),
            };
            contract::resolve_by(document, &rules)
        })?;
        let contract =
            resolved.map_err(|problems| HookStop::Refused(contract::judge(&problems)))?;
        Ok(Self {
            contract,
            policy,
            base: binding.base.clone(),
        })
    }
}
