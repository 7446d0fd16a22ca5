//! Speaks to an ssh-agent: which Ed25519 keys it has, and signatures by them.
//!
//! The protocol is draft-miller-ssh-agent: a length of four bytes, a type of one byte, its content.

use std::env;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use provost_core::bundle::key::PublicKey;
use provost_core::person_key::{self, SSH_ED25519, put, ssh_blob, take};

use super::person::PersonKeyError;

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

/// The largest answer that is read.
const LARGEST: usize = 256 * 1024;

/// How long an agent may take; it may ask its user to confirm.
const PATIENCE: Duration = Duration::from_mins(1);

/// An ssh-agent that a user runs.
pub(super) struct SshAgent {
    stream: UnixStream,
}

/// A key that an agent has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentKey {
    pub(super) key: PublicKey,
    pub(super) comment: String,
}

impl SshAgent {
    /// The agent that `SSH_AUTH_SOCK` names.
    pub(super) fn connect() -> Result<Self, PersonKeyError> {
        let place = env::var_os("SSH_AUTH_SOCK").filter(|it| !it.is_empty());
        let place = PathBuf::from(place.ok_or(PersonKeyError::NoAgent)?);
        let lost = |source| PersonKeyError::Agent {
            path: place.clone(),
            source,
        };
        let stream = UnixStream::connect(&place).map_err(lost)?;
        let limited = stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        limited.map_err(lost)?;
        Ok(Self { stream })
    }

    /// The Ed25519 keys that it has.
    pub(super) fn keys(&mut self) -> Result<Vec<AgentKey>, PersonKeyError> {
        let answer = self.call(&[REQUEST_IDENTITIES], IDENTITIES)?;
        identities(&answer).ok_or(PersonKeyError::AgentProtocol)
    }

    /// The signature of `key` over `bytes`.
    pub(super) fn sign(
        &mut self,
        key: &PublicKey,
        bytes: &[u8],
    ) -> Result<[u8; 64], PersonKeyError> {
        let mut request = vec![SIGN_REQUEST];
        put(&mut request, &ssh_blob(key));
        put(&mut request, bytes);
        request.extend(0_u32.to_be_bytes());
        let answer = self.call(&request, SIGN_RESPONSE)?;
        signature(&answer).ok_or(PersonKeyError::AgentProtocol)
    }

    /// Sends `request`; the content of its answer, which has to be of the type `wanted`.
    fn call(&mut self, request: &[u8], wanted: u8) -> Result<Vec<u8>, PersonKeyError> {
        let mut message = Vec::new();
        put(&mut message, request);
        let mut length = [0; 4];
        let mut answer = Vec::new();
        self.stream
            .write_all(&message)
            .and_then(|()| self.stream.read_exact(&mut length))
            .map_err(PersonKeyError::AgentLost)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length == 0 || length > LARGEST {
            return Err(PersonKeyError::AgentProtocol);
        }
        answer.resize(length, 0);
        self.stream
            .read_exact(&mut answer)
            .map_err(PersonKeyError::AgentLost)?;
        let (kind, content) = answer.split_first().ok_or(PersonKeyError::AgentProtocol)?;
        if *kind == wanted {
            Ok(content.to_vec())
        } else {
            Err(PersonKeyError::AgentRefused)
        }
    }
}

/// The keys of an answer; keys of other kinds are passed over.
fn identities(answer: &[u8]) -> Option<Vec<AgentKey>> {
    let (count, mut rest) = answer.split_first_chunk::<4>()?;
    let mut keys = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let (blob, after) = take(rest)?;
        let (comment, after) = take(after)?;
        rest = after;
        if let Some(key) = person_key::of_ssh_blob(blob) {
            let comment = String::from_utf8_lossy(comment).into_owned();
            keys.push(AgentKey { key, comment });
        }
    }
    rest.is_empty().then_some(keys)
}

/// The bytes of a signature of the kind that Ed25519 keys make.
fn signature(answer: &[u8]) -> Option<[u8; 64]> {
    let (blob, rest) = take(answer)?;
    let (kind, after) = take(blob)?;
    let (bytes, end) = take(after)?;
    let whole = rest.is_empty() && end.is_empty() && kind == SSH_ED25519.as_bytes();
    whole.then(|| bytes.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_or_too_long_is_none() {
        let key = PublicKey::from_bytes(&super::super::person::tests::POINT).unwrap();
        let mut answer = 2_u32.to_be_bytes().to_vec();
        put(&mut answer, &ssh_blob(&key));
        put(&mut answer, b"ann");
        put(&mut answer, b"another kind");
        put(&mut answer, b"");
        let comment = "ann".to_owned();
        assert_eq!(identities(&answer), Some(vec![AgentKey { key, comment }]));
        for cut in 0..answer.len() {
            assert_eq!(identities(&answer[..cut]), None, "{cut}");
        }
        answer.push(0);
        assert_eq!(identities(&answer), None);

        let mut blob = Vec::new();
        put(&mut blob, SSH_ED25519.as_bytes());
        put(&mut blob, &[7; 64]);
        let mut answer = Vec::new();
        put(&mut answer, &blob);
        assert_eq!(signature(&answer), Some([7; 64]));
        for cut in 0..answer.len() {
            assert_eq!(signature(&answer[..cut]), None, "{cut}");
        }
    }
}
