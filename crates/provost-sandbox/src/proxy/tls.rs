//! Speaks TLS to a server, for requests that a secret is added to outside the sandbox.
//!
//! Only these need it: all other encryption passes through tunnels, from end to end.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use provost_core::net::endpoint::Host;
use rustix::event::PollFlags;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::timeouts::{Broken, Stop};

/// Names a file of certificates to use instead of the system's, as for other programs.
const VARIABLE: &str = "SSL_CERT_FILE";
/// Where systems keep the certificates that they trust.
const FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The files that may hold the certificates that this machine trusts; the first that exists counts.
pub(super) fn trusted_files() -> Vec<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(file) => vec![file.into()],
        None => FILES.map(PathBuf::from).into(),
    }
}

/// The TLS configuration, with the certificates in the first of `files` that exists.
pub(super) fn config(files: &[PathBuf]) -> io::Result<Arc<ClientConfig>> {
    let missing = || io::Error::other("there is no file of trusted certificates");
    let file = files.iter().find(|file| file.is_file());
    let bytes = fs::read(file.ok_or_else(missing)?)?;
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be parsed is skipped.
    let certificates = CertificateDer::pem_slice_iter(&bytes).filter_map(Result::ok);
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err(missing());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// An encrypted connection; its handshake is over.
#[derive(Debug)]
pub(super) struct Tls(StreamOwned<ClientConnection, TcpStream>);

impl Tls {
    /// Does the handshake with the server at the other end of `stream`, which has to be `host`.
    pub(super) fn connect(
        config: &Arc<ClientConfig>,
        host: &Host,
        mut stream: TcpStream,
        (until, stop): (Instant, &Stop),
    ) -> Result<Self, Broken> {
        let name = match host {
            Host::Localhost => ServerName::try_from("localhost".to_owned()),
            Host::Name(name) => ServerName::try_from(name.as_str().to_owned()),
            Host::Address(address) => Ok(ServerName::from(*address)),
        };
        let name = name.map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(config), name);
        let mut connection = connection.map_err(io::Error::other)?;
        while connection.is_handshaking() || connection.wants_write() {
            match connection.complete_io(&mut stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let flags = if connection.wants_write() {
                        PollFlags::IN | PollFlags::OUT
                    } else {
                        PollFlags::IN
                    };
                    stop.wait(&[(stream.as_fd(), flags)], Some(until))?;
                }
                Err(error) => return Err(Broken::Failed(error)),
            }
        }
        Ok(Self(StreamOwned::new(connection, stream)))
    }

    /// Whether encrypted bytes wait to be written.
    pub(super) fn wants_write(&self) -> bool {
        self.0.conn.wants_write()
    }

    /// Writes waiting encrypted bytes, as many as possible without blocking.
    pub(super) fn write_waiting(&mut self) -> io::Result<usize> {
        self.0.conn.write_tls(&mut self.0.sock)
    }
}

impl Read for Tls {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl AsFd for Tls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.sock.as_fd()
    }
}
