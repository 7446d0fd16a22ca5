//! The state of a case, which follows from its facts.

use std::collections::BTreeMap;

use provost_core::json;
use provost_core::object::Oid;
use provost_core::record::Record;
use provost_core::verdict::Verdict;

use super::fact::{CaseAnswer, CaseOpened, CaseQuestion, Drafted, Fact, FixStart, Integration};
use crate::chain::{self, Chain, End, Misplaced, Standing};

/// A fix, with its result once it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseFix {
    pub start: FixStart,
    pub end: Option<End>,
}

/// The run that judges the whole.
#[derive(Debug, Clone, PartialEq)]
pub enum Judging {
    Running { run_id: String },
    Ended(End),
}

/// One change: what a run made of the commit that it started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartChange {
    pub from: Oid,
    pub to: Oid,
}

/// The state of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub opened: CaseOpened,
    pub began: String,
    pub planned: Option<Drafted>,
    pub split: Option<Drafted>,
    pub asked: Option<CaseQuestion>,
    pub answered: Option<CaseAnswer>,
    /// The parts, once the contract is divided.
    pub parts: Option<chain::State>,
    /// The commit that each part started from.
    pub bases: BTreeMap<String, Oid>,
    pub fixes: Vec<CaseFix>,
    pub integration: Option<Integration>,
    pub judging: Option<Judging>,
    /// What the commands of the whole said about commits with the first parts.
    pub prefixes: BTreeMap<Oid, Verdict>,
    pub finished: Option<Verdict>,
    pub landed: Option<Oid>,
    /// Whether the driver of the run that is active died.
    pub abandoned: bool,
}

impl State {
    /// The state after `records`; `None` if the case never began.
    pub fn fold(records: &[Record]) -> Result<Option<Self>, Misplaced> {
        let mut state: Option<Self> = None;
        for record in records {
            let misplaced = |what: String| Misplaced {
                seq: record.seq,
                what,
            };
            let unread = |error: json::ReadError| misplaced(error.to_string());
            match &mut state {
                None => match record.event.untagged().map_err(unread)? {
                    Fact::Opened(opened) => state = Some(Self::new(*opened, &record.event.ts)),
                    _ => return Err(misplaced("the case has not begun".to_owned())),
                },
                Some(state) if record.event.event_type.starts_with("CASE_") => {
                    let fact = record.event.untagged().map_err(unread)?;
                    state.apply(fact).map_err(misplaced)?;
                }
                Some(state) => {
                    let fact = record.event.untagged().map_err(unread)?;
                    state.apply_part(fact).map_err(misplaced)?;
                }
            }
        }
        Ok(state)
    }

    fn new(opened: CaseOpened, began: &str) -> Self {
        Self {
            opened,
            began: began.to_owned(),
            planned: None,
            split: None,
            asked: None,
            answered: None,
            parts: None,
            bases: BTreeMap::new(),
            fixes: Vec::new(),
            integration: None,
            judging: None,
            prefixes: BTreeMap::new(),
            finished: None,
            landed: None,
            abandoned: false,
        }
    }

    /// Applies a fact about a part.
    pub fn apply_part(&mut self, fact: chain::Fact) -> Result<(), String> {
        let Some(parts) = &mut self.parts else {
            return Err("the case has no parts yet".to_owned());
        };
        if let chain::Fact::Started {
            node, base_commit, ..
        } = &fact
        {
            self.bases.insert(node.clone(), base_commit.clone());
        }
        match fact {
            chain::Fact::Opened { .. }
            | chain::Fact::Resumed { .. }
            | chain::Fact::Tested { .. }
            | chain::Fact::Finished { .. } => Err("a case has no such fact".to_owned()),
            fact => parts.apply(fact),
        }
    }

