//! Canaries: what an agent must not reach, and how the demo observes whether it did.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use provost_core::object::sha256;

/// How often the listener polls for connections.
const GLANCE: Duration = Duration::from_millis(5);

/// A listener on loopback that counts connections and answers none.
pub(super) struct Listener {
    pub(super) port: u16,
    calls: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(super) fn new() -> io::Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        let port = socket.local_addr()?.port();
        let calls = Arc::new(AtomicUsize::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let (counted, stop) = (Arc::clone(&calls), Arc::clone(&over));
        let listen = move || {
            while !stop.load(Ordering::Relaxed) {
                match socket.accept() {
                    Ok(_) => {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_) => thread::sleep(GLANCE),
                }
            }
        };
        Ok(Self {
            port,
            calls,
            over,
            thread: Some(thread::spawn(listen)),
        })
    }

    /// The number of connections since the last call.
    pub(super) fn calls(&self) -> usize {
        // A connection that the kernel accepted is counted within the next few polls.
        thread::sleep(GLANCE * 10);
        self.calls.swap(0, Ordering::Relaxed)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Every file below a directory, with its mode and the digest of its content.
pub(super) type Picture = BTreeMap<PathBuf, (u32, String)>;

/// What runs may write in a repository; everything else belongs to the user.
const OWN: [&str; 4] = [
    ".git/objects",
    ".git/refs/provost",
    ".git/refs/heads/provost",
    ".git/logs/refs/heads/provost",
];

/// A picture of the checkout `top` and its git directory, without what runs may write.
pub(super) fn picture(top: &Path) -> io::Result<Picture> {
    let mut picture = Picture::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            let name = path.strip_prefix(top).unwrap_or(&path).to_owned();
            if OWN.iter().any(|own| Path::new(own) == name) {
                continue;
            }
            let data = fs::symlink_metadata(&path)?;
            let content = if data.is_dir() {
                open.push(path);
                String::new()
            } else if data.is_symlink() {
                sha256(fs::read_link(&path)?.as_os_str().as_bytes())
            } else {
                sha256(&fs::read(&path)?)
            };
            picture.insert(name, (data.permissions().mode(), content));
        }
    }
    Ok(picture)
}

/// Whether any file below `directory` contains `needle`.
pub(super) fn holds(directory: &Path, needle: &str) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let data = fs::symlink_metadata(&path)?;
        let found = if data.is_dir() {
            holds(&path, needle)?
        } else {
            data.is_file() && contains(&fs::read(&path)?, needle.as_bytes())
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    text.windows(needle.len()).any(|part| part == needle)
}

/// How many processes run the shell script `script`, in sandboxes or outside.
pub(super) fn processes(script: &Path) -> usize {
    let begins = [b"sh\0", script.as_os_str().as_bytes(), b"\0"].concat();
    let runs_it = |process: &Path| {
        fs::read(process.join("cmdline")).is_ok_and(|words| words.starts_with(&begins))
    };
    fs::read_dir("/proc").map_or(0, |entries| {
        entries
            .flatten()
            .filter(|entry| runs_it(&entry.path()))
            .count()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_once() {
        let listener = Listener::new().unwrap();
        assert_eq!(listener.calls(), 0);
        std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port)).unwrap();
        assert_eq!(listener.calls(), 1);
        assert_eq!(listener.calls(), 0);
    }

    #[test]
    fn a_picture_shows_every_change_that_is_not_a_runs_own() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        fs::create_dir_all(top.join(".git/objects")).unwrap();
        fs::create_dir_all(top.join(".git/hooks")).unwrap();
        fs::write(top.join("file"), "one").unwrap();
        let before = picture(top).unwrap();

        fs::write(top.join(".git/objects/pack"), "x").unwrap();
        assert_eq!(picture(top).unwrap(), before);
        fs::write(top.join("file"), "two").unwrap();
        assert_ne!(picture(top).unwrap(), before);
        fs::write(top.join("file"), "one").unwrap();
        assert_eq!(picture(top).unwrap(), before);
        fs::write(top.join(".git/hooks/pre-commit"), "x").unwrap();
        assert_ne!(picture(top).unwrap(), before);
    }

    #[test]
    fn a_secret_is_found_wherever_it_stands() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("deep")).unwrap();
        fs::write(top.path().join("deep/log"), b"\xff the secret is out").unwrap();
        assert!(holds(top.path(), "secret").unwrap());
        assert!(!holds(top.path(), "absent").unwrap());
    }
}
