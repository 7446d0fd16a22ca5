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

    /// The case that `text` names: `case_` with the first of its last digits, or its whole id.
    pub(crate) fn find_case(&self, text: &str) -> Result<Option<String>, Failure> {
        let Some(digits) = text.strip_prefix(CASE) else {
            return Ok(None);
        };
        let cases = self.cases()?;
        let known = cases.iter().any(|case| case == text);
        match meant(&cases, if known { text } else { digits }, "case")? {
            Some(id) => Ok(Some(id)),
            None => Err(missing(&format!("there is no case `{text}`"))
                .hint("`provost case list` lists all cases")),
        }
    }
}
