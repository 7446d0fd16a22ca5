//! Writes objects: packs, trees and commits.

use std::fmt::Write as _;
use std::path::Path;

use provost_core::object::{Kind, Oid};
use provost_core::pack;

use super::run::unexpected;
use super::{GitError, Place, Repository, loose_objects};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub name: String,
    pub mail: String,
    /// Seconds since 1970.
    pub time: i64,
}

impl Person {
    /// The person as a line of a commit, in UTC.
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
    /// Writes the objects of a pack to disk. They are held there until a ref leads to them.
    pub fn write_pack(&self, pack: Vec<u8>) -> Result<(), GitError> {
        let count = pack
            .get(8..12)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_be_bytes)
            .ok_or_else(|| unexpected("index-pack"))?;
        if count == 0 {
            return Ok(());
        }
        self.hold(pack, count)
    }

    /// Writes one object that no ref will lead to; a clean-up may remove it at any time.
    fn write_aside(&self, kind: Kind, bytes: &[u8]) -> Result<Oid, GitError> {
        let mut writer = pack::Writer::new(self.format);
        let oid = writer.add(kind, bytes)?;
        if loose_objects::is_ours_alone(&self.objects) {
            let objects = [(oid.clone(), (kind, bytes.to_vec()))].into();
            loose_objects::write(&self.objects, &objects)?;
        } else {
            // Git knows the file modes of a shared object store.
            let arguments = ["unpack-objects", "-q"];
            self.git.run(&self.at_side(), &arguments, writer.finish())?;
        }
        Ok(oid)
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
        let text = self.commit_text(tree, parents, message, [author, committer])?;
        self.write(Kind::Commit, text.as_bytes())
    }

    /// Writes a commit that is needed only briefly; a clean-up may remove it.
    pub(super) fn commit_aside(
        &self,
        tree: &Oid,
        parents: &[Oid],
        message: &str,
        person: &Person,
    ) -> Result<Oid, GitError> {
        let text = self.commit_text(tree, parents, message, [person, person])?;
        self.write_aside(Kind::Commit, text.as_bytes())
    }

    fn commit_text(
        &self,
        tree: &Oid,
        parents: &[Oid],
        message: &str,
        [author, committer]: [&Person; 2],
    ) -> Result<String, GitError> {
        let mut batch = self.batch()?;
        batch.one(tree, Kind::Tree)?;
        let mut text = format!("tree {tree}\n");
        for parent in parents {
            batch.one(parent, Kind::Commit)?;
            let _ = writeln!(text, "parent {parent}");
        }
        let (author, committer) = (author.render()?, committer.render()?);
        let _ = write!(text, "author {author}\ncommitter {committer}\n\n");
        // Git accepts no NUL in a message.
        text.push_str(message.replace('\0', "").trim_end());
        text.push('\n');
        Ok(text)
    }
}
