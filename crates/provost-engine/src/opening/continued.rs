//! Decides how a run continues the work of an earlier one, with further words for its agent.

use provost_core::code::Code;
use provost_core::foreign_text::one_line;
use provost_core::run::State;
use provost_core::run::fact::Opened;

use super::retry::of_document;
use super::{Origin, RetryRequest};
use crate::ports::PortError;

/// The first record of a run whose agent starts from the files that `before` left, with `words`
/// added to its task. Work that may not be judged again may not be built upon either.
pub fn continued(
    origin: &dyn Origin,
    before: &State,
    words: &str,
    request: RetryRequest,
) -> Result<Opened, PortError> {
    let run = &before.names.run_id;
    let refuse = |why: String| {
        let reason = format!("{run} {why}, so its work is not continued");
        PortError::new(Code::KeepWorkRefused, reason)
            .hint(format!("provost retry {run} starts its agent again"))
    };
    if before.opened.agent.is_empty() {
        return Err(refuse("has no agent".to_owned()));
    }
    let end = before.finished.as_ref();
    let accepted = before.captured.as_ref();
    let captured = match accepted.filter(|_| end.is_some_and(|end| end.allow)) {
        Some(captured) => captured,
        None => before.kept_work().map_err(refuse)?,
    };
    let result = match end {
        Some(end) if !end.allow => format!("was refused: {}", one_line(&end.reason)),
        _ => "was accepted".to_owned(),
    };
    let mut document = before.opened.contract.clone();
    let spec = &mut document.inputs.spec;
    *spec = format!(
        "{}\n\n# What came of it so far\n\nThe files are as an earlier attempt left them, which \
         {result}. Everything that the contract asks for still holds for the whole of the \
         change.\n\n# What else is to be done\n\n{}\n",
        spec.trim_end(),
        words.trim()
    );
    let mut opened = of_document(origin, before, document, request)?;
    opened.work = None;
    opened.continues = Some(captured.tree.clone());
    Ok(opened)
}
