//! Measures how much processor time and memory a command uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Outcome, Running};

/// The most processor time of a call, in hundredths of a second; unlike wall time it does not
/// depend on other load.
const WORK: u64 = 500;

/// When a call is killed that does not end.
const HANGS: Duration = Duration::from_mins(1);

const MEMORY: u64 = 300 * 1024;

const BUG: i32 = 70;

impl Running {
    /// Waits for its end. It must end by itself, in time, within its memory, and not as a bug.
    pub fn measured(mut self, what: &str) -> Outcome {
        let since = Instant::now();
        let process = PathBuf::from(format!("/proc/{}", self.pid().as_raw_nonzero()));
        let (mut work, mut peak) = (0, 0);
        loop {
            // Both only grow, so no more than the last moment can be missed.
            work = work.max(ticks(&process));
            peak = peak.max(high_water(&process));
            if !self.progressed() {
                break;
            }
            assert!(since.elapsed() < HANGS, "{what}: hangs");
            sleep(Duration::from_millis(1));
        }
        let outcome = self.wait();
        let by_itself = outcome.exit < 128 && outcome.exit != BUG;
        assert!(by_itself, "{what}: {outcome:?}");
        assert!(work < WORK, "{what}: took {work} ticks");
        assert!(peak < MEMORY, "{what}: used {peak} KiB");
        outcome
    }
}

/// Processor time of a process and of the children it waited for.
fn ticks(process: &Path) -> u64 {
    let text = fs::read_to_string(process.join("stat")).unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default();
    let fields = fields.split_whitespace().skip(11).take(4);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Peak memory of a process so far, in KiB.
fn high_water(process: &Path) -> u64 {
    let text = fs::read_to_string(process.join("status")).unwrap_or_default();
    let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let mark = mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok());
    mark.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::stage::Stage;

    #[test]
    fn a_bug_a_signal_and_too_much_memory_are_noticed() {
        let stage = Stage::empty();
        let holds = |script: &str| {
            let mut command = stage.command("sh");
            command.args(["-c", script]);
            let measured = || stage.spawn(command).measured(script);
            catch_unwind(AssertUnwindSafe(measured)).is_ok()
        };
        assert!(holds("exit 5"));
        assert!(!holds("exit 70"));
        assert!(!holds("kill -9 $$"));
        let large = "exec dd if=/dev/zero of=/dev/null count=4 bs=";
        assert!(holds(&format!("{large}1M")));
        assert!(!holds(&format!("{large}400M")));
    }
}
