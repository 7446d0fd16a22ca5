//! Measures the start of a sandbox against bubblewrap and against a bare start of the same program.
//!
//! Prints one line a measure: its name, the median and the quartiles in microseconds, and one with
//! `-work` for the average processor time, which other programs disturb less. The measures take
//! turns, so that a change of the machine's load affects all of them. The argument is the number of
//! turns; names after it pick measures, for a profiler.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use provost_host::sandbox::{
    self, Command, Control, How, LauncherProgram, Profile, Stdin, selftest,
};

/// As close to a sandbox as bubblewrap comes without a list of mounts.
const BUBBLEWRAP: &[&str] = &[
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/var/tmp",
    "--",
    "/bin/true",
];

/// One clock tick of the kernel's accounting, in microseconds.
const TICK: f64 = 10_000.0;

type Measure<'a> = Box<dyn FnMut() -> Result<(), Box<dyn Error>> + 'a>;

fn main() -> Result<(), Box<dyn Error>> {
    sandbox::main_if_launcher();
    let turns: u32 = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 100,
    };
    let scratch = tempfile::tempdir()?;
    let profile = Profile::minimal();
    let launcher = LauncherProgram::own();
    let outside = selftest::Outside::new(&launcher)?;
    let mut measures: Vec<(&str, Measure<'_>)> = vec![
        (
            "sandbox",
            Box::new(|| start_sandbox(&profile, scratch.path())),
        ),
        ("bare", Box::new(|| run(&mut Process::new("/bin/true")))),
        (
            "selftest",
            Box::new(|| {
                selftest::run(&launcher, &profile, &outside)?;
                Ok(())
            }),
        ),
    ];
    let bubblewrap = || run(Process::new("bwrap").args(BUBBLEWRAP));
    if bubblewrap().is_ok() {
        measures.push(("bubblewrap", Box::new(bubblewrap)));
    }
    let picked: Vec<String> = std::env::args().skip(2).collect();
    if !picked.is_empty() {
        measures.retain(|(name, _)| picked.iter().any(|pick| pick == name));
    }
    let mut times = vec![Vec::new(); measures.len()];
    let mut work = vec![0; measures.len()];
    let turns = turns.max(1);
    for turn in 0..turns as usize {
        for place in 0..measures.len() {
            // Each measure is the first one in some turns.
            let at = (place + turn) % measures.len();
            let (begin, worked) = (Instant::now(), children()?);
            (measures[at].1)()?;
            times[at].push(begin.elapsed());
            work[at] += children()? - worked;
        }
    }
    let mut out = std::io::stdout().lock();
    for ((name, _), (times, work)) in measures.iter().zip(times.into_iter().zip(work)) {
        let average = f64::from(work) * TICK / f64::from(turns);
        let [low, median, high] = quartiles(times);
        writeln!(out, "{name} {median:.1} {low:.1} {high:.1}")?;
        writeln!(out, "{name}-work {average:.1}")?;
    }
    Ok(())
}

/// Processor time of the ended children so far, in ticks.
fn children() -> Result<u32, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields = text.rsplit(')').next().unwrap_or_default();
    // After the program name: state and ten numbers, then our own two times, then the children's.
    let fields = fields.split_whitespace().skip(13).take(2);
    Ok(fields.map(str::parse::<u32>).sum::<Result<_, _>>()?)
}

fn start_sandbox(profile: &Profile, scratch: &Path) -> Result<(), Box<dyn Error>> {
    let command = Command {
        argv: vec!["/bin/true".to_owned()],
        stdin: Stdin::Null,
        stdout: scratch.join("stdout"),
        stderr: scratch.join("stderr"),
    };
    let running = sandbox::start(profile, &command, |_| Ok(()))?;
    match running.wait(&mut |_| Control::Continue)?.how {
        How::Exited(0) => Ok(()),
        other => Err(format!("the sandbox ended with {other:?}").into()),
    }
}

fn run(process: &mut Process) -> Result<(), Box<dyn Error>> {
    let status = process
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(status.to_string().into())
    }
}

fn quartiles(mut times: Vec<Duration>) -> [f64; 3] {
    times.sort_unstable();
    [1, 2, 3].map(|quarter| times[times.len() * quarter / 4].as_secs_f64() * 1e6)
}
