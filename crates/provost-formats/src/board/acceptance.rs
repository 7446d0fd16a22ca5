//! Decides whether a task may count as done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use provost_core::code::Code;
use provost_core::schema::leaf::Filled;

use provost_core::resource::{Cover, Resource};

/// The report about one criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The text of the criterion.
    #[schemars(with = "Filled")]
    pub criterion: String,
    #[serde(rename = "status")]
    pub mark: Mark,
    /// What proves it.
    pub evidence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    Pass,
    Fail,
}

/// What is missing before a task is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Shortfall {
    #[error("no criterion was checked")]
    Nothing,
    /// The position of an unchecked criterion among the required ones.
    #[error("the criterion was not checked")]
    Unchecked(usize),
    /// The position of a failed check among the reported ones.
    #[error("the criterion failed")]
    Failed(usize),
    /// The position of a check without evidence among the reported ones.
    #[error("the criterion has no evidence")]
    Unproven(usize),
}

impl Shortfall {
    pub fn code(self) -> Code {
        match self {
            Self::Nothing | Self::Unchecked(_) | Self::Failed(_) | Self::Unproven(_) => {
                Code::AcceptanceFailed
            }
        }
    }
}

/// What keeps a task with these checks from being done; empty when it is done.
///
/// Criteria are matched by their exact text. A criterion that was not checked does not pass.
pub fn shortfalls(required: &[&str], checks: &[Check]) -> Vec<Shortfall> {
    if checks.is_empty() {
        return vec![Shortfall::Nothing];
    }
    let mut reported: Vec<&str> = checks.iter().map(|check| &*check.criterion).collect();
    reported.sort_unstable();
    let mut list = Vec::new();
    for (at, criterion) in required.iter().enumerate() {
        if reported.binary_search(criterion).is_err() {
            list.push(Shortfall::Unchecked(at));
        }
    }
    for (at, check) in checks.iter().enumerate() {
        match check.mark {
            Mark::Pass => {}
            Mark::Fail => list.push(Shortfall::Failed(at)),
        }
        if check.evidence.trim().is_empty() {
            list.push(Shortfall::Unproven(at));
        }
    }
    list
}

/// How a change leaves the scope of its task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trespass {
    /// Nothing in the lock scope contains it.
    #[error("`{0}` is outside the lock scope")]
    Outside(Resource),
    /// It is, contains or lies in a forbidden resource.
    #[error("`{changed}` touches `{forbidden}`, which is forbidden")]
    Forbidden {
        changed: Resource,
        forbidden: Resource,
    },
}

impl Trespass {
    pub fn code(&self) -> Code {
        match self {
            Self::Outside(_) | Self::Forbidden { .. } => Code::ScopeViolation,
        }
    }
}

/// The `changed` that leave the lock scope or touch a forbidden resource, with their positions.
pub fn trespasses(
    changed: &[Resource],
    lock_scope: &[Resource],
    forbidden: &[Resource],
) -> Vec<(usize, Trespass)> {
    let (scope, forbidden) = (Cover::of(lock_scope), Cover::of(forbidden));
    let judge = |(at, changed): (usize, &Resource)| {
        if scope.holder_of(changed).is_none() {
            return Some((at, Trespass::Outside(changed.clone())));
        }
        let touched = forbidden.touched_by(changed)?;
        let trespass = Trespass::Forbidden {
            changed: changed.clone(),
            forbidden: touched.clone(),
        };
        Some((at, trespass))
    };
    changed.iter().enumerate().filter_map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(criterion: &str, mark: Mark, evidence: &str) -> Check {
        Check {
            criterion: criterion.to_owned(),
            mark,
            evidence: evidence.to_owned(),
        }
    }

    #[test]
    fn done_is_everything_required_passed_and_proven() {
        use Shortfall::{Failed, Nothing, Unchecked, Unproven};
        type Case<'a> = (&'a str, &'a [&'a str], Vec<Check>, &'a [Shortfall]);
        let good = || check("a", Mark::Pass, "seen");
        let cases: [Case<'_>; 7] = [
            ("good", &["a"], vec![good()], &[]),
            ("more than asked", &[], vec![good()], &[]),
            ("nothing", &[], vec![], &[Nothing]),
            ("not reported", &["a", "b"], vec![good()], &[Unchecked(1)]),
            ("other words", &["A"], vec![good()], &[Unchecked(0)]),
            (
                "failed",
                &["a"],
                vec![check("a", Mark::Fail, "log")],
                &[Failed(0)],
            ),
            (
                "unproven",
                &["a"],
                vec![good(), check("b", Mark::Pass, " ")],
                &[Unproven(1)],
            ),
        ];
        for (name, required, checks, want) in cases {
            assert_eq!(shortfalls(required, &checks), want, "{name}");
        }
    }

    #[test]
    fn a_change_stays_inside_its_scope() {
        let place = |text: &&str| Resource::parse(text).unwrap();
        let places = |list: &[&str]| list.iter().map(place).collect::<Vec<_>>();
        let (scope, forbidden) = (places(&["a", "b/c"]), places(&["a/no"]));
        let cases = [
            ("a", false),
            ("a/x", true),
            ("a/no", false),
            ("a/no/x", false),
            ("b/c", true),
            ("b", false),
            ("a2", false),
            ("a/x/../../b/d", false),
        ];
        for (changed, want) in cases {
            let found = trespasses(&places(&[changed]), &scope, &forbidden);
            assert_eq!(found.is_empty(), want, "{changed}: {found:?}");
        }
    }
}
