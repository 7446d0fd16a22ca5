//! Whether a run keeps what its agent asked of models, and what they answered.

use provost_core::size;
use provost_core::wording::counted;
use provost_engine::query::{KeptBodies, RunView};

/// One line; nothing for an agent whose models are not read.
pub(crate) fn bodies(view: &RunView) -> String {
    let Some(bodies) = &view.bodies else {
        return String::new();
    };
    let words = match (bodies.recorded, bodies.kept) {
        (_, Some(kept)) => kept_words(kept),
        (true, None) => "recorded, and removed since".to_owned(),
        (false, None) => "not recorded".to_owned(),
    };
    format!("  bodies   {words}\n")
}

fn kept_words(kept: KeptBodies) -> String {
    let files = usize::try_from(kept.files).unwrap_or(usize::MAX);
    let limit = if kept.is_full {
        "; the limit was reached, so later ones are missing"
    } else {
        ""
    };
    let size = size::rough(kept.bytes);
    format!("recorded, {} of {size}{limit}", counted(files, "file"))
}
