//! Lists the limits of a sandbox on this machine, by what they are enforced, and how exactly.

use provost_core::contract::limits::Limits;
use provost_core::size;
use provost_host::sandbox::{self, ProcessLimit};

use super::Row;

/// The limits of a run with default settings.
pub(super) fn rows(processes: ProcessLimit) -> Vec<Row> {
    let usual = Limits::default();
    let group = sandbox::group_place();
    let of_kernel = sandbox::Limits::default();
    let held = format!(
        "{} of output, {} a file, {} open files, and the time that is asked for",
        size::render(usual.output_bytes),
        size::render(of_kernel.file_bytes),
        of_kernel.open_files
    );
    let memory = size::render(usual.memory_bytes);
    let memory = match &group {
        Some(place) => format!(
            "{memory}, held by the kernel in a control group of `{}`",
            place.display()
        ),
        None => format!(
            "{memory}, counted several times a second: it can be passed for a moment; no control group \
             of version 2 is delegated to us"
        ),
    };
    let count = usual.processes;
    let processes = match (group, processes) {
        (Some(_), _) | (None, ProcessLimit::Exact) => {
            format!("{count} at a time, held by the kernel")
        }
        (None, ProcessLimit::Coarse) => format!(
            "{count} at a time, counted several times a second; for root the kernel itself holds \
             only from 301 processes on"
        ),
        (None, ProcessLimit::Absent) => format!(
            "{count} at a time, counted several times a second; for root this kernel holds nothing, \
             so a fork bomb is felt outside until it is noticed"
        ),
    };
    let disk = format!(
        "{} and {} files, counted about twice a second, or less often where counting takes long",
        size::render(usual.disk_bytes),
        usual.inodes
    );
    let quiet = format!(
        "{} min without output and without a changed file",
        usual.no_progress.as_secs() / 60
    );
    vec![
        Row::ok("time, output and file limits", held),
        Row::ok("process limit", processes),
        Row::ok("memory limit", memory),
        Row::ok("disk limit", disk),
        Row::ok("progress limit", quiet),
    ]
}
