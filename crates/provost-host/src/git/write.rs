//! Writes objects.

use std::fmt::Write as _;
use std::path::Path;

use provost_core::object::{Kind, Oid};
use provost_core::pack;

use super::run::unexpected;
use super::{GitError, Place, Repository, loose};

/// From how many objects on a pack is kept as one.
const KEEP_PACK: u32 = 100;

/// Who made a commit, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The mail address.
    pub mail: String,
    /// Seconds since 1970.
    pub time: i64,
}

impl Person {
    /// The person as a commit holds it, in universal time.
    fn render(&self) -> Result<String, GitError> {
        for text in [&self.name, &self.mail] {
            let bad = |character: char| matches!(character, '<' | '>') || character.is_control();
            if text.trim().is_empty() || text.contains(bad) {
                return Err(GitError::BadPerson { text: text.clone() });
            }
        }
        let (name, mail) = (self.name.trim(), self.mail.trim());
        Ok(format!("{name} <{mail}> {} +0000", self.time))
    }
}

impl Repository {
    /// Puts the objects of a pack into the object store; when it returns they are on disk.
    pub fn write_pack(&self, pack: Vec<u8>) -> Result<(), GitError> {
        let count = pack
            .get(8..12)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_be_bytes)
            .ok_or_else(|| unexpected("index-pack"))?;
        if count == 0 {
            return Ok(());
        }
        if count >= KEEP_PACK {
            self.git
                .run(&self.at_side(), &["index-pack", "--stdin"], pack)?;
        } else if loose::is_ours_alone(&self.objects) {
            let objects = pack::read(&pack, self.format).map_err(|_| unexpected("pack"))?;
            loose::write(&self.objects, &objects)?;
        } else {
            // Git knows which modes files need that others share.
            self.git
                .run(&self.at_side(), &["unpack-objects", "-q"], pack)?;
        }
        Ok(())
    }

    /// The tree of what is staged in the index at `index`.
    pub fn staged_tree(&self, index: &Path) -> Result<Oid, GitError> {
        let place = Place {
            index: Some(index),
            ..self.at_refs()
        };
        let output = self.git.run(&place, &["write-tree"], Vec::new())?;
        let text = String::from_utf8_lossy(&output.stdout);
        Oid::try_from(text.trim()).map_err(|_| unexpected("write-tree"))
    }

    /// Writes one object.
    pub fn write(&self, kind: Kind, bytes: &[u8]) -> Result<Oid, GitError> {
        let mut writer = pack::Writer::new(self.format);
        let oid = writer.add(kind, bytes)?;
        self.write_pack(writer.finish())?;
        Ok(oid)
    }

    /// Writes a commit; the same arguments make the same commit.
    pub fn commit(
        &self,
        tree: &Oid,
        parents: &[Oid],
        message: &str,
        author: &Person,
        committer: &Person,
    ) -> Result<Oid, GitError> {
        let mut batch = self.batch()?;
        batch.one(tree, Kind::Tree)?;
        let mut text = format!("tree {tree}\n");
        for parent in parents {
            batch.one(parent, Kind::Commit)?;
            let _ = writeln!(text, "parent {parent}");
        }
        let (author, committer) = (author.render()?, committer.render()?);
        let _ = write!(text, "author {author}\ncommitter {committer}\n\n");
        // Git takes no NUL in a message.
        text.push_str(message.replace('\0', "").trim_end());
        text.push('\n');
        self.write(Kind::Commit, text.as_bytes())
    }
}
