//! A room with a few runs about which nothing else is known.

use std::sync::{Arc, Mutex};

use provost_core::code::Code;
use provost_engine::ports::PortError;
use provost_engine::query::{ComparisonView, GroundView, LiveView, RunStatus, RunSummary};

use super::HOSTILE;
use crate::door::OfferedCode;
use crate::room::{
    AskedBy, AskedCommand, CasePage, ChangeRow, CommandOutcome, ControlRoom, EvidenceView,
    RepositoryRow, RoomChange, RoomChanges, RoomCommand, RoomListing, RoomRow, RunPage, SpendView,
    TranscriptPage,
};
use crate::token::TokenRow;

/// A room without runs, whose repository has a name that an attacker chose.
#[derive(Default)]
pub(super) struct EmptyRoom {
    pub(super) tokens: Vec<TokenRow>,
    pub(super) done: Mutex<Vec<RoomCommand>>,
    pub(super) asked: Mutex<Vec<AskedBy>>,
    pub(super) changes: Mutex<Vec<RoomChange>>,
    /// A code, and the server that it is for.
    pub(super) offered: Mutex<Option<(String, OfferedCode)>>,
}

fn none<T>() -> Result<T, PortError> {
    Err(PortError::new(Code::NotFound, HOSTILE))
}

impl ControlRoom for EmptyRoom {
    fn repositories(&self) -> Vec<RepositoryRow> {
        vec![RepositoryRow {
            id: "0123456789abcdef".to_owned(),
            name: HOSTILE.to_owned(),
            path: "/repo".to_owned(),
            problem: None,
        }]
    }

    fn listing(&self, repository: &str) -> Result<Arc<RoomListing>, PortError> {
        if repository == "0123456789abcdef" {
            return Ok(Arc::new(RoomListing::of(rows(), Vec::new())));
        }
        none()
    }

    fn live(&self, _: &str, _: &str) -> Option<LiveView> {
        None
    }

    fn compare(&self, _: &str, _: &[String]) -> Result<ComparisonView, PortError> {
        none()
    }

    fn case(&self, _: &str, _: &str) -> Result<CasePage, PortError> {
        none()
    }

    fn ground(&self, _: &str) -> Result<GroundView<ChangeRow>, PortError> {
        none()
    }

    fn spend(&self) -> Result<SpendView, PortError> {
        Ok(SpendView::default())
    }

    fn signer(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn run(&self, _: &str, _: &str) -> Result<RunPage, PortError> {
        none()
    }

    fn remedy(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn transcript(
        &self,
        _: &str,
        _: &str,
        _: usize,
        _: usize,
    ) -> Result<TranscriptPage, PortError> {
        none()
    }

    fn patch(&self, _: &str, _: &str) -> Result<Arc<Vec<u8>>, PortError> {
        none()
    }

    fn evidence(&self, _: &str, _: &str) -> Result<EvidenceView, PortError> {
        none()
    }

    fn file(&self, _: &str, _: &str, _: &str) -> Result<Vec<u8>, PortError> {
        none()
    }

    fn carry_out(
        &self,
        _: &str,
        _: &str,
        command: &RoomCommand,
        asked: &AskedBy,
    ) -> Result<String, PortError> {
        self.asked.lock().unwrap().push(asked.clone());
        self.done.lock().unwrap().push(command.clone());
        Ok("done".to_owned())
    }

    fn commands(&self, _: &str, _: &str) -> Vec<AskedCommand> {
        let refused = CommandOutcome::Refused {
            code: "LAND_CONFLICT".to_owned(),
            reason: HOSTILE.to_owned(),
        };
        vec![AskedCommand {
            id: "01".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
            command: "land".to_owned(),
            by: "serve-session 0a".to_owned(),
            outcome: refused,
        }]
    }

    fn changes(&self, after: u64) -> RoomChanges {
        let all = self.changes.lock().unwrap();
        RoomChanges {
            changes: all.iter().filter(|it| it.number > after).cloned().collect(),
            last: all.last().map_or(0, |it| it.number),
            lost: after == 0,
        }
    }

    fn offered_code(&self, instance: &str) -> Option<OfferedCode> {
        let offered = self.offered.lock().unwrap();
        let (wanted, code) = offered.as_ref()?;
        (wanted == instance).then(|| code.clone())
    }

    fn now(&self) -> i64 {
        1_000_000
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, PortError> {
        Ok(self.tokens.clone())
    }
}

/// Five accepted runs, newest first.
fn rows() -> Vec<Arc<RoomRow>> {
    let row = |number: u32| {
        let id = format!("run_{number}");
        let status = RunStatus::Success;
        let mut summary = RunSummary::without_facts(&id, status, None, format!("task {number}"));
        summary.own = Some(true);
        Arc::new(RoomRow {
            summary,
            question: None,
            questions: Vec::new(),
            parent: None,
            agent: Some(HOSTILE.to_owned()),
            contract_sha256: None,
            target: None,
            target_moved: false,
            lost: 0,
            part_of: None,
        })
    };
    (1..=5).rev().map(row).collect()
}