    /// Applies `fact`, if it fits the state.
    pub fn apply(&mut self, fact: Fact) -> Result<(), String> {
        let wrong = |what: &str| Err(what.to_owned());
        if self.finished.is_some() && !matches!(fact, Fact::Landed { .. } | Fact::Resumed { .. }) {
            return wrong("the case has finished");
        }
        match fact {
            Fact::Opened(_) => return wrong("the case began before"),
            Fact::Resumed { again } => self.reopen(again),
            Fact::Planned(drafted) if self.planned.is_none() => self.planned = Some(drafted),
            Fact::Split(drafted) if self.planned.is_some() && self.split.is_none() => {
                self.begin_parts(drafted);
            }
            Fact::Asked(question) if self.parts.is_some() && self.asked.is_none() => {
                self.asked = Some(question);
            }
            Fact::Answered(answer) => {
                let asked = self.asked.as_ref();
                if self.answered.is_some() || asked.is_none_or(|it| it.digest != answer.digest) {
                    return wrong("it answers no open question");
                }
                let ask = &self.opened.ask;
                let given = (answer.how, answer.signature.as_ref());
                if let Err(refused) = ask.admit(ask.needs, given, &answer.statement()) {
                    return wrong(&refused.to_string());
                }
                self.answered = Some(answer);
            }
            Fact::Expired {} if self.may_expire() => self.answered = None,
            Fact::Integrated(it) if self.integration.is_none() => self.integration = Some(it),
            Fact::JudgeStarted { run_id } if self.judging.is_none() => {
                self.abandoned = false;
                self.judging = Some(Judging::Running { run_id });
            }
            Fact::Judged { end } if matches!(self.judging, Some(Judging::Running { .. })) => {
                self.judging = Some(Judging::Ended(*end));
            }
            Fact::JudgeLost {} => self.judging = None,
            Fact::PrefixTested { commit, verdict } => {
                self.prefixes.insert(commit, verdict);
            }
            Fact::FixStarted(start) if self.open_fix().is_none() => {
                self.abandoned = false;
                self.integration = None;
                self.judging = None;
                self.fixes.push(CaseFix { start, end: None });
            }
            Fact::FixEnded { end } => match self.fixes.last_mut() {
                Some(fix) if fix.end.is_none() => fix.end = Some(*end),
                _ => return wrong("no fix is active"),
            },
            Fact::FixLost {} if self.open_fix().is_some() => {
                self.fixes.pop();
            }
            Fact::Finished { verdict } => self.finished = Some(verdict),
            Fact::Landed { commit, .. } if self.accepted().is_some() => {
                self.landed = Some(commit);
            }
            _ => return wrong("it does not fit the state of the case"),
        }
        Ok(())
    }

    /// Whether an approval may still end: no part has begun.
    pub fn may_expire(&self) -> bool {
        let approved = self.answered.as_ref().is_some_and(|it| it.approved);
        approved && self.runs().is_empty()
    }

    fn begin_parts(&mut self, drafted: Drafted) {
        if let Some(digest) = &drafted.document_sha256 {
            let base = self.opened.base_commit.clone();
            self.parts = Some(chain::State::begun(
                digest.clone(),
                base,
                self.began.clone(),
            ));
        }
        self.split = Some(drafted);
    }

    /// What another process finds: runs that the last driver left, and a verdict that may change.
    /// With `again`, refusals are no longer final.
    fn reopen(&mut self, again: bool) {
        let is_kept = |verdict: &Verdict| verdict.allow || (chain::is_final(verdict) && !again);
        if self.finished.as_ref().is_some_and(is_kept) {
            return;
        }
        self.finished = None;
        self.abandoned = true;
        let is_drafted = |it: &Drafted| it.document_sha256.is_some() || is_kept(&it.verdict);
        self.planned = self.planned.take().filter(is_drafted);
        self.split = self.split.take().filter(is_drafted);
        if self
            .answered
            .as_ref()
            .is_some_and(|it| !it.approved && again)
        {
            self.answered = None;
        }
        if let Some(parts) = &mut self.parts {
            let _ = parts.apply(chain::Fact::Resumed { again });
        }
        if let Some(Judging::Ended(end)) = &self.judging
            && (end.head.is_none() || !is_kept(&end.verdict))
        {
            self.judging = match end.head {
                // A run without a seal is not over, whatever the fact says.
                None => Some(Judging::Running {
                    run_id: end.run_id.clone(),
                }),
                Some(_) => None,
            };
        }
        if let Some(fix) = self.fixes.last_mut()
            && let Some(end) = &fix.end
            && !is_kept(&end.verdict)
        {
            match end.head {
                None => fix.end = None,
                Some(_) => {
                    self.fixes.pop();
                }
            }
        }
        self.prefixes.retain(|_, verdict| chain::is_final(verdict));
    }

