//! Structural analysis of a source tree: against parsing by Python and, after one edit, against
//! `git status` and a full analysis.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::ground::commit;
use super::sample::take_turns;
use super::{Bench, Programs, has, time};
use crate::Result;

/// An analysis after one edit, in analyses of everything.
const EDITED: f64 = 0.5;

const PARSE: &str = "
import ast, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob('*.py'):
    ast.parse(path.read_bytes())
";

/// Measures analyses of generated Python files.
pub(super) fn measure(bench: &mut Bench) -> Result {
    let place = bench.ground.fresh()?;
    let files = bench.length.pick(500, 3_000);
    for number in 0..files {
        let directory = place.join(format!("pkg{}", number / 50));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("m{number}.py")), source(number))?;
    }
    commit(&place)?;
    bench
        .report
        .say(&format!("structure of {files} files of Python"));
    let turns = bench.length.pick(3, 5);

    let caches = Cell::new(0);
    let fresh = || bench.ground.path().join(format!("facts{}", caches.get()));
    let mut cold = || {
        caches.set(caches.get() + 1);
        time(&mut analyze(&bench.programs, &place, &fresh()))
    };
    let name = "cold analysis : ast.parse of Python";
    if has("python3", &["-c", "import ast"]) {
        let mut parse = || time(Command::new("python3").args(["-c", PARSE]).arg(&place));
        let [ours, theirs] = take_turns(turns, &mut [&mut cold, &mut parse])?;
        bench.report.tell(name, ours, theirs);
    } else {
        bench.report.skip(name, "there is no python3");
    }

    let warm = bench.ground.path().join("facts");
    time(&mut analyze(&bench.programs, &place, &warm))?;
    let edits = Cell::new(files);
    let mut edited = || {
        edits.set(edits.get() + 1);
        fs::write(place.join("pkg0/m0.py"), source(edits.get()))?;
        time(&mut analyze(&bench.programs, &place, &warm))
    };
    let mut status = || {
        let mut git = Command::new("git");
        time(git.args(["status", "--porcelain"]).current_dir(&place))
    };
    let [ours, status, all] = take_turns(turns, &mut [&mut edited, &mut status, &mut cold])?;
    bench
        .report
        .tell("analysis after an edit : git status", ours, status);
    bench
        .report
        .judge("analysis after an edit : cold analysis", ours, all, EDITED);
    Ok(())
}

fn analyze(programs: &Programs, place: &Path, cache: &Path) -> Command {
    let mut command = Command::new(programs.provost());
    command
        .args(["analyze"])
        .arg(place)
        .env("XDG_CACHE_HOME", cache);
    command
}

/// A module with a few functions, unlike every other one.
fn source(number: usize) -> String {
    let mut text = format!("from pkg0 import m0\n\n\nclass C{number}:\n    limit = {number}\n");
    for at in 0..8 {
        let one = number * 8 + at;
        text += &format!(
            "\n    def method_{one}(self, values, other=None):\n        total = self.limit\n"
        );
        for step in 0..(3 + one % 5) {
            text += &format!(
                "        if values[{step}] > {one} and other:\n            total += values[{step}] * {at}\n"
            );
        }
        text += &format!("        return [total - value for value in values if value != {one}]\n");
    }
    text
}
