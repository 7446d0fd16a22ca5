//! Snapshots of a workspace: the digest of every file.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::json;
use serde_json::{Map, Value};

use super::fields::Fields;
use super::finding::Findings;
use super::{Profile, refuse, rule};
use provost_core::verdict::Verdict;

const VERSION: &str = "subagent_workspace_snapshot_v1";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was taken; `None` if the file does not say it as text.
    pub captured_at: Option<String>,
    /// The SHA-256 of every file in lower case, by its path from the root of the repository.
    pub files: BTreeMap<String, String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
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
        match snapshot {
            Some(snapshot) if findings.holds(Profile::Literal) => Ok(snapshot),
            _ => Err(refuse(
                &findings,
                Profile::Literal,
                Value::Object(Map::new()),
            )),
        }
    }

    pub fn render(&self) -> String {
        render(self.captured_at.as_deref(), self.files.iter())
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

/// The bytes of a snapshot file of `files`, which must be sorted by path.
pub fn render(
    captured_at: Option<&str>,
    files: impl Iterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
) -> String {
    // Written directly: a JSON value of a hundred thousand rows would be slow.
    let quoted = |text: &str| Value::from(text).to_string();
    let time = captured_at.map_or("null".to_owned(), quoted);
    let mut text = format!(
        "{{\n  \"schema_version\": \"{VERSION}\",\n  \"captured_at\": {time},\n  \"files\": {{"
    );
    let mut gap = "\n";
    // Hardly any path has a character that JSON escapes.
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    for (path, digest) in files {
        let (path, digest) = (path.as_ref(), digest.as_ref());
        text.push_str(gap);
        if path.bytes().all(is_plain) {
            text.extend(["    \"", path, "\""]);
        } else {
            text.extend(["    ", &quoted(path)]);
        }
        text.extend([": \"", digest, "\""]);
        gap = ",\n";
    }
    text + "\n  }\n}\n"
}

/// Reads a snapshot as far as it can be read.
pub(super) fn read(file: &str, bytes: &[u8], findings: &mut Findings) -> Option<Snapshot> {
    let entries = match json::parse(bytes) {
        Ok(Value::Object(entries)) => entries,
        Ok(_) => {
            findings.add(file, "", "is not a JSON object");
            return None;
        }
        Err(error) => {
            let problem = format!("is not JSON without duplicate keys: {error}");
            findings.add(file, "", problem);
            return None;
        }
    };
    let mut fields = Fields {
        file,
        prefix: "",
        entries: &entries,
        findings,
    };
    fields.one_of("schema_version", &[VERSION]);
    let captured_at = fields.time("captured_at").map(str::to_owned);
    let Value::Object(files) = fields.required("files")? else {
        fields.refuse("files", "is not an object");
        return None;
    };
    let files = digests(files, &mut fields);
    Some(Snapshot { captured_at, files })
}

/// The digest of every file, by the one spelling of its path.
fn digests(files: &Map<String, Value>, fields: &mut Fields<'_, '_>) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for (key, value) in files {
        let path = match rule::normal(key) {
            Ok(Some(path)) => String::from(path),
            Ok(None) => {
                fields.refuse("files", format!("the path `{key}` is empty"));
                continue;
            }
            Err(why) => {
                fields.refuse("files", format!("the path `{key}` {why}"));
                continue;
            }
        };
        let digest = value.as_str().map(|text| text.trim().to_ascii_lowercase());
        let is_digest =
            |text: &String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(digest) = digest.filter(is_digest) else {
            fields.refuse("files", format!("`{key}` has no sha256 digest"));
            continue;
        };
        if digests.insert(path, digest).is_some() {
            fields.refuse("files", format!("`{key}` is a duplicate of another path"));
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
