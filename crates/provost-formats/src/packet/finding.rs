//! Collects the findings about a packet.

use serde_json::{Value, json};

use super::Profile;

/// The most findings that are listed; a hostile log could have a million.
const MOST: usize = 200;

/// The findings, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Findings {
    broken: Rows,
    doubtful: Rows,
}

#[derive(Debug, Default)]
struct Rows {
    listed: Vec<Value>,
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
            let row = json!({ "path": path, "file": file, "field": field, "problem": problem });
            self.listed.push(row);
        }
    }

    fn append(&mut self, other: Self) {
        self.count += other.count;
        self.listed.extend(other.listed);
        self.listed.truncate(MOST);
    }
}

impl Findings {
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

    pub(super) fn count(&self, profile: Profile) -> usize {
        match profile {
            Profile::Literal => self.broken.count,
            Profile::Strict => self.broken.count + self.doubtful.count,
        }
    }

    pub(super) fn holds(&self, profile: Profile) -> bool {
        self.count(profile) == 0
    }

    /// The findings that are listed.
    pub(super) fn rows(&self, profile: Profile) -> Vec<Value> {
        let mut rows = self.broken.listed.clone();
        if profile == Profile::Strict {
            rows.extend(self.doubtful.listed.iter().cloned());
        }
        rows.truncate(MOST);
        rows
    }

    /// What the strict profile would refuse.
    pub(super) fn warnings(&self) -> &[Value] {
        &self.doubtful.listed
    }
}
