//! Snapshots of a workspace: the digest of every file.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use provost_core::json;
use provost_core::schema::read::FormatReader;
use provost_core::text_schema;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::finding::{FileFindings, Findings};
use super::text::Moment;
use super::{Strictness, rule};

/// `workspace_before.json` and `workspace_after.json`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct WorkspaceSnapshot<'a> {
    #[schemars(with = "SnapshotVersion")]
    pub schema_version: Option<SnapshotVersion>,
    #[schemars(with = "Moment")]
    pub captured_at: Option<Moment>,
    /// The SHA-256 of every file, by its path from the root of the repository.
    #[schemars(with = "BTreeMap<String, FileDigest>")]
    pub files: Option<BTreeMap<Cow<'a, str>, String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SnapshotVersion {
    #[serde(rename = "subagent_workspace_snapshot_v1")]
    V1,
}

enum FileDigest {}

text_schema!(FileDigest, {
    "type": "string", "x-strict": { "pattern": "^[0-9A-Fa-f]{64}$" }
});

static SNAPSHOT: FormatReader<WorkspaceSnapshot<'static>> = FormatReader::new();

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was taken; `None` if the file does not say it as text.
    pub captured_at: Option<String>,
    /// The SHA-256 of every file in lower case, by its path from the root of the repository.
    pub files: BTreeMap<String, String>,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Only in the later one.
    pub added: BTreeSet<String>,
    /// In both, with other bytes.
    pub changed: BTreeSet<String>,
    /// Only in the earlier one.
    pub removed: BTreeSet<String>,
}

impl Snapshot {
    /// Reads a snapshot called `file`; the verdict lists everything that is wrong with it.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, Verdict> {
        let mut findings = Findings::default();
        let snapshot = read(file, bytes, &mut findings);
        findings.settle(snapshot, Strictness::Literal)
    }

    pub fn render(&self) -> String {
        let files = self.files.iter();
        render(
            self.captured_at.as_deref(),
            files.map(|(path, digest)| (path.as_str(), digest.clone())),
        )
    }

    pub fn difference(&self, after: &Self) -> Difference {
        let mut difference = Difference::default();
        for (path, digest) in &after.files {
            match self.files.get(path) {
                None => difference.added.insert(path.clone()),
                Some(before) if before != digest => difference.changed.insert(path.clone()),
                Some(_) => false,
            };
        }
        let gone = self
            .files
            .keys()
            .filter(|path| !after.files.contains_key(*path));
        difference.removed = gone.cloned().collect();
        difference
    }
}

/// The bytes of a snapshot file of `files`.
pub fn render<'a>(
    captured_at: Option<&str>,
    files: impl Iterator<Item = (&'a str, String)>,
) -> String {
    let own = |(path, digest): (&'a str, String)| (Cow::Borrowed(path), digest);
    let snapshot = WorkspaceSnapshot {
        schema_version: Some(SnapshotVersion::V1),
        captured_at: captured_at.map(Moment::from),
        files: Some(files.map(own).collect()),
    };
    // Texts in a map with texts as keys: serialising them cannot fail.
    serde_json::to_string_pretty(&snapshot).unwrap_or_default() + "\n"
}

/// Reads a snapshot as far as it can be read.
pub(super) fn read(file: &str, bytes: &[u8], findings: &mut Findings) -> Option<Snapshot> {
    let mut found = findings.of(file);
    let node = match json::read(bytes) {
        Ok(node) => node,
        Err(error) => {
            let problem = format!("is not JSON without duplicate keys: {error}");
            found.add("", problem);
            return None;
        }
    };
    let snapshot: WorkspaceSnapshot<'_> = found.read(&node, &SNAPSHOT, "")?;
    let captured_at = snapshot
        .captured_at
        .and_then(|at| Some(at.text()?.to_owned()));
    let files = digests(snapshot.files?, &mut found);
    Some(Snapshot { captured_at, files })
}

/// The digest of every file, by the one spelling of its path.
fn digests(
    files: BTreeMap<Cow<'_, str>, String>,
    found: &mut FileFindings<'_>,
) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for (key, digest) in files {
        let path = match rule::normal(&key) {
            Ok(Some(path)) => String::from(path),
            Ok(None) => {
                found.add("files", format!("the path `{key}` is empty"));
                continue;
            }
            Err(why) => {
                found.add("files", format!("the path `{key}` {why}"));
                continue;
            }
        };
        let digest = digest.trim().to_ascii_lowercase();
        if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            found.add("files", format!("`{key}` has no sha256 digest"));
            continue;
        }
        if digests.insert(path, digest).is_some() {
            found.add("files", format!("`{key}` is a duplicate of another path"));
        }
    }
    digests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_comes_back_from_its_file() {
        let digest = |letter: &str| letter.repeat(64);
        let files = [
            ("a \"b\"", digest("a")),
            ("c/d", digest("b")),
            ("é", digest("c")),
        ];
        let one = Snapshot {
            captured_at: Some("2026-01-31T12:00:00.000Z".to_owned()),
            files: files.map(|(path, digest)| (path.to_owned(), digest)).into(),
        };
        assert_eq!(
            Snapshot::parse("x", one.render().as_bytes()),
            Ok(one.clone())
        );
        let none = Snapshot {
            files: BTreeMap::new(),
            ..one.clone()
        };
        assert_eq!(
            Snapshot::parse("x", none.render().as_bytes()),
            Ok(none.clone())
        );
        let mut other = one.clone();
        other.files.remove("c/d");
        other.files.insert("e".to_owned(), digest("d"));
        other.files.insert("é".to_owned(), digest("e"));
        let set = |path: &str| BTreeSet::from([path.to_owned()]);
        let want = Difference {
            added: set("e"),
            changed: set("é"),
            removed: set("c/d"),
        };
        assert_eq!(one.difference(&other), want);
    }
}
