//! Holds every sealed bundle that a test leaves against the schemas of its files.
//!
//! It happens in one place, when a stage is dropped, with the binary under test. Files that a test
//! altered are left out by `check bundle` itself.

use std::fs;

use super::Stage;
use super::command::try_program;

/// Where a runtime root has sealed directories.
const HOLDERS: [&str; 4] = ["runs", "plans", "chains", "refused"];

impl Drop for Stage {
    fn drop(&mut self) {
        // The first failure of a test is the one to read.
        if std::thread::panicking() {
            return;
        }
        let root = self.path("repo/.provost");
        let holds =
            |holder: &&str| fs::read_dir(root.join(holder)).is_ok_and(|mut it| it.next().is_some());
        if !HOLDERS.iter().any(holds) || try_program().is_none() {
            return;
        }
        let root = root.display().to_string();
        let checked = self.ask(&["check", "bundle", &root, "--json"]);
        assert!(
            checked.exit == 0,
            "files of bundles do not fit their schemas: {checked:?}"
        );
    }
}