    /// The fix that has not ended.
    pub fn open_fix(&self) -> Option<&CaseFix> {
        self.fixes.last().filter(|fix| fix.end.is_none())
    }

    /// The run that judged the whole and accepted it, once the case has finished.
    pub fn accepted(&self) -> Option<&End> {
        let finished = self.finished.as_ref().is_some_and(|it| it.allow);
        match &self.judging {
            Some(Judging::Ended(end)) if finished && end.accepted().is_some() => Some(end),
            _ => None,
        }
    }

    /// The changes of the part `id`, oldest first; empty if it has no accepted result.
    pub fn changes(&self, id: &str) -> Vec<PartChange> {
        let parts = self.parts.as_ref();
        let standing = parts.and_then(|parts| parts.nodes.get(id));
        let Some(Standing::Ended(end)) = standing else {
            return Vec::new();
        };
        let (Some(from), Some(to)) = (self.bases.get(id), end.accepted()) else {
            return Vec::new();
        };
        let change = |from: &Oid, to: &Oid| PartChange {
            from: from.clone(),
            to: to.clone(),
        };
        let mut changes = vec![change(from, to)];
        for fix in self.fixes.iter().filter(|fix| fix.start.part == id) {
            let Some(to) = fix.end.as_ref().and_then(End::accepted) else {
                continue;
            };
            if !fix.start.keeps {
                changes.clear();
            }
            changes.push(change(&fix.start.base_commit, to));
        }
        changes
    }

    /// Whether `commit` is the result of a part or of a fix.
    pub fn has_result(&self, commit: &Oid) -> bool {
        let parts = self.parts.iter().flat_map(|parts| parts.nodes.values());
        let parts = parts.filter_map(|standing| match standing {
            Standing::Ended(end) => end.commit.as_ref(),
            _ => None,
        });
        let fixes = self.fixes.iter().filter_map(|fix| fix.end.as_ref());
        let mut all = parts.chain(fixes.filter_map(|end| end.commit.as_ref()));
        all.any(|it| it == commit)
    }

    /// Whether `run_id` is a run of this case: a part, a fix or the one that judges the whole.
    pub fn has_run(&self, run_id: &str) -> bool {
        self.runs().iter().any(|(_, run)| *run == run_id)
    }

    /// The runs of the case with the parts that they belong to; the whole has none.
    pub fn runs(&self) -> Vec<(Option<&str>, &str)> {
        let parts = self.parts.iter().flat_map(|parts| &parts.nodes);
        let parts = parts.filter_map(|(node, standing)| {
            let run_id = match standing {
                Standing::Running { run_id } | Standing::Left { run_id } => run_id,
                Standing::Ended(end) => &end.run_id,
                Standing::NotRun(_) => return None,
            };
            Some((Some(node.as_str()), run_id.as_str()))
        });
        let fixes = self.fixes.iter();
        let fixes = fixes.map(|fix| (Some(fix.start.part.as_str()), fix.start.run_id.as_str()));
        let whole = match &self.judging {
            Some(Judging::Running { run_id }) => Some((None, run_id.as_str())),
            Some(Judging::Ended(end)) => Some((None, end.run_id.as_str())),
            None => None,
        };
        parts.chain(fixes).chain(whole).collect()
    }

    /// The parts of `chain` in the order in which they are merged.
    pub fn order<'a>(&self, chain: &'a Chain) -> Vec<&'a str> {
        let id = |at: &usize| chain.nodes[*at].id.as_str();
        chain.order.iter().map(id).collect()
    }
}
