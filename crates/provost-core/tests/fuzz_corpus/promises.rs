//! The guarantees of the parsers of untrusted bytes, whatever the bytes are.
//!
//! The fuzz targets and the replay of their corpora share these functions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use provost_core::bundle::dsse::Envelope;
use provost_core::bundle::key::{NamedKey, SigningKey};
use provost_core::change::Node;
use provost_core::contract;
use provost_core::gate::command::{self, CommandPolicy, Trust};
use provost_core::gate::diff::{self, Facts, Permit, Rules};
use provost_core::object::{Kind, Mode, ObjectFormat};
use provost_core::path::{RawPath, RepoPath};
use provost_core::protect::Extra;
use provost_core::record::{self, Head};
use provost_core::run::State;
use provost_core::scope::{self, Scope};
use provost_core::{json, pack, secret, tree};

/// Loading runs its examples, so it is loaded once.
static POLICY: LazyLock<CommandPolicy> =
    LazyLock::new(|| CommandPolicy::shipped().unwrap_or_else(|error| panic!("{error}")));

const FORMATS: [ObjectFormat; 2] = [ObjectFormat::Sha1, ObjectFormat::Sha256];

/// An entry has one reading, and one bad entry refuses the whole list.
pub(crate) fn scope(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let entries: Vec<&str> = text.split('\n').collect();
    let mut all_good = true;
    for entry in &entries {
        let Ok(path) = scope::parse_entry(entry) else {
            all_good = false;
            continue;
        };
        assert_eq!(scope::parse_entry(path.as_str()).as_ref(), Ok(&path));
        assert!(path.parts().all(|part| !matches!(part, "" | "." | "..")));
        let alone = Scope::of(vec![path.clone()]);
        assert!(alone.covers(&path));
        if let Ok(sibling) = RepoPath::try_from(format!("{}x", path.as_str())) {
            assert!(!alone.covers(&sibling));
        }
    }
    let scope = Scope::parse(&entries);
    assert_eq!(scope.is_ok(), all_good);
    assert_eq!(scope::judge(&entries).allow, all_good);
    if let Ok(scope) = scope {
        let again = scope.entries().iter().map(RepoPath::as_str);
        assert_eq!(Scope::parse(&again.collect::<Vec<_>>()), Ok(scope.clone()));
        let covers = |entry: &&str| scope::parse_entry(entry).is_ok_and(|path| scope.covers(&path));
        assert!(entries.iter().all(covers));
    }
}

