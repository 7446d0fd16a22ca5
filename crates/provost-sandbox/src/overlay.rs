//! Mounts layers of the host as one directory.
//!
//! # Invariants
//!
//! - No layer is named by text that the kernel would parse: each one is the current directory when
//!   the kernel is given it.
//! - Removals are marked by an attribute that an ordinary user may set (`userxattr`). The kernel
//!   hides and renames what the payload sets by such names, so it cannot forge one.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::error::Failure;
use super::root::SCAFFOLD;

/// A detached mount of the layers; leaves the current directory at the root.
pub(super) fn merge(
    lowers: &[PathBuf],
    upper: &Path,
    work: &Path,
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Failure> {
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)
        .map_err(Failure::at("overlay"))?;
    let lowers = lowers.iter().map(|lower| ("lowerdir+", lower.as_path()));
    for (key, layer) in lowers.chain([("upperdir", upper), ("workdir", work)]) {
        add(&context, key, layer)
            .map_err(Failure::at(format!("overlay {key} {}", layer.display())))?;
    }
    let mounted = || {
        rustix::process::chdir("/")?;
        rustix::mount::fsconfig_set_flag(&context, "userxattr")?;
        // An index would tie the upper layer to the inodes below it, which may be recreated.
        rustix::mount::fsconfig_set_string(&context, "index", "off")?;
        rustix::mount::fsconfig_create(&context)?;
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    mounted().map_err(Failure::at(format!("overlay on {}", upper.display())))
}

fn add(context: &OwnedFd, key: &str, layer: &Path) -> Result<(), Errno> {
    if !layer.is_absolute() || layer.starts_with(SCAFFOLD) {
        return Err(Errno::INVAL);
    }
    rustix::process::chdir(layer)?;
    rustix::mount::fsconfig_set_string(context, key, ".")
}
