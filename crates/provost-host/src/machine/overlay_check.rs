//! Finds out whether overlays work on this machine, by using one.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use crate::sandbox::{Command, Control, How, LauncherProgram, Mount, Profile, Stdin};
use provost_sandbox::process;

use crate::{cache, workspace};

/// What the payload of the trial does to the overlay.
const SCRIPT: &str =
    "rm gone && echo more >> changed && rm -r old && mkdir old && echo new > old/new";

/// How long the trial may take, in seconds.
const SECONDS: u64 = 20;

/// Why overlays whose upper layer is below `cache` cannot be used; `None` if they can.
///
/// That they can is remembered until the next boot.
pub(super) fn refusal(launcher: &LauncherProgram, cache: &Path) -> Option<String> {
    let memory = cache.join(cache::OVERLAYS_WORK);
    let now = circumstances(cache);
    let known = fs::read_to_string(&memory).ok();
    if now.is_ok() && known.as_ref() == now.as_ref().ok() {
        return None;
    }
    let place = cache.join(format!("overlay-trial.{}", std::process::id()));
    let tried = workspace::remove(cache, &place)
        .map_err(|error| error.to_string())
        .and_then(|()| try_in(&place, launcher));
    let removed = workspace::remove(cache, &place);
    let answer = tried.and_then(|()| removed.map_err(|error| error.to_string()));
    if let (Ok(()), Ok(now)) = (&answer, now) {
        // It only saves time: an answer that cannot be stored is no error.
        let _ = fs::write(&memory, now);
    }
    answer.err()
}

/// What the answer depends on.
fn circumstances(cache: &Path) -> io::Result<String> {
    let boot = fs::read_to_string(process::BOOT)?;
    let device = fs::metadata(cache)?.dev();
    Ok(format!("{} {device}\n", boot.trim()))
}

fn try_in(place: &Path, launcher: &LauncherProgram) -> Result<(), String> {
    let words = |error: io::Error| error.to_string();
    let layer = |name: &str| place.join(name);
    for directory in ["lower/old", "upper", "work"] {
        fs::create_dir_all(layer(directory)).map_err(words)?;
    }
    for file in ["gone", "changed", "old/file"] {
        fs::write(layer("lower").join(file), "old\n").map_err(words)?;
    }
    let mut profile = Profile::minimal();
    profile.add(Mount::Overlay {
        lowers: vec![layer("lower")],
        upper: layer("upper"),
        work: layer("work"),
        target: super::profile::TREE.into(),
    });
    profile.workdir = super::profile::TREE.into();
    profile.limits.wall_seconds = SECONDS;
    let command = Command {
        argv: ["/bin/sh", "-c", SCRIPT].map(str::to_owned).to_vec(),
        stdin: Stdin::Null,
        stdout: layer("stdout"),
        stderr: layer("stderr"),
    };
    let ended = launcher
        .start(&profile, &command, |_| Ok(()))
        .and_then(|running| running.wait(&mut |_| Control::Continue))
        .map_err(|error| error.to_string())?;
    if ended.how != How::Exited(0) {
        return Err("files on an overlay cannot be changed".to_owned());
    }
    let is_marked = fs::symlink_metadata(layer("upper/gone"))
        .is_ok_and(|found| found.file_type().is_char_device() && found.rdev() == 0);
    let is_changed = fs::read(layer("upper/changed")).is_ok_and(|text| text == b"old\nmore\n");
    let is_untouched = fs::read(layer("lower/changed")).is_ok_and(|text| text == b"old\n");
    if is_marked && is_changed && is_untouched {
        Ok(())
    } else {
        Err("an overlay does not keep what is written to it".to_owned())
    }
}
