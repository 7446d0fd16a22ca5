//! Mounts layers of the host as one directory.
//!
//! # Invariants
//!
//! - No layer is named by text that the kernel would parse: the kernel gets the names of links that
//!   are made for it. Kernels before 6.8 take lower layers only as one list with separators.
//! - Removals are marked by an attribute that an ordinary user may set (`userxattr`). The kernel
//!   refuses, or hides and renames, what the payload sets by such names, so it cannot forge one.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::error::Failure;
use super::root::SCAFFOLD;

const UPPER: &str = "upper";
const WORK: &str = "work";

/// A detached mount of the layers; leaves the current directory at the root.
///
/// `links` is a directory that does not exist yet, and is gone afterwards.
pub(super) fn merge(
    lowers: &[PathBuf],
    upper: &Path,
    work: &Path,
    attributes: MountAttrFlags,
    links: &Path,
) -> Result<OwnedFd, Failure> {
    let stage = || format!("overlay on {}", upper.display());
    rustix::fs::mkdir(links, Mode::from_raw_mode(0o755)).map_err(Failure::at(stage()))?;
    rustix::process::chdir(links).map_err(Failure::at(stage()))?;
    let names: Vec<String> = (0..lowers.len()).map(|at| at.to_string()).collect();
    let below = names.iter().map(String::as_str);
    let below = below.zip(lowers.iter().map(PathBuf::as_path));
    let layers: Vec<(&str, &Path)> = below.chain([(UPPER, upper), (WORK, work)]).collect();
    for (name, layer) in &layers {
        let stage = format!("overlay layer {}", layer.display());
        link(layer, name).map_err(Failure::at(stage))?;
    }
    let merged = mount(&names.join(":"), attributes).map_err(Failure::at(stage()))?;
    let removed = || {
        for (name, _) in &layers {
            rustix::fs::unlink(*name)?;
        }
        rustix::process::chdir("/")?;
        rustix::fs::rmdir(links)
    };
    removed().map_err(Failure::at(stage()))?;
    Ok(merged)
}

/// Makes a link to `layer` in the current directory.
fn link(layer: &Path, name: &str) -> Result<(), Errno> {
    if !layer.is_absolute() || layer.starts_with(SCAFFOLD) {
        return Err(Errno::INVAL);
    }
    // The kernel would only say later, and of all layers together, that one is missing.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(layer, flags, Mode::empty())?;
    rustix::fs::symlink(layer, name)
}

/// Mounts the layers whose links are in the current directory; `lowers` is a list with colons.
fn mount(lowers: &str, attributes: MountAttrFlags) -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in [("lowerdir", lowers), ("upperdir", UPPER), ("workdir", WORK)] {
        rustix::mount::fsconfig_set_string(&context, key, value)?;
    }
    rustix::mount::fsconfig_set_flag(&context, "userxattr")?;
    // An index would tie the upper layer to the inodes below it, which may be recreated.
    rustix::mount::fsconfig_set_string(&context, "index", "off")?;
    rustix::mount::fsconfig_create(&context)?;
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
