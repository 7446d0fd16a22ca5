//! What an answer of a person needs, by the policy and by what the user says.

use provost_core::code::Code;
use provost_core::contract::document::{Document, Network};
use provost_core::question::{AskRules, Needs};
use provost_core::run::fact::Opened;
use provost_host::user_file;

use crate::answer::Failure;
use crate::person_signing;

/// How the questions of a run are asked, by its policy and by what the user says for all
/// repositories.
pub(super) fn asked_rules(policy: &AskRules, opened: &Opened) -> Result<AskRules, Failure> {
    let user = user_file::read()?;
    // The rules of a run that asks nothing stay out of its ledger.
    let contract = &opened.contract;
    let permissions = &contract.tool_permissions;
    let asks =
        permissions.network == Network::OnRequest || permissions.shell.asks() || contract.may_ask();
    let mut rules = AskRules::default();
    if asks {
        rules.wait_sec = user.ask_wait_sec.unwrap_or(policy.wait_sec);
    }
    if asks || !opened.widenings.is_empty() {
        rules = answer_rules(&rules, policy.needs, contract)?;
    }
    Ok(rules)
}

/// What a yes needs by the policy and by what the user says for all repositories, the stricter of
/// both, with the person keys that count.
fn answer_rules(rules: &AskRules, policy: Needs, contract: &Document) -> Result<AskRules, Failure> {
    let needs = policy.max(user_file::read()?.needs);
    let signs = needs == Needs::PersonKey || contract.has_full_access();
    // A yes may be signed where nothing asks for it, so the keys are noted in any case.
    let person_keys = match person_signing::counting() {
        Ok(keys) => keys,
        Err(failure) if signs => return Err(failure),
        Err(_) => Vec::new(),
    };
    Ok(AskRules {
        needs,
        person_keys,
        ..rules.clone()
    })
}

/// What the answer to the question of a case needs.
pub fn case_rules(policy: &AskRules) -> Result<AskRules, Failure> {
    let needs = policy.needs.max(user_file::read()?.needs);
    let mut rules = AskRules::default();
    if needs == Needs::PersonKey {
        rules.needs = needs;
        rules.person_keys = person_signing::counting()?;
    }
    Ok(rules)
}

/// Refuses a run that needs the key of a person for its start, where there is none.
pub fn require_person_key(opened: &Opened) -> Result<(), Failure> {
    if opened.widenings.is_empty() || opened.part.is_some() {
        return Ok(());
    }
    let full = opened.contract.has_full_access();
    let needs = opened.ask.needs.max(user_file::read()?.needs);
    if (full || needs == Needs::PersonKey) && person_signing::counting()?.is_empty() {
        let reason = if full {
            "the contract asks for all files of the user, which only the key of a person grants, \
             and there is none"
        } else {
            "the contract needs an approval by the key of a person, and there is none"
        };
        let hint = person_signing::MAKE_ONE;
        return Err(Failure::new(Code::PersonKeyNeeded, reason).hint(hint));
    }
    Ok(())
}
