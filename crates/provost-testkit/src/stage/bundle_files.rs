//! Holds every sealed bundle that a test leaves against the schemas of its files.
//!
//! It happens in one place, when a stage is dropped, with the binary under test. Files that a test
//! altered are left out by `check bundle` itself.

use std::fs;
use std::process::Command;

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
        let Some(program) = try_program().filter(|_| HOLDERS.iter().any(holds)) else {
            return;
        };
        // Not the copy of the stage, which a test may have overwritten.
        let mut command = Command::new(program);
        command.args(["check", "bundle", "--json"]).arg(&root);
        command.env("HOME", self.path("home"));
        let checked = self.spawn(command).wait();
        assert!(
            checked.exit == 0,
            "files of bundles do not fit their schemas: {checked:?}"
        );
    }
}
