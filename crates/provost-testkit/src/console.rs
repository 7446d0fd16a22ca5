//! Console sessions in pages: what a page shows is typed and compared, so that it stays true.
//!
//! In a `console` block a line with `$ ` is a command. The lines below it must appear in its
//! output, in that order; `…` stands for anything.

/// One command of a console block.
#[derive(Debug)]
pub struct Step {
    pub command: String,
    pub shown: Vec<String>,
}

/// The commands of all console blocks of a page.
///
/// # Panics
///
/// If a block does not begin with a command.
pub fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page.split("\n```console\n").skip(1) {
        for line in block.split("\n```").next().unwrap().lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step {
                    command: command.to_owned(),
                    shown: Vec::new(),
                }),
                (None, Some(step)) => step.shown.push(line.to_owned()),
                (None, None) => panic!("`{line}` belongs to no command"),
            }
        }
    }
    steps
}

impl Step {
    /// Compares the step with what its command printed.
    ///
    /// # Panics
    ///
    /// If a line that is shown is not there.
    pub fn compare(&self, output: &str) {
        let context = format!("$ {}\n{output}", self.command);
        let mut lines = output.lines();
        for wanted in &self.shown {
            assert!(
                lines.any(|line| fits(line.trim_end(), wanted)),
                "`{wanted}` is not shown by {context}"
            );
        }
    }

    /// The code of the refusal that the page shows, if it shows one.
    pub fn code(&self) -> Option<&str> {
        self.shown.iter().find_map(|line| {
            let rest = line.strip_prefix("refused[");
            let rest = rest.or_else(|| line.strip_prefix("error["))?;
            rest.split(']').next()
        })
    }
}

/// Whether `line` is `wanted`, where `…` stands for anything.
fn fits(line: &str, wanted: &str) -> bool {
    let Some((beginning, rest)) = wanted.split_once('…') else {
        return line == wanted;
    };
    let Some(mut left) = line.strip_prefix(beginning) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('…').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else {
            return false;
        };
        left = &left[at + part.len()..];
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ellipsis_stands_for_anything() {
        let cases = [
            ("landed: main is at 1a (r)", "landed: … is at … (r)", true),
            ("landed: main", "landed: … is at … (r)", false),
            ("accepted: run_1", "accepted: run_…", true),
            ("not accepted: run_1", "accepted: run_…", false),
            ("a", "a", true),
            ("ab", "a", false),
        ];
        for (line, wanted, want) in cases {
            assert_eq!(fits(line, wanted), want, "{line} / {wanted}");
        }
    }
}
