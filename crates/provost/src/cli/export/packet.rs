//! Exports an accepted run as a control packet.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use provost_core::code::Code;
use provost_core::object::{Kind, Mode, Oid, sha256};
use provost_core::path::{RawPath, RepoPath};
use provost_formats::packet::{Document, Source, of_run};
use provost_host::git::Repository;
use serde::Serialize;

use super::{Export, Sealed};
use crate::answer::{Answered, Failure, Outcome};
use crate::cli::packet::signing_key;
use crate::output;
use crate::places::Places;

pub(super) fn run(export: &Export, place: &Places, run: &Sealed) -> Outcome {
    let Some(root) = &export.out else {
        let reason = "a packet is a directory; name it with --out";
        return Err(Failure::new(Code::UsageError, reason));
    };
    let run_id = &run.state.names.run_id;
    let accepted = run
        .state
        .finished
        .as_ref()
        .is_some_and(|verdict| verdict.allow);
    let (Some(captured), true) = (&run.state.captured, accepted) else {
        let reason = format!("{run_id} was not accepted, and a packet is only for accepted runs");
        return Err(Failure::new(Code::NotAccepted, reason));
    };
    let directory = root.join(run_id);
    if directory.exists() {
        let reason = format!("`{}` exists already", directory.display());
        return Err(Failure::new(Code::UsageError, reason));
    }
    let mut known = BTreeMap::new();
    let base = digests(&place.repo, &run.state.opened.base_tree, &mut known)?;
    let candidate = digests(&place.repo, &captured.tree, &mut known)?;
    let tree = place.repo.read_tree(&captured.tree)?;
    let document = |path: &String| {
        let node = RepoPath::try_from(path.as_str()).ok();
        let node = node.and_then(|path| tree.files.get(&RawPath::from(&path)));
        let source = match node.map(|node| place.repo.blob(&node.oid)) {
            None => Source::Missing,
            Some(Ok(bytes)) => Source::Bytes(bytes),
            Some(Err(error)) => Source::Unreadable(error.to_string()),
        };
        Document {
            path: path.clone(),
            source,
        }
    };
    let material = of_run::Material {
        state: &run.state,
        records: &run.records,
        trees: [base, candidate],
        log: &|name| run.read(name),
        docs: export.docs.iter().map(document).collect(),
    };
    let files = match of_run::compose(material, &signing_key()?) {
        Ok(files) => files,
        Err(verdict) => return Ok(verdict.into()),
    };
    write(&directory, &files)?;
    let exported = ExportedPacket {
        run_id,
        packet: &directory,
        phase_id: run_id,
        root,
    };
    Ok(exported.into())
}

#[derive(Serialize)]
struct ExportedPacket<'a> {
    run_id: &'a str,
    packet: &'a Path,
    phase_id: &'a str,
    #[serde(skip)]
    root: &'a Path,
}

impl Answered for ExportedPacket<'_> {
    fn text(&self) -> String {
        format!(
            "wrote {}\nnext: provost check packet --phase-id {} --packet-root {}\n",
            self.packet.display(),
            self.phase_id,
            self.root.display()
        )
    }
}

fn write(directory: &Path, files: &BTreeMap<&'static str, String>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::of(Code::HostFailed, &error).about(directory);
    output::unlinked(directory)?;
    fs::create_dir_all(directory).map_err(failed)?;
    for (name, text) in files {
        output::write(&directory.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// SHA-256 of every file of `tree`; `known` has the digests of objects that were read before.
fn digests(
    repo: &Repository,
    tree: &Oid,
    known: &mut BTreeMap<Oid, String>,
) -> Result<of_run::Digests, Failure> {
    let mut batch = repo.batch()?;
    let mut digests = of_run::Digests::new();
    for (path, node) in &repo.read_tree(tree)?.files {
        if node.mode == Mode::Gitlink {
            continue;
        }
        let path = RepoPath::try_from(path).map_err(|error| {
            let reason = format!("`{path}` {error}, so no packet can name it");
            Failure::new(Code::PacketRefused, reason)
        })?;
        if !known.contains_key(&node.oid) {
            let bytes = batch.one(&node.oid, Kind::Blob)?;
            known.insert(node.oid.clone(), sha256(&bytes));
        }
        let digest = known.get(&node.oid).cloned().unwrap_or_default();
        digests.insert(path.into(), digest);
    }
    Ok(digests)
}
