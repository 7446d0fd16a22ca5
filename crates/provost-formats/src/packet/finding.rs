//! Collects the findings about a packet.

use std::fmt;

use provost_core::document::yaml;
use provost_core::json::Node;
use provost_core::schema::read::FormatReader;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{PacketDetails, Source, Strictness, refuse};

/// The most findings that are listed; a hostile log could have a million.
const MOST: usize = 200;

/// The findings, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Findings {
    broken: Rows,
    doubtful: Rows,
}

/// One finding, in words `path: problem`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PacketFinding {
    /// The file, and the field if there is one.
    path: String,
    file: String,
    pub(super) field: String,
    problem: String,
}

impl fmt::Display for PacketFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.problem)
    }
}

#[derive(Debug, Default)]
struct Rows {
    listed: Vec<PacketFinding>,
    count: usize,
}

impl Rows {
    fn add(&mut self, file: &str, field: &str, problem: &str) {
        self.count += 1;
        if self.listed.len() < MOST {
            let path = if field.is_empty() {
                file.to_owned()
            } else {
                format!("{file}: {field}")
            };
            self.listed.push(PacketFinding {
                path,
                file: file.to_owned(),
                field: field.to_owned(),
                problem: problem.to_owned(),
            });
        }
    }

    fn append(&mut self, other: Self) {
        self.count += other.count;
        self.listed.extend(other.listed);
        self.listed.truncate(MOST);
    }
}

impl Findings {
    /// The findings about `file`, which are added to these.
    pub(super) fn of<'f>(&'f mut self, file: &'f str) -> FileFindings<'f> {
        FileFindings {
            file,
            findings: self,
        }
    }

    /// Adds a broken rule of the format.
    pub(super) fn add(&mut self, file: &str, field: &str, problem: impl AsRef<str>) {
        self.broken.add(file, field, problem.as_ref());
    }

    /// Adds what the text of the format permits and the strict profile refuses.
    pub(super) fn doubt(&mut self, file: &str, field: &str, problem: impl AsRef<str>) {
        self.doubtful.add(file, field, problem.as_ref());
    }

    pub(super) fn append(&mut self, other: Self) {
        self.broken.append(other.broken);
        self.doubtful.append(other.doubtful);
    }

    /// `value`, if it could be read and no rule of the `profile` is broken.
    pub(super) fn settle<T>(&self, value: Option<T>, profile: Strictness) -> Result<T, Verdict> {
        value
            .filter(|_| self.holds(profile))
            .ok_or_else(|| refuse(self, profile, PacketDetails::default()))
    }

    pub(super) fn count(&self, profile: Strictness) -> usize {
        match profile {
            Strictness::Literal => self.broken.count,
            Strictness::Strict => self.broken.count + self.doubtful.count,
        }
    }

    pub(super) fn holds(&self, profile: Strictness) -> bool {
        self.count(profile) == 0
    }

    /// The findings that are listed.
    pub(super) fn rows(&self, profile: Strictness) -> Vec<PacketFinding> {
        let mut rows = self.broken.listed.clone();
        if profile == Strictness::Strict {
            rows.extend(self.doubtful.listed.iter().cloned());
        }
        rows.truncate(MOST);
        rows
    }

    /// What the strict profile would refuse.
    pub(super) fn warnings(&self) -> &[PacketFinding] {
        &self.doubtful.listed
    }
}

/// The findings about one file.
pub(super) struct FileFindings<'f> {
    file: &'f str,
    findings: &'f mut Findings,
}

impl FileFindings<'_> {
    /// Adds a broken rule of the format.
    pub(super) fn add(&mut self, field: &str, problem: impl AsRef<str>) {
        self.findings.add(self.file, field, problem);
    }

    /// Adds what only the strict profile refuses.
    pub(super) fn doubt(&mut self, field: &str, problem: impl AsRef<str>) {
        self.findings.doubt(self.file, field, problem);
    }

    /// The bytes of a required file, which `field` names.
    pub(super) fn bytes<'s>(&mut self, source: &'s Source, field: &str) -> Option<&'s [u8]> {
        match source {
            Source::Bytes(bytes) => return Some(bytes),
            Source::Missing => self.add(field, "is missing"),
            Source::Unreadable(why) => self.add(field, format!("cannot be read: {why}")),
        }
        None
    }

    /// Reads a YAML file as far as it matches its format.
    pub(super) fn read_yaml<T: JsonSchema + DeserializeOwned>(
        &mut self,
        source: &Source,
        format: &FormatReader<T>,
    ) -> Option<T> {
        match yaml::parse(self.bytes(source, "")?) {
            Ok(value) if value.is_object() => self.read(&Node::from(value), format, ""),
            Ok(_) => {
                self.add("", "is not a YAML mapping");
                None
            }
            Err(error) => {
                let problem = format!("is not YAML without duplicate keys: {error}");
                self.add("", problem);
                None
            }
        }
    }

    /// Reads `node` as far as it matches its format; `prefix` goes before the names of its fields.
    pub(super) fn read<T: JsonSchema + DeserializeOwned>(
        &mut self,
        node: &Node<'_>,
        format: &FormatReader<T>,
        prefix: &str,
    ) -> Option<T> {
        let partly = format.read_partly(node);
        for one in &partly.broken {
            self.add(&field(prefix, &one.path), &one.problem);
        }
        for one in &partly.doubtful {
            self.doubt(&field(prefix, &one.path), &one.problem);
        }
        if partly.read.is_none() && partly.broken.is_empty() {
            self.add(&field(prefix, ""), "cannot be read");
        }
        partly.read
    }

    /// Checks that the file names the phase that is judged.
    pub(super) fn phase(&mut self, named: Option<&str>, phase_id: &str) {
        if let Some(text) = named
            && text.trim() != phase_id
        {
            self.add("phase_id", format!("is `{text}`, not `{phase_id}`"));
        }
    }
}

/// The name of the field at `pointer`, as in `checks[2].pass`.
fn field(prefix: &str, pointer: &str) -> String {
    let mut name = String::new();
    for part in pointer.split('/').skip(1) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            name += &format!("[{part}]");
        } else {
            let dot = if name.is_empty() { "" } else { "." };
            name += &format!("{dot}{}", part.replace("~1", "/").replace("~0", "~"));
        }
    }
    match name.as_str() {
        "" => prefix.trim_end_matches([':', '.', ' ']).to_owned(),
        _ => format!("{prefix}{name}"),
    }
}
