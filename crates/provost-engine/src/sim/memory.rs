//! Simulated ledger, registry and bundle, in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::bundle::verify::Pins;
use provost_core::bundle::layout::LEDGER;
use provost_core::code::Code;
use provost_core::lease::{self, Acquired, Answer, Lease, LeaseRequest, Owner};
use provost_core::object::sha256;
use provost_core::record::{Event, Head, Record};

use super::Power;
use super::host::LOG;
use crate::ports::{Bundle, Kept, Ledger, PortError, Registry};

#[derive(Debug)]
pub struct SimLedger {
    power: Power,
    records: Vec<Record>,
    head: Head,
    /// What its file would hold.
    pub text: Rc<RefCell<String>>,
}

impl SimLedger {
    pub fn new(power: &Power) -> Self {
        Self {
            power: power.clone(),
            records: Vec::new(),
            head: Head::genesis(),
            text: Rc::default(),
        }
    }
}

impl Ledger for SimLedger {
    fn records(&self) -> &[Record] {
        &self.records
    }

    fn append(&mut self, event: Event) -> Result<(), PortError> {
        let Self {
            power,
            records,
            head,
            text,
        } = self;
        power.call(|| {
            let record = head.append(event);
            *text.borrow_mut() += &format!("{}\n", record.line());
            records.push(record);
        })
    }

    fn head(&self) -> Head {
        self.head.clone()
    }
}

#[derive(Debug)]
pub struct SimRegistry {
    power: Power,
    fence: u64,
    pub leases: Vec<Lease>,
    /// The only process that is alive.
    pub alive: Owner,
    pub pins: BTreeMap<String, Head>,
    /// The failure, and the renewal at which it happens, from 1.
    pub trouble: Option<(u32, Trouble)>,
    pub renewals: u32,
}

/// A failure of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Another run has the scope by then.
    Lost,
    /// The registry does not answer this call.
    Unreachable,
}

impl SimRegistry {
    pub fn new(power: &Power, alive: Owner) -> Self {
        Self {
            power: power.clone(),
            fence: 0,
            leases: Vec::new(),
            alive,
            pins: BTreeMap::new(),
            trouble: None,
            renewals: 0,
        }
    }
}

impl Registry for SimRegistry {
    fn acquire(&mut self, request: &LeaseRequest) -> Result<Acquired, PortError> {
        let Self {
            power,
            fence,
            leases,
            alive,
            ..
        } = self;
        let decision = lease::decide(request, leases, &|owner| owner == alive)
            .map_err(|error| PortError::of(Code::Bug, error))?;
        power.call(|| {
            leases.retain(|lease| !decision.gone.contains(&lease.run_id));
            match decision.answer {
                Answer::Own(lease) => Acquired::Granted(lease),
                Answer::Held(holders) => Acquired::Held(holders),
                Answer::Free => {
                    *fence += 1;
                    let lease = request.granted(*fence);
                    leases.push(lease.clone());
                    Acquired::Granted(lease)
                }
            }
        })
    }

    fn renew(&mut self, run_id: &str, fence: u64, expires_at: i64) -> Result<bool, PortError> {
        self.renewals += 1;
        let trouble = self.trouble.filter(|(at, _)| *at == self.renewals);
        match trouble.map(|(_, trouble)| trouble) {
            Some(Trouble::Lost) => self.leases.clear(),
            Some(Trouble::Unreachable) => {
                return Err(PortError::new(
                    Code::StoreFailed,
                    "the registry does not answer",
                ));
            }
            None => {}
        }
        let Self { power, leases, .. } = self;
        power.call(|| {
            let mine = |lease: &&mut Lease| lease.run_id == run_id && lease.fence == fence;
            match leases.iter_mut().find(mine) {
                Some(lease) => {
                    lease.expires_at = expires_at;
                    true
                }
                None => false,
            }
        })
    }

    fn release(&mut self, run_id: &str) -> Result<(), PortError> {
        let Self { power, leases, .. } = self;
        power.call(|| leases.retain(|lease| lease.run_id != run_id))
    }

    fn release_one(&mut self, run_id: &str, fence: u64) -> Result<bool, PortError> {
        let Self { power, leases, .. } = self;
        power.call(|| {
            let before = leases.len();
            leases.retain(|lease| lease.run_id != run_id || lease.fence != fence);
            leases.len() < before
        })
    }

    fn leases(&mut self) -> Result<Vec<Lease>, PortError> {
        let Self { power, leases, .. } = self;
        power.call(|| leases.clone())
    }

    fn pin(&mut self, run_id: &str, head: &Head) -> Result<(), PortError> {
        let Self { power, pins, .. } = self;
        power.call(|| {
            pins.insert(run_id.to_owned(), head.clone());
        })
    }

    fn pin_after(&mut self, run_id: &str, head: &Head) -> Result<(), PortError> {
        self.pin(&format!("{run_id}/after"), head)
    }

    fn pinned(&mut self, run_id: &str) -> Result<Pins, PortError> {
        let Self { power, pins, .. } = self;
        power.call(|| Pins {
            ledger: pins.get(run_id).cloned(),
            after: pins.get(&format!("{run_id}/after")).cloned(),
        })
    }
}

#[derive(Debug)]
pub struct SimBundle {
    power: Power,
    pub files: BTreeMap<String, Vec<u8>>,
    /// The ledger, if `all` is to include it.
    pub ledger: Option<Rc<RefCell<String>>>,
}

impl SimBundle {
    /// A bundle that holds the one log of the simulated machine.
    pub fn new(power: &Power) -> Self {
        Self {
            power: power.clone(),
            files: BTreeMap::from([(LOG.to_owned(), Vec::new())]),
            ledger: None,
        }
    }

    /// Every file, including the ledger.
    pub fn all(&self) -> BTreeMap<String, Vec<u8>> {
        let mut all = self.files.clone();
        let ledger = self.ledger.as_ref();
        let ledger = ledger.map(|text| text.borrow().clone().into_bytes());
        all.extend(ledger.map(|text| (LEDGER.to_owned(), text)));
        all
    }
}

impl Bundle for SimBundle {
    fn put_all(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), PortError> {
        // One call for each file, so that the power can fail between them.
        for (name, bytes) in files {
            let Self { power, files, .. } = self;
            power.call(|| {
                files.insert(name.clone(), bytes.clone());
            })?;
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PortError> {
        self.power.call(|| self.files.get(name).cloned())
    }

    fn list(&self) -> Result<Vec<Kept>, PortError> {
        let kept = |(name, bytes): (&String, &Vec<u8>)| Kept {
            name: name.clone(),
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
        };
        self.power.call(|| self.all().iter().map(kept).collect())
    }

    fn tidy(&mut self) -> Result<(), PortError> {
        // Files are written whole here.
        self.power.call(|| ())
    }
}
