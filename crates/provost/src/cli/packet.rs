//! `provost packet`: makes control packets from measured results.
//!
//! The order is publish, work, report, seal. Each stage ends with a signed list of the files so
//! far, and the next stage first checks the files against it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use provost_core::bundle::key::SigningKey;
use provost_core::code::Code;
use provost_core::contract::{self, document::Document as Contract};
use provost_core::exit::Exit;
use provost_core::gate::command::{self, CommandPolicy, Trust};
use provost_core::path::RepoPath;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;
use provost_formats::packet::compose::{self, Ran, Task};
use provost_formats::packet::seal::{self, AFTER, BEFORE, LOG, SEAL, Sealed, Stage};
use provost_formats::packet::{
    self, EXECUTOR_REPORT, Snapshot, Source, Strictness, TASK_CARD, VALIDATOR_REPORT,
};
use provost_host::inventory::{self, Files};
use provost_host::keys::Keys;
use provost_host::{clock, ids, packet_commands};
use serde::Serialize;

use super::duration::seconds;
use super::snapshot;
use crate::answer::{Answer, Answered, Failure, Outcome};
use crate::output;
use crate::packet_directory::{NoPacketDirectory, PacketDirectory, Which};
use crate::places::cache_root;
use crate::show::print_message;
use crate::{input, show};

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Packet {
    /// Write the task card, and record the workspace before the work.
    Publish(Publish),
    /// Run the acceptance commands in a sandbox, record the workspace, and write the report.
    Report(Report),
    /// Check the packet, write the validator report, and seal the packet.
    Seal(SealPacket),
}

#[derive(Args)]
pub(super) struct Publish {
    #[command(flatten)]
    which: Which,

    /// A goal of the phase; repeat for more.
    #[arg(long, value_name = "ID")]
    goal: Vec<String>,

    /// A path or glob that may be changed; repeat for more.
    #[arg(long, value_name = "PATH")]
    allow: Vec<String>,

    /// A command that judges the work; repeat for more.
    #[arg(long, value_name = "CMD")]
    accept: Vec<String>,

    /// A glob of files that change on their own; repeat for more.
    #[arg(long, value_name = "GLOB")]
    noise: Vec<String>,

    /// A contract to take paths and commands from: JSON, YAML or TOML.
    #[arg(short = 'f', long, value_name = "FILE")]
    contract: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct Report {
    #[command(flatten)]
    which: Which,

    /// Time limit of each command, such as 90s, 20m or 2h.
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = seconds)]
    timeout: u64,
}

#[derive(Args)]
pub(super) struct SealPacket {
    #[command(flatten)]
    which: Which,

    /// A document that the phase must have updated; repeat for more. A phase without one fails.
    #[arg(long, value_name = "PATH", required = true)]
    docs: Vec<String>,
}