/// A chain that is parsed is spelled as Provost spells it, and other bytes are refused with a
/// reason.
pub(crate) fn record(bytes: &[u8]) {
    let chain = match record::read(bytes, Head::genesis()) {
        Ok(chain) => chain,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let lines = chain.records.iter().map(|record| record.line() + "\n");
    assert_eq!(lines.collect::<String>().as_bytes(), &bytes[..chain.whole]);
    assert!(!bytes[chain.whole..].contains(&b'\n'));
    assert_eq!(chain.head.next, chain.records.len() as u64);
    // A chain need not be a run; folding it says so.
    let _ = State::fold(&chain.records);
}

/// A document has one meaning; an invalid contract is refused with its problems.
pub(crate) fn contract(bytes: &[u8]) {
    if let Ok(value) = json::parse(bytes) {
        let text = json::canonical(&value);
        let again = json::parse(text.as_bytes());
        // A number may have no spelling that is parsed as the same one; then it is not hashed
        // either.
        if let Ok(again) = again {
            assert_eq!(json::canonical(&again), text);
        }
    }
    let Ok(document) = contract::parse(bytes) else {
        return;
    };
    for trust in [Trust::FromFile, Trust::TypedByPerson] {
        match contract::resolve(document.clone(), &POLICY, trust) {
            Ok(contract) => {
                assert!(!contract.scope.is_empty());
                assert!(!contract.tests.is_empty());
                assert!(contract.tests.iter().all(|test| !test.argv.is_empty()));
            }
            Err(problems) => {
                assert!(!problems.is_empty());
                assert!(!contract::judge(&problems).allow);
            }
        }
    }
}

/// Words survive quoting, and a permitted command is nothing but words.
pub(crate) fn command(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let split = command::split(&text);
    if let Ok(words) = &split {
        let quoted: Vec<String> = words.iter().map(|word| command::quote(word)).collect();
        assert_eq!(command::split(&quoted.join(" ")).as_ref(), Ok(words));
    }
    let judged = |trust| command::judge(&text, &POLICY, trust).allow;
    if judged(Trust::FromFile) {
        assert!(
            judged(Trust::TypedByPerson),
            "a list is never laxer than a person"
        );
    }
    if judged(Trust::TypedByPerson) {
        assert!(split.is_ok_and(|words| words.first().is_some_and(|word| !word.is_empty())));
    }
}

/// A tree that is parsed is spelled as git spells it.
pub(crate) fn tree(bytes: &[u8]) {
    for format in FORMATS {
        if let Ok(entries) = tree::parse(bytes, format) {
            assert!(entries.iter().all(|entry| tree::name_is_safe(&entry.name)));
            let rendered = tree::render(entries.clone());
            assert_eq!(tree::parse(&rendered, format), Ok(entries));
            // Only the mode of old repositories has two spellings.
            let old = bytes.windows(7).any(|window| window == b"100664 ");
            assert!(old || rendered == bytes);
        }
    }
    let _ = tree::commit_tree(bytes);
}

/// The objects of a pack that is parsed make the same pack again.
pub(crate) fn pack(bytes: &[u8]) {
    for format in FORMATS {
        let mut sealed = bytes.to_vec();
        sealed.extend(format.checksum(bytes));
        for pack in [bytes, &sealed] {
            let Ok(objects) = pack::read(pack, format) else {
                continue;
            };
            let mut writer = pack::Writer::new(format);
            for (oid, (kind, object)) in &objects {
                assert_eq!(writer.add(*kind, object).as_ref(), Ok(oid));
                let _ = (*kind == Kind::Tree).then(|| tree::verified(oid, object));
            }
            assert_eq!(pack::read(&writer.finish(), format), Ok(objects));
        }
    }
}

/// The differences of two trees are the differences of their files, and the gate allows only what
/// the scope covers.
pub(crate) fn diff(bytes: &[u8]) {
    let mut halves = bytes.splitn(2, |byte| *byte == 0);
    let mut trees = tree::Trees::new();
    let mut read = || {
        let files = files(halves.next().unwrap_or(b""));
        let (root, made) = tree::build(&files, ObjectFormat::Sha1).ok()?;
        trees.extend(made);
        Some((files, root))
    };
    let (Some((before, old)), Some((after, new))) = (read(), read()) else {
        return;
    };
    let changes = tree::diff(&old, &new, |oid| trees.get(oid).cloned());
    let changes = changes.unwrap_or_else(|error| panic!("{error}"));
    let mut want: Vec<&RawPath> = before.keys().chain(after.keys()).collect();
    want.sort();
    want.dedup();
    want.retain(|path| before.get(*path) != after.get(*path));
    assert_eq!(
        changes
            .iter()
            .map(|change| &change.path)
            .collect::<Vec<_>>(),
        want
    );

    let scope = Scope::parse(&["src", "a b"]).unwrap_or_default();
    let rules = Rules {
        scope: &scope,
        forbid: &Scope::parse(&["src/no"]).unwrap_or_default(),
        permit: &Permit::default(),
        extra: &Extra::default(),
    };
    let facts = Facts {
        changes: &changes,
        ..Facts::default()
    };
    if diff::judge(&facts, &rules).allow {
        for path in want {
            assert!(
                scope.covers_raw(path) && !rules.forbid.covers_raw(path),
                "{path}"
            );
        }
    }
}

/// Lines of a path and, after a tab, its content; a `!` makes it a program, a `>` a link.
fn files(bytes: &[u8]) -> BTreeMap<RawPath, Node> {
    let mut files = BTreeMap::new();
    for line in bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let mut fields = line.splitn(2, |byte| *byte == b'\t');
        let (name, content) = (fields.next().unwrap_or(b""), fields.next().unwrap_or(b""));
        let mode = match content.first() {
            Some(b'!') => Mode::Executable,
            Some(b'>') => Mode::Symlink,
            _ => Mode::File,
        };
        let Ok(oid) = ObjectFormat::Sha1.oid(Kind::Blob, content) else {
            continue;
        };
        files.insert(RawPath::new(name), Node { mode, oid });
    }
    files
}

/// An envelope is spelled back as it was parsed, and nothing opens without a key that signed it.
pub(crate) fn seal(bytes: &[u8]) {
    if let Ok(envelope) = Envelope::parse(bytes) {
        let again = Envelope::parse(envelope.render().as_bytes());
        assert_eq!(
            again.ok().map(|again| again.render()),
            Some(envelope.render())
        );
        assert!(envelope.open(&[]).is_err());
        let _ = envelope.unverified_payload();
    }
    let text = String::from_utf8_lossy(bytes);
    if let Ok(key) = NamedKey::parse(&text) {
        assert_eq!(NamedKey::parse(&key.to_string()).ok().as_ref(), Some(&key));
    }
    if let Ok(key) = SigningKey::parse(&text) {
        assert!(SigningKey::parse(&key.secret_line()).is_ok());
    }
}

/// Findings are inside the text and do not overlap; a redacted text has no further findings.
pub(crate) fn secret(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found = secret::find(&text);
    assert!(found.is_sorted_by(|one, other| one.range.end <= other.range.start));
    assert!(found.iter().all(|one| !text[one.range.clone()].is_empty()));
    let clean = secret::redact(&text);
    assert_eq!(clean == text, found.is_empty());
    assert_eq!(secret::find(&clean), []);
}
