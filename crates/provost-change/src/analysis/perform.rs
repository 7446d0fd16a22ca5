//! Analyses the checkout, and records which files the report describes.

use crate::analysis::run::{RunHead, evicted};
use crate::intent::State;
use provost_core::code::Code;
use provost_lens::structure::baseline::{LARGEST, NAME, Seen};
use provost_lens::structure::{Report, Settings};

use crate::service::{ChangeError, Ports, Session, wrong};
use provost_engine::ports::PortError;

/// How often the checkout may change during the analysis before the request fails.
const TRIES: usize = 3;

/// Analyses `root`, and stores the run for this session. `baseline` is the file that lists accepted
/// findings; without a name, the file of the usual name counts, if it exists.
pub fn analyse(
    ports: &mut Ports<'_>,
    session: &Session,
    root: &str,
    settings: &Settings,
    baseline: Option<&str>,
) -> Result<(RunHead, Report), ChangeError> {
    if let Err(error) = settings.check() {
        return wrong(error.to_string());
    }
    let path = baseline.unwrap_or(NAME);
    let mut before = ports.checkout.workspace()?;
    for _ in 0..TRIES {
        let report = ports.lens.analyze(&ports.checkout.place(root), settings)?;
        let bytes = ports.checkout.read(root, path, LARGEST);
        let after = ports.checkout.workspace()?;
        if before != after {
            // A file changed during the analysis: the report describes neither state.
            before = after;
            continue;
        }
        let seen = match bytes {
            Ok(bytes) => Seen::of(path, bytes.as_deref(), &report),
            // A baseline that cannot be read accepts no finding, and does not stop the analysis.
            Err(error) => Seen::Invalid {
                path: path.to_owned(),
                why: error.verdict().reason,
            },
        };
        if baseline.is_some() && seen == Seen::Missing {
            return wrong(format!("there is no baseline `{path}`"));
        }
        let head = RunHead::of(&report, root, after, seen, ports.clock.millis());
        ports.analyses.put(head.clone(), &report)?;
        let known = ports.registry.look(None)?;
        let pinned: Vec<String> = known
            .intents
            .iter()
            .filter(|intent| intent.owner == session.me && intent.state == State::Active)
            .map(|intent| intent.run_id.clone())
            .collect();
        let gone = evicted(&ports.analyses.heads()?, &pinned);
        ports.analyses.drop(&gone)?;
        return Ok((head, report));
    }
    let reason = "the checkout changes faster than it can be analysed; try again when it is quiet";
    Err(PortError::new(Code::HostFailed, reason).into())
}
