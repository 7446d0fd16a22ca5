//! The course of one run in the fleet: lease, execute, land, as a fold over what happened.

use provost_core::object::Oid;
use provost_core::verdict::Verdict;
use serde::{Deserialize, Serialize};

use crate::fence::Fence;

/// The most times that a result is judged again because its target moved.
pub const MOST_REJUDGED: u32 = 10;

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The gates accepted, and evidence and candidate are at the hub.
    Accepted,
    /// A result like any other: it is never tried again.
    Refused(Verdict),
    Cancelled,
}

/// What a worker reports of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptReport {
    pub end: AttemptEnd,
    /// The fence that the evidence names; that of an earlier attempt if its child was adopted.
    pub fence: Fence,
    pub worker: String,
    /// The commit at the hub that holds the evidence, if it was pushed.
    pub bundle: Option<Oid>,
    /// The base that the candidate was judged on.
    pub base: Oid,
}

/// What a lander answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandingEnd {
    Landed {
        commit: Oid,
    },
    /// The target is no longer where the candidate was judged.
    Moved {
        tip: Oid,
    },
    Refused(Verdict),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CourseEvent {
    Granted {
        number: u64,
    },
    Executed(AttemptReport),
    Landing(LandingEnd),
    /// An attempt, or the landing, was lost too often.
    Lost {
        reason: String,
    },
    Cancelled,
}

/// What comes next for a run.
#[derive(Debug, Clone, PartialEq)]
pub enum CourseStep {
    Lease,
    Execute {
        number: u64,
    },
    /// Judge the work of `from` again, which was judged on `base`, merged with `tip`.
    Rejudge {
        number: u64,
        from: Fence,
        base: Oid,
        tip: Oid,
    },
    Land(AttemptReport),
    Done(CourseEnd),
}

impl CourseStep {
    /// What the run does, for people.
    pub fn words(&self) -> String {
        match self {
            Self::Lease => "waits for its lease".to_owned(),
            Self::Execute { number } => format!("runs under lease {number}"),
            Self::Rejudge { tip, .. } => {
                format!(
                    "is judged again, because the target moved to {}",
                    tip.short()
                )
            }
            Self::Land(report) => format!("is landing attempt {}", report.fence),
            Self::Done(_) => "has ended".to_owned(),
        }
    }
}

/// The end of a run, as its submitter sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CourseEnd {
    Landed { commit: Oid, fence: Fence },
    Refused(Verdict),
    Cancelled,
    Lost { reason: String },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Course {
    number: Option<u64>,
    /// The newest result, and whether it is merged with a later tip.
    report: Option<AttemptReport>,
    moved_to: Option<Oid>,
    rejudged: u32,
    end: Option<CourseEnd>,
}

impl Course {
    /// What happened after the end changes nothing: a late answer cannot undo it.
    pub fn apply(&mut self, event: CourseEvent) {
        if self.end.is_some() {
            return;
        }
        match event {
            CourseEvent::Granted { number } => self.number = Some(number),
            CourseEvent::Executed(report) => {
                self.moved_to = None;
                match report.end.clone() {
                    AttemptEnd::Accepted => self.report = Some(report),
                    AttemptEnd::Refused(verdict) => self.end = Some(CourseEnd::Refused(verdict)),
                    AttemptEnd::Cancelled => self.end = Some(CourseEnd::Cancelled),
                }
            }
            CourseEvent::Landing(LandingEnd::Landed { commit }) => {
                let fence = self.report.as_ref().map(|report| report.fence);
                self.end = fence.map(|fence| CourseEnd::Landed { commit, fence });
            }
            CourseEvent::Landing(LandingEnd::Moved { tip }) => {
                self.rejudged += 1;
                self.moved_to = Some(tip);
                if self.rejudged > MOST_REJUDGED {
                    let reason = "the target moved before each landing; submit the run again";
                    self.end = Some(CourseEnd::Lost {
                        reason: reason.to_owned(),
                    });
                }
            }
            CourseEvent::Landing(LandingEnd::Refused(verdict)) => {
                self.end = Some(CourseEnd::Refused(verdict));
            }
            CourseEvent::Lost { reason } => self.end = Some(CourseEnd::Lost { reason }),
            CourseEvent::Cancelled => self.end = Some(CourseEnd::Cancelled),
        }
    }

    pub fn next(&self) -> CourseStep {
        if let Some(end) = &self.end {
            return CourseStep::Done(end.clone());
        }
        let Some(number) = self.number else {
            return CourseStep::Lease;
        };
        match (&self.report, &self.moved_to) {
            (None, _) => CourseStep::Execute { number },
            (Some(report), Some(tip)) => CourseStep::Rejudge {
                number,
                from: report.fence,
                base: report.base.clone(),
                tip: tip.clone(),
            },
            (Some(report), None) => CourseStep::Land(report.clone()),
        }
    }

    pub fn number(&self) -> Option<u64> {
        self.number
    }

    /// How often the result was judged again; attempts of one lease are counted across it.
    pub fn rejudged(&self) -> u32 {
        self.rejudged
    }
}

#[cfg(test)]
mod tests;
