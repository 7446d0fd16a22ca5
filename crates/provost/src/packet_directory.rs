//! Finds and reads a control packet on disk, within bounds and never through a link.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use provost_core::bundle::key::PublicKey;
use provost_core::code::Code;
use provost_core::json::LARGEST;
use provost_core::path::RepoPath;
use provost_core::verdict::Verdict;
use provost_formats::packet::seal::{SEAL, Sealed, Stage};
use provost_formats::packet::{self, Document, Found, Packet, Source};

use provost_host::keys::{Keys, KeysError};
use provost_host::untrusted_files::{Below, ForeignError};

use crate::answer::Failure;

/// The default directory of packets.
pub(crate) const ROOT: &str = "artifacts/subagent_control";

/// The most names of a packet's directory that are listed.
const MOST_OTHERS: usize = 1000;

// Names a packet.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// The phase of the packet.
    #[arg(long, value_name = "ID")]
    pub(crate) phase_id: String,

    /// The directory that holds the packets.
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    packet_root: PathBuf,
}

/// The directory of a packet, in the repository whose root is the current directory.
pub(crate) struct PacketDirectory<'a> {
    pub(crate) which: &'a Which,
    repository: Below,
    /// The files of the packet, or why they cannot be read.
    files: Result<Below, ForeignError>,
    /// The packet, relative to the root of the repository; none if it lies outside.
    pub(crate) directory: Option<RepoPath>,
    /// The packet, as a path of the machine.
    pub(crate) place: PathBuf,
}

/// Why the directory of a packet cannot be used.
pub(crate) enum NoPacketDirectory {
    /// The packet is invalid, by this verdict.
    Refused(Box<Verdict>),
    /// The machine failed.
    Failed(Failure),
}

impl<'a> PacketDirectory<'a> {
    /// Opens the packet; it need not exist.
    pub(crate) fn open(which: &'a Which) -> Result<Self, NoPacketDirectory> {
        let refused = |verdict| NoPacketDirectory::Refused(Box::new(verdict));
        let below = packet::directory(&which.phase_id).map_err(refused)?;
        let root = &which.packet_root;
        let place = root.join(below.as_str());
        let repository = Below::new(Path::new(".")).map_err(|error| {
            NoPacketDirectory::Failed(Failure::of(Code::InputUnreadable, &error))
        })?;
        let directory = within(root, &below).map_err(NoPacketDirectory::Failed)?;
        let files = match &directory {
            // An agent may have written whatever lies in the repository.
            Some(directory) => repository.below(directory),
            None => Below::new(root).and_then(|root| root.below(&below)),
        };
        Ok(Self {
            which,
            repository,
            files,
            directory,
            place,
        })
    }

    pub(crate) fn packet(&self) -> Result<Packet<'a>, Failure> {
        let task_card = self.source(packet::TASK_CARD);
        let wanted = packet::wanted(&task_card).into_iter();
        let evidence = wanted.map(|(evidence, path)| Found {
            evidence,
            in_repository: taken(&self.repository, &path, LARGEST),
            in_packet: self.taken(&path, LARGEST),
            path,
        });
        Ok(Packet {
            phase_id: &self.which.phase_id,
            directory: self.directory.clone(),
            evidence: evidence.collect(),
            task_card,
            executor_report: self.source(packet::EXECUTOR_REPORT),
            validator_report: self.source(packet::VALIDATOR_REPORT),
            seal: Some(self.sealed()?),
        })
    }

    /// Reads the seal and the files that it may cover.
    pub(crate) fn sealed(&self) -> Result<Sealed, Failure> {
        Ok(Sealed {
            envelope: self.source(SEAL),
            keys: trusted()?,
            files: self.sealable(),
            others: self.others(),
        })
    }

    /// The names in the packet beside its seal and the files that a seal covers.
    fn others(&self) -> Vec<String> {
        let known = |name: &String| name == SEAL || Stage::Sealed.files().contains(&name.as_str());
        let names = match &self.files {
            Ok(files) => files.names(MOST_OTHERS),
            Err(_) => Ok(Vec::new()),
        };
        match names {
            Ok(names) => names.into_iter().filter(|name| !known(name)).collect(),
            Err(error) => vec![format!("the directory: {error}")],
        }
    }

    /// The files that a seal may cover.
    pub(crate) fn sealable(&self) -> BTreeMap<&'static str, Source> {
        let names = Stage::Sealed.files().iter();
        names.map(|name| (*name, self.source(name))).collect()
    }

    pub(crate) fn source(&self, name: &str) -> Source {
        let limit = match name {
            packet::TASK_CARD | packet::EXECUTOR_REPORT | packet::VALIDATOR_REPORT => {
                packet::LARGEST_YAML
            }
            _ => LARGEST,
        };
        match RepoPath::try_from(name) {
            Ok(path) => self.taken(&path, limit),
            Err(why) => Source::Unreadable(why.to_string()),
        }
    }

    fn taken(&self, path: &RepoPath, limit: usize) -> Source {
        match &self.files {
            Ok(files) => taken(files, path, limit),
            Err(error) => Source::Unreadable(format!("the packet: {error}")),
        }
    }

    pub(crate) fn document(&self, path: &str) -> Document {
        let source = match RepoPath::try_from(path) {
            Ok(path) => taken(&self.repository, &path, LARGEST),
            Err(why) => Source::Unreadable(why.to_string()),
        };
        Document {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let failed = |error: &ForeignError| {
            let place = self.place.join(name);
            let reason = format!("cannot write `{}`: {error}", place.display());
            Failure::new(Code::HostFailed, reason)
        };
        let files = self.files.as_ref().map_err(failed)?;
        files
            .write(name, text.as_bytes())
            .map_err(|error| failed(&error))
    }
}

/// The packet's directory relative to the current one, if it lies below.
fn within(root: &Path, below: &RepoPath) -> Result<Option<RepoPath>, Failure> {
    let unreadable = |error| Failure::of(Code::InputUnreadable, &error);
    let here = std::env::current_dir().map_err(unreadable)?;
    let there = std::path::absolute(root).map_err(unreadable)?;
    let climbs = there.components().any(|part| part == Component::ParentDir);
    let path = there.strip_prefix(&here).ok().filter(|_| !climbs);
    let path = path.map(|path| path.join(below.as_str()));
    Ok(path.and_then(|path| RepoPath::try_from(path.to_str()?).ok()))
}

fn taken(directory: &Below, path: &RepoPath, limit: usize) -> Source {
    match directory.read(path, limit) {
        Ok(bytes) => Source::Bytes(bytes),
        Err(ForeignError::Missing) => Source::Missing,
        Err(error) => Source::Unreadable(error.to_string()),
    }
}

/// The trusted keys; none without a directory for keys.
fn trusted() -> Result<Vec<PublicKey>, Failure> {
    match Keys::find().and_then(|keys| keys.trusted()) {
        Ok(keys) => Ok(keys.iter().map(|named| named.key).collect()),
        Err(KeysError::NoPlace) => Ok(Vec::new()),
        Err(error) => Err(Failure::of(Code::KeyUnsafe, &error)),
    }
}
