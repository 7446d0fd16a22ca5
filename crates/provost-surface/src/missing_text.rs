//! Text about what the sandbox of a failed command lacked.

use std::path::Path;

use provost_core::gate::command::quote;
use provost_engine::dependencies::Advice;

use crate::show::one_line;

/// What a sandbox lacked, and the lines that would help.
pub fn missing(all: &[Advice]) -> String {
    let mut text = String::new();
    for Advice { what, add } in all {
        text += &format!("  missing  {}\n", one_line(what));
        let Some(add) = add else { continue };
        text += "           add to provost.toml, and commit it:\n";
        for line in add.lines() {
            text += &format!("             {}\n", one_line(line));
        }
        if let Some(own) = own_environment().filter(|_| add.contains(".venv")) {
            let own = one_line(&quote(&own));
            text +=
                &format!("           or let sandboxes read your own: provost run … --venv {own}\n");
        }
    }
    text
}

/// The virtual environment that the user works with: the activated one, or the usual one here.
fn own_environment() -> Option<String> {
    let activated = std::env::var("VIRTUAL_ENV")
        .ok()
        .filter(|it| !it.is_empty());
    let usual = || {
        Path::new(".venv/pyvenv.cfg")
            .is_file()
            .then(|| ".venv".to_owned())
    };
    activated.or_else(usual)
}
