//! The listener of the broker of children: made inside the sandbox, served from outside.
//!
//! Init makes the socket in the file system of the sandbox and sends it to the driver, as it does
//! with the listener of the proxy. No other sandbox has that path, so what comes through the socket
//! comes from this sandbox.

use std::fs::Permissions;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::messages;
use super::process_identity::timespec;
use super::profile::{Mount, Profile};
use super::running::PATIENCE;

/// The directory of the socket in the sandbox.
const DIRECTORY: &str = "/run/provost/broker";

/// The socket in the sandbox.
pub const BROKER: &str = "/run/provost/broker/children.sock";

/// The environment variable with its path.
pub const BROKER_VARIABLE: &str = "PROVOST_BROKER";

impl Profile {
    /// Gives the sandbox the socket of a broker, which [`super::Running::take_broker`] serves.
    pub fn add_broker(&mut self) {
        self.broker = true;
        self.add(Mount::Scratch {
            target: DIRECTORY.into(),
        });
        self.env
            .insert(BROKER_VARIABLE.to_owned(), BROKER.to_owned());
    }
}

/// Makes the socket, and sends it to the driver at the other end of `go`.
pub(crate) fn open(go: &OwnedFd) -> Result<(), Errno> {
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let listener = UnixListener::bind(BROKER).map_err(errno)?;
    std::fs::set_permissions(BROKER, Permissions::from_mode(0o666)).map_err(errno)?;
    messages::send(go, b"broker", &[listener.as_fd()])
}

/// The listener that init made; `None` if init failed, which it reports through the launcher.
pub(crate) fn receive(go: &OwnedFd) -> Option<UnixListener> {
    let mut polled = [PollFd::new(go, PollFlags::IN)];
    while let Err(Errno::INTR) = rustix::event::poll(&mut polled, Some(&timespec(PATIENCE))) {}
    if polled[0].revents().is_empty() {
        return None;
    }
    let (_, descriptors) = messages::receive(go).ok()?;
    let [listener] = <[OwnedFd; 1]>::try_from(descriptors).ok()?;
    Some(UnixListener::from(listener))
}
