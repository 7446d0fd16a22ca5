//! Finds cases by their names.

use super::meant::meant;
use super::{Places, missing, named};
use crate::answer::Failure;
use crate::parts::CASE;

impl Places {
    /// The ids of all cases, oldest first.
    pub fn cases(&self) -> Result<Vec<String>, Failure> {
        named(&self.root.join("runs"), CASE)
    }

    /// The case that `text` names: its whole id, or the first of its last digits, with or without
    /// `case_` before them. Without it, a run of the same digits is what the user means.
    pub fn find_case(&self, text: &str) -> Result<Option<String>, Failure> {
        let Some(digits) = text.strip_prefix(CASE) else {
            return self.case_by_digits(text);
        };
        let cases = self.cases()?;
        let known = cases.iter().any(|case| case == text);
        match meant(&cases, if known { text } else { digits }, "case")? {
            Some(id) => Ok(Some(id)),
            None => Err(missing(&format!("there is no case `{text}`"))
                .hint("`provost case list` lists all cases")),
        }
    }

    /// The one case whose last digits begin with `digits`, unless a run has such digits.
    fn case_by_digits(&self, digits: &str) -> Result<Option<String>, Failure> {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let begins = |id: &String| {
            id.rsplit('_')
                .next()
                .is_some_and(|it| it.starts_with(digits))
        };
        let mut cases = self.cases()?.into_iter().filter(begins);
        let (Some(id), None) = (cases.next(), cases.next()) else {
            return Ok(None);
        };
        let is_run = self.runs()?.iter().any(begins);
        Ok((!is_run).then_some(id))
    }
}
