//! Finds cases by their names.

use super::meant::meant;
use super::{Places, missing, named};
use crate::answer::Failure;
use crate::parts::CASE;

impl Places {
    /// The ids of all cases, oldest first.
    pub(crate) fn cases(&self) -> Result<Vec<String>, Failure> {
        named(&self.root.join("runs"), CASE)
    }

    /// The case that `text` names by its id or the beginning of it, if it names one.
    pub(crate) fn find_case(&self, text: &str) -> Result<Option<String>, Failure> {
        if !text.starts_with(CASE) {
            return Ok(None);
        }
        match meant(&self.cases()?, text, "case")? {
            Some(id) => Ok(Some(id)),
            None => Err(missing(&format!("there is no case `{text}`"))
                .hint("`provost case list` lists all cases")),
        }
    }
}
