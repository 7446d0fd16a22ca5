//! The listener of the proxy: made inside the sandbox, served from outside.
//!
//! Init makes the listener in the namespace of the sandbox and sends it to the driver. A socket
//! stays in the namespace it was made in, so the proxy needs no bridge, no address of the host and
//! no privilege. There is no route and no resolver inside: what does not go through the proxy fails
//! at once.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};

use provost_core::net::endpoint::{Endpoint, Host};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::messages;
use super::process_identity::timespec;
use super::profile::{Network, Profile};
use super::running::PATIENCE;

/// Address of the proxy inside the sandbox.
pub(crate) const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);
/// How many connections may wait to be accepted.
const WAITING: i32 = 1024;
/// Every spelling that clients read; those in lower case are the older ones.
const VARIABLES: [&str; 6] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
];
/// What clients reach without the proxy: the sandbox's own loopback.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl Profile {
    /// Lets the sandbox reach `places`, and nothing else, through a proxy that its environment
    /// names.
    pub fn grant(&mut self, places: Vec<Endpoint>) {
        let proxy = format!("http://{PROXY}");
        for name in VARIABLES {
            self.env.insert(name.to_owned(), proxy.clone());
        }
        // A granted name means the host's loopback, which only the proxy reaches.
        let granted = |own: &str| {
            let same = |host: &Host| host.to_string().trim_matches(['[', ']']) == own;
            places.iter().any(|place| same(&place.host))
        };
        let own: Vec<&str> = OWN.into_iter().filter(|own| !granted(own)).collect();
        for name in ["NO_PROXY", "no_proxy"] {
            self.env.insert(name.to_owned(), own.join(","));
        }
        // Node reads none of these unless this variable is set.
        let node = ("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
        self.env.extend([node]);
        self.network = Network::Proxy(places);
    }
}

impl Profile {
    /// Lets the sandbox reach every place of the public internet, beside what was granted. The host
    /// itself, machines of its network and the metadata service are no such places.
    pub fn grant_any(&mut self) {
        let places = match &self.network {
            Network::Proxy(places) => places.clone(),
            Network::Deny | Network::Loopback => Vec::new(),
        };
        self.grant(places);
        self.any_place = true;
    }
}

/// Makes the listener, and sends it to the driver at the other end of `go`.
pub(crate) fn open(go: &OwnedFd) -> Result<(), Errno> {
    let listener = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::bind(&listener, &PROXY)?;
    rustix::net::listen(&listener, WAITING)?;
    messages::send(go, b"listener", &[listener.as_fd()])
}

/// The listener that init made; `None` if init failed, which it reports through the launcher.
pub(crate) fn receive(go: &OwnedFd) -> Option<TcpListener> {
    let mut polled = [PollFd::new(go, PollFlags::IN)];
    while let Err(Errno::INTR) = rustix::event::poll(&mut polled, Some(&timespec(PATIENCE))) {}
    if polled[0].revents().is_empty() {
        return None;
    }
    let (_, descriptors) = messages::receive(go).ok()?;
    let [listener] = <[OwnedFd; 1]>::try_from(descriptors).ok()?;
    Some(TcpListener::from(listener))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(places: &[&str]) -> Profile {
        let mut profile = Profile::minimal();
        let places = places.iter().map(|text| Endpoint::parse(text).unwrap());
        profile.grant(places.collect());
        profile
    }

    #[test]
    fn the_environment_names_the_proxy_in_every_spelling() {
        let profile = granted(&["api.example.com:443"]);
        for name in VARIABLES {
            assert_eq!(profile.env[name], "http://127.0.0.1:3128", "{name}");
        }
        assert_eq!(profile.env["NO_PROXY"], "localhost,127.0.0.1,::1");
        assert_eq!(profile.env["no_proxy"], profile.env["NO_PROXY"]);
    }

    #[test]
    fn a_granted_loopback_is_reached_through_the_proxy() {
        let bypass = |place| granted(&[place]).env["NO_PROXY"].clone();
        assert_eq!(bypass("127.0.0.1:8080"), "localhost,::1");
        assert_eq!(bypass("localhost:8080"), "127.0.0.1,::1");
        assert_eq!(bypass("[::1]:8080"), "localhost,127.0.0.1");
    }

    #[test]
    fn the_digest_differs_between_grants() {
        let digest = |place| granted(&[place]).digest().unwrap();
        assert_ne!(digest("a.example:1"), digest("a.example:2"));
    }
}
