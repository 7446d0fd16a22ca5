//! Names the files of a bundle that more than one part of the program has to know.

/// The digests of everything that was sealed.
pub const MANIFEST: &str = "manifest.json";
/// The ledger of the run.
pub const LEDGER: &str = "events.jsonl";
/// The signed statement; once it is there the run is sealed.
pub const ATTESTATION: &str = "attestation.dsse.json";
/// The ledger of what came after the seal.
pub const AFTER: &str = "after.jsonl";
/// The lock of the driver, which holds who drove last.
pub const DRIVER_LOCK: &str = "driver.lock";

/// What lies in the directory of a run and cannot be named in its manifest: the manifest itself,
/// what is signed over it, what comes after the seal, and the lock.
///
/// Everything here is looked into by verification, because no digest covers it.
pub const BESIDE: [&str; 4] = [MANIFEST, ATTESTATION, AFTER, DRIVER_LOCK];

/// The most bytes a change has, before and after it together.
///
/// Its patch is a file of the bundle, and everybody who verifies the bundle reads it.
pub const MOST_CHANGED: u64 = 48 << 20;
/// The largest file of a bundle: a patch has up to twice the bytes of its change, and names.
pub const LARGEST_FILE: u64 = 3 * MOST_CHANGED;
/// What all files of a bundle have together: the patch lies there three times, beside its objects.
pub const MOST_BYTES: u64 = 5 * LARGEST_FILE;

/// The directory of files that are written after the seal, each named by a record of [`AFTER`].
pub const LATER: &str = "after/";

/// Whether `name` is a file that may be written after the seal.
pub fn is_later(name: &str) -> bool {
    name.starts_with(LATER)
}
