//! The signing key of this user, which `provost key` made, and the time.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use provost_core::code::Code;
use provost_evidence::key::SigningKey;

use crate::failure::{FleetFailure, FleetResult, host};
use crate::settings::user_directory;

/// The largest key file that is read, in bytes.
const LARGEST: u64 = 4096;

/// The directory of keys, by the rule of `provost key`.
fn directory() -> FleetResult<PathBuf> {
    if let Some(path) = std::env::var_os("PROVOST_KEYS") {
        return Ok(path.into());
    }
    Ok(user_directory("XDG_CONFIG_HOME", ".config")?.join("provost/keys"))
}

/// The key that signs here; only its owner may be able to read it.
pub fn signing_key() -> FleetResult<SigningKey> {
    let path = directory()?.join("signing.key");
    let shown = path.display().to_string();
    let unsafe_key = |reason: String| {
        FleetFailure::new(Code::KeyUnsafe, reason).hint("provost key new makes a key")
    };
    let meta = path.symlink_metadata();
    let meta = meta.map_err(|error| unsafe_key(format!("`{shown}` cannot be read: {error}")))?;
    let own = meta.uid() == rustix::process::geteuid().as_raw();
    if !meta.is_file() || !own || meta.mode() & 0o077 != 0 {
        let reason = format!("`{shown}` is not a file that only you can read");
        return Err(unsafe_key(reason));
    }
    let bytes = provost_fs::regular_file::read(&path, LARGEST)
        .map_err(|error| unsafe_key(format!("`{shown}` cannot be read: {error}")))?
        .unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    SigningKey::parse(text.lines().next().unwrap_or_default())
        .map_err(|error| unsafe_key(format!("`{shown}` holds no key: {error}")))
}

/// Milliseconds since 1970, by the clock of this machine; `PROVOST_FLEET_CLOCK_OFFSET_MS` moves it,
/// to try what a wrong clock does.
pub fn now() -> FleetResult<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.ok().and_then(|it| i64::try_from(it.as_millis()).ok());
    let offset = std::env::var("PROVOST_FLEET_CLOCK_OFFSET_MS").ok();
    let offset = offset
        .and_then(|text| text.parse::<i64>().ok())
        .unwrap_or_default();
    let now = millis.and_then(|millis| millis.checked_add(offset));
    now.ok_or_else(|| FleetFailure::new(Code::HostFailed, "the clock of this machine is not set"))
}

/// Sixteen random bytes in hexadecimal.
pub fn nonce() -> FleetResult<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| host("getting random bytes")(std::io::Error::other(error)))?;
    Ok(provost_core::object::hex(&bytes))
}
