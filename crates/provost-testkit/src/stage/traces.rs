//! Finds processes and mounts that a run left behind.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Outcome, Stage, Surroundings};

impl Stage {
    /// Processes that belong to this stage, and mounts of it.
    ///
    /// A process inside a sandbox is recognised by its mounts, whatever it calls itself.
    pub fn traces(&self) -> Vec<String> {
        let mark = self.mark();
        let holds = |path: String| {
            let bytes = fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains(&mark)
        };
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap() {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            if name.parse::<u32>().is_err() {
                continue;
            }
            for file in ["cmdline", "mountinfo"] {
                if holds(format!("/proc/{name}/{file}")) {
                    let words = fs::read(format!("/proc/{name}/cmdline")).unwrap_or_default();
                    let words = String::from_utf8_lossy(&words).replace('\0', " ");
                    found.push(format!("{file} of {name}: {words}"));
                    break;
                }
            }
        }
        found
    }

    /// Nothing of a run is left: no process, no mount, no workspace, no lease. Everything around is
    /// as it was `before`.
    pub fn assert_clean(&self, before: &Surroundings, name: &str) {
        let nothing: [&str; 0] = [];
        assert_eq!(self.traces(), nothing, "{name}: processes");
        let left = self.workspaces();
        assert!(left.is_empty(), "{name}: workspaces {left:?}");
        assert_eq!(
            before.differences(&self.surroundings()),
            nothing,
            "{name}: changed"
        );
        let leases = self.ask(&["lease", "list", "--json"]);
        assert_eq!(leases.stdout, b"[]\n", "{name}: leases");
    }

    /// Removes what a run says it left for the user, as the user would.
    pub fn take_away_left(&self, outcome: &Outcome) {
        for left in outcome.json["left"].as_array().into_iter().flatten() {
            let attempt = Path::new(left["path"].as_str().unwrap());
            assert!(
                attempt.starts_with(self.path("cache")),
                "{}",
                attempt.display()
            );
            let run = attempt.parent().unwrap();
            let done = Command::new("rm").arg("-rf").arg(run).status().unwrap();
            assert!(done.success());
        }
    }

    /// Waits until every process of the stage is gone.
    pub fn await_silence(&self, name: &str) {
        until(&format!("{name}: silence"), || self.traces().is_empty());
    }
}

/// Waits until `is_so` returns true.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(30), "{what}");
        sleep(Duration::from_millis(5));
    }
}