/// Why a step stops early.
enum Stop {
    Refused(Verdict),
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Verdict> for Stop {
    fn from(verdict: Verdict) -> Self {
        Self::Refused(verdict)
    }
}

impl From<NoPacketDirectory> for Stop {
    fn from(none: NoPacketDirectory) -> Self {
        match none {
            NoPacketDirectory::Refused(verdict) => Self::Refused(*verdict),
            NoPacketDirectory::Failed(failure) => Self::Failed(failure),
        }
    }
}

pub(super) fn run(packet: &Packet) -> Outcome {
    let done = match packet {
        Packet::Publish(publish) => self::publish(publish),
        Packet::Report(report) => self::report(report),
        Packet::Seal(seal) => self::conclude(seal),
    };
    match done {
        Ok(answer) => Ok(answer),
        Err(Stop::Refused(verdict)) => Ok(verdict.into()),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

fn publish(publish: &Publish) -> Result<Answer, Stop> {
    let folder = PacketDirectory::open(&publish.which)?;
    let directory = inside(&folder)?;
    if folder.source(TASK_CARD) != Source::Missing || folder.source(SEAL) != Source::Missing {
        let reason = format!("the packet exists already: `{}`", folder.place.display());
        return Err(Failure::new(Code::UsageError, reason).into());
    }
    let task = task(publish, directory)?;
    let card = compose::task_card(&task)?;
    let key = signing_key()?;
    output::unlinked(&folder.place)?;
    fs::create_dir_all(&folder.place).map_err(|error| {
        let reason = format!("`{}`: {error}", folder.place.display());
        Failure::new(Code::HostFailed, reason)
    })?;
    // Opened again, because the directory exists only now.
    let folder = PacketDirectory::open(&publish.which)?;
    let (before, _) = record(&folder)?;
    folder.write(BEFORE, &before.render())?;
    folder.write(TASK_CARD, &card)?;
    sealed(&folder, Stage::Published, &key)?;
    let published = PublishedPacket {
        packet: folder.place.display().to_string(),
        files: before.files.len(),
        published_at: task.published_at,
    };
    Ok(published.into())
}

#[derive(Serialize)]
struct PublishedPacket {
    packet: String,
    /// How many files were recorded.
    files: usize,
    published_at: String,
}

impl Answered for PublishedPacket {
    fn text(&self) -> String {
        let files = counted(self.files, "file");
        format!(
            "published {}: {files} recorded before the work",
            self.packet
        )
    }
}

/// The task that the flags and the contract describe.
fn task(publish: &Publish, directory: RepoPath) -> Result<Task, Stop> {
    let mut task = Task {
        phase_id: publish.which.phase_id.clone(),
        goals: publish.goal.clone(),
        allowed: publish.allow.clone(),
        noise: publish.noise.clone(),
        commands: publish.accept.clone(),
        published_at: clock::now(),
        directory: Some(directory),
    };
    let policy = CommandPolicy::shipped().map_err(|error| Failure::of(Code::Bug, &error))?;
    for command in &publish.accept {
        let verdict = command::judge(command, &policy, Trust::TypedByPerson);
        if !verdict.allow {
            return Err(verdict.into());
        }
    }
    if let Some(file) = &publish.contract {
        let document = input::contract(file)?.document;
        let contract = contract::resolve(document, &policy, Trust::FromFile)
            .map_err(|problems| contract::judge(&problems))?;
        let Contract {
            task_id,
            allowed_paths,
            acceptance_tests,
            ..
        } = contract.document;
        task.allowed.extend(allowed_paths);
        let commands = acceptance_tests.into_iter().map(|test| test.cmd);
        task.commands.extend(commands);
        if task.goals.is_empty() {
            task.goals.push(task_id);
        }
    }
    Ok(task)
}

fn report(report: &Report) -> Result<Answer, Stop> {
    let folder = PacketDirectory::open(&report.which)?;
    let phase_id = report.which.phase_id.as_str();
    inside(&folder)?;
    // A report may be repeated after more work, until the packet is sealed.
    let stages = [Stage::Published, Stage::Reported];
    published(&folder, &stages)?;
    let key = signing_key()?;
    let commands = compose::commands(&folder.source(TASK_CARD), phase_id)?;
    let (after, files) = record(&folder)?;
    let rows = try_commands(&commands, &files, report.timeout)?;
    let (again, _) = record(&folder)?;
    if again.files != after.files {
        let reason = "the workspace changed while its commands ran; report again";
        return Err(Failure::new(Code::TreeChanged, reason).into());
    }
    folder.write(AFTER, &after.render())?;
    folder.write(LOG, &compose::log(&rows))?;
    let changed = compose::changed_files(&folder.packet()?)?;
    let outside = compose::out_of_scope(&folder.source(TASK_CARD), phase_id, &changed);
    let text = compose::executor_report(
        phase_id,
        &folder.source(TASK_CARD),
        &changed,
        &rows,
        &clock::now(),
    );
    folder.write(EXECUTOR_REPORT, &text)?;
    sealed(&folder, Stage::Reported, &key)?;
    let command = |row: Ran| ReportedCommand {
        command: row.command,
        exit_code: row.exit_code,
    };
    let reported = ReportedPacket {
        packet: folder.place.display().to_string(),
        changed_files: changed,
        out_of_scope: outside,
        commands: rows.into_iter().map(command).collect(),
    };
    Ok(reported.into())
}

#[derive(Serialize)]
struct ReportedPacket {
    packet: String,
    changed_files: BTreeSet<String>,
    out_of_scope: Vec<String>,
    commands: Vec<ReportedCommand>,
}

#[derive(Serialize)]
struct ReportedCommand {
    command: String,
    exit_code: i32,
}

impl Answered for ReportedPacket {
    fn exit(&self) -> Exit {
        if self.commands.iter().all(|row| row.exit_code == 0) {
            Exit::Yes
        } else {
            Exit::No
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} changed\n", counted(self.changed_files.len(), "file"));
        for path in &self.out_of_scope {
            let path = show::one_line(path);
            text +=
                &format!("warning: `{path}` is outside allowed_paths; the packet will not pass\n");
        }
        for ReportedCommand { command, exit_code } in &self.commands {
            text += &format!("exit {exit_code}: {}\n", show::one_line(command));
        }
        text
    }
}

/// Runs the acceptance commands on a copy of exactly `files`.
fn try_commands(commands: &[String], files: &Files, seconds: u64) -> Result<Vec<Ran>, Stop> {
    let mut argvs = Vec::new();
    for text in commands {
        let argv = command::split(text)
            .map_err(|flaw| Verdict::deny(Code::CommandRefused, format!("`{text}`: {flaw}")))?;
        argvs.push(argv);
        print_message(&format!("running in a sandbox: {}", show::one_line(text)));
    }
    let name = ids::trace_id().map_err(|error| Failure::of(Code::HostFailed, &error))?;
    let cache = cache_root().map_err(|error| Failure::of(Code::HostFailed, &error))?;
    let scratch = cache.join("packets").join(name);
    let here = Path::new(".");
    let tried = packet_commands::run(here, files, &scratch, &argvs, seconds)
        .map_err(|error| Failure::of(error.code(), &error))?;
    let rows = commands.iter().zip(tried).map(|(command, tried)| Ran {
        command: command.clone(),
        exit_code: tried.exit_code,
        started_at: tried.started_at,
        ended_at: tried.ended_at,
        stdout_tail: tried.stdout_tail,
        stderr_tail: tried.stderr_tail,
    });
    Ok(rows.collect())
}

fn conclude(seal: &SealPacket) -> Result<Answer, Stop> {
    let folder = PacketDirectory::open(&seal.which)?;
    published(&folder, &[Stage::Reported])?;
    let key = signing_key()?;
    let reported = match folder.source(AFTER) {
        Source::Bytes(bytes) => Snapshot::parse(AFTER, &bytes)?,
        Source::Missing | Source::Unreadable(_) => Snapshot::default(),
    };
    let (now, _) = record(&folder)?;
    if now.files != reported.files {
        let reason = "the workspace is not the one that was reported; report again";
        return Err(Failure::new(Code::TreeChanged, reason).into());
    }
    let docs: Vec<_> = seal.docs.iter().map(|path| folder.document(path)).collect();
    for document in &docs {
        // A seal is final, so a mistyped path must not be sealed.
        let why = match &document.source {
            Source::Bytes(_) => continue,
            Source::Missing => "does not exist".to_owned(),
            Source::Unreadable(why) => why.clone(),
        };
        let reason = format!("--docs `{}` {why}; nothing was sealed", document.path);
        return Err(Failure::new(Code::InputUnreadable, reason).into());
    }
    let text = compose::validator_report(&folder.packet()?, &docs, &clock::now());
    folder.write(VALIDATOR_REPORT, &text)?;
    let envelope = envelope(&folder, Stage::Sealed, &key)?;
    let mut judged = folder.packet()?;
    judged.seal = Some(Sealed {
        envelope: Source::Bytes(envelope.clone().into_bytes()),
        ..folder.sealed()?
    });
    // A seal is final: a packet that fails stays reported, and can be sealed once it is corrected.
    let strict = packet::judge(&judged, Strictness::Strict, None);
    if strict.allow {
        folder.write(SEAL, &envelope)?;
        let packet = folder.place.display().to_string();
        let status = PacketStatus::Pass;
        return Ok(SealedPacket { packet, status }.into());
    }
    Err(Stop::Refused(strict))
}

#[derive(Serialize)]
struct SealedPacket {
    packet: String,
    status: PacketStatus,
}

/// Only a packet that passes is sealed.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum PacketStatus {
    Pass,
}

impl Answered for SealedPacket {
    fn text(&self) -> String {
        format!("sealed {}: pass", self.packet)
    }
}

/// The packet's directory in the repository, where a packet that is made must lie.
fn inside(folder: &PacketDirectory<'_>) -> Result<RepoPath, Failure> {
    folder.directory.clone().ok_or_else(|| {
        let reason = format!(
            "`{}` lies outside the current directory",
            folder.place.display()
        );
        Failure::new(Code::UsageError, reason).hint("change to the root of the repository")
    })
}

/// Checks that the packet is at one of `stages`, and that its sealed files are unchanged.
fn published(folder: &PacketDirectory<'_>, stages: &[Stage]) -> Result<(), Stop> {
    let sealed = folder.sealed()?;
    let card = folder.source(TASK_CARD);
    if sealed.envelope == Source::Missing && card == Source::Missing {
        let phase = &folder.which.phase_id;
        let reason = format!("there is no packet `{}`", folder.place.display());
        let hint = format!(
            "publish it first: provost packet publish --phase-id {} --goal ID --allow PATH \
             --accept CMD",
            command::quote(phase)
        );
        return Err(Failure::new(Code::NotFound, reason).hint(hint).into());
    }
    seal::verify(&sealed, &folder.which.phase_id, stages)?;
    Ok(())
}

/// Seals the files of `stage`.
fn sealed(folder: &PacketDirectory<'_>, stage: Stage, key: &SigningKey) -> Result<(), Failure> {
    folder.write(SEAL, &envelope(folder, stage, key)?)
}

/// The seal over the files of `stage`.
fn envelope(
    folder: &PacketDirectory<'_>,
    stage: Stage,
    key: &SigningKey,
) -> Result<String, Failure> {
    let files: BTreeMap<_, _> = folder.sealable();
    let seal = seal::seal(&folder.which.phase_id, stage, &files, key);
    seal.ok_or_else(|| {
        let reason = "a file of the packet vanished while it was sealed";
        Failure::new(Code::HostFailed, reason)
    })
}

/// A snapshot of the workspace, without the packet itself.
fn record(folder: &PacketDirectory<'_>) -> Result<(Snapshot, Files), Failure> {
    // Without the cache: this is evidence, and the author of the work may write there.
    let mut files = inventory::take(Path::new("."), None)
        .map_err(|error| Failure::of(Code::HostFailed, &error))?
        .into_files();
    if let Some(directory) = &folder.directory {
        files.retain(|path, _| !path.is_within(directory) && !is_sibling(path, directory));
    }
    Ok((snapshot::of(files.iter()), files))
}

/// Whether `path` is a file of another packet beside the one in `directory`.
///
/// Another phase may be published, reported or sealed meanwhile. Only the names of a packet's files
/// count, so that nothing else can be hidden there.
fn is_sibling(path: &RepoPath, directory: &RepoPath) -> bool {
    let Some((root, _)) = directory.as_str().rsplit_once('/') else {
        return false;
    };
    let below = path.as_str().strip_prefix(root);
    let below = below.and_then(|rest| rest.strip_prefix('/')?.split_once('/'));
    below.is_some_and(|(_, name)| name == SEAL || Stage::Sealed.files().contains(&name))
}

pub(super) fn signing_key() -> Result<SigningKey, Failure> {
    let unsafe_key = |error: provost_host::keys::KeysError| Failure::of(Code::KeyUnsafe, &error);
    let here = std::env::current_dir().map_err(|error| Failure::of(Code::HostFailed, &error))?;
    let keys = Keys::find().map_err(unsafe_key)?;
    let keys = keys.outside(&here).map_err(unsafe_key)?;
    let (key, _) = keys
        .outside_repository_around(&here)
        .and_then(|keys| keys.load_or_create())
        .map_err(unsafe_key)?;
    Ok(key)
}
