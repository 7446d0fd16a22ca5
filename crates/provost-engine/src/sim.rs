//! A simulated machine, memory and clock in one process, with a power switch.
//!
//! Every call of every port counts. The power can be cut at any of them, before or after the call
//! took effect; from then on every call fails, as if the process were gone. What a real disk, git
//! repository or database would keep is kept: workspaces, refs, ledger, leases and bundle files.

mod host;
mod memory;
mod origin;

pub use host::{Behaviour, Opinion, SimHost, oid};
pub use memory::{SimBundle, SimLedger, SimRegistry, Trouble};
pub use origin::SimOrigin;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use provost_core::bundle::key::PublicKey;
use provost_core::code::Code;
use provost_core::question::QuestionAnswer;
use provost_core::run::fact::Cancel;
use provost_core::run::{Gate, State, Step};
use provost_core::verdict::Verdict;

use crate::ports::{Answers, Clock, Observer, ObserverChoice, PortError, Progress, Signer};

/// Whether a call that the power cut hits still took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It did not.
    Before,
    /// It did, and the caller got no answer.
    After,
    /// It did not, and the power comes back at once: only this call fails.
    Flicker,
}

/// The power switch of a simulated machine.
#[derive(Debug, Clone)]
pub struct Power {
    calls: Rc<Cell<u32>>,
    cut: Rc<Cell<Option<(u32, Cut)>>>,
    out: Rc<Cell<bool>>,
    struck: Rc<Cell<bool>>,
    starts: Rc<Cell<u32>>,
}

impl Power {
    /// A machine whose power never fails.
    pub fn steady() -> Self {
        Self {
            calls: Rc::default(),
            cut: Rc::default(),
            out: Rc::default(),
            struck: Rc::default(),
            starts: Rc::default(),
        }
    }

    /// A machine whose power fails at call number `call`, from 1.
    pub fn cut_at(call: u32, cut: Cut) -> Self {
        let power = Self::steady();
        power.cut.set(Some((call, cut)));
        power
    }

    /// Whether the power is out.
    pub fn is_out(&self) -> bool {
        self.out.get()
    }

    /// Whether a call was hit, though the power may be back.
    pub fn has_struck(&self) -> bool {
        self.struck.get()
    }

    /// The power fails now.
    fn fail(&self) {
        self.out.set(true);
    }

    /// The machine starts again, and the power stays on.
    pub fn restore(&self) {
        self.out.set(false);
        self.cut.set(None);
        self.starts.set(self.starts.get() + 1);
    }

    /// How often the machine was started again; a process from before holds nothing afterwards.
    fn starts(&self) -> u32 {
        self.starts.get()
    }

    /// Carries out `effect` if there is power.
    pub fn call<T>(&self, effect: impl FnOnce() -> T) -> Result<T, PortError> {
        let gone = || PortError::new(Code::HostFailed, "the power is out");
        if self.is_out() {
            return Err(gone());
        }
        self.calls.set(self.calls.get() + 1);
        match self.cut.get() {
            Some((call, cut)) if call == self.calls.get() => {
                self.struck.set(true);
                self.out.set(cut != Cut::Flicker);
                if cut == Cut::After {
                    effect();
                }
                Err(gone())
            }
            _ => Ok(effect()),
        }
    }
}

/// A signer without a key: the envelope is the statement itself.
#[derive(Debug)]
pub struct SimSigner;

impl Signer for SimSigner {
    fn sign(&self, statement: &[u8]) -> Result<Vec<u8>, PortError> {
        Ok(statement.to_vec())
    }

    fn trusted(&self) -> &[PublicKey] {
        &[]
    }
}

/// A clock that moves when it is read.
#[derive(Debug)]
pub struct SimClock {
    millis: Cell<i64>,
    stride: i64,
}

impl SimClock {
    /// A clock that moves by `stride` milliseconds.
    pub fn striding(stride: i64) -> Self {
        Self {
            millis: Cell::new(0),
            stride,
        }
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::striding(1)
    }
}

impl Clock for SimClock {
    fn timestamp(&self) -> String {
        format!("2026-01-01T00:00:00.{:03}Z", self.millis() % 1000)
    }

    fn millis(&self) -> i64 {
        self.millis.set(self.millis.get() + self.stride);
        self.millis.get()
    }
}

/// An observer that stores the verdicts of the gates.
#[derive(Debug, Default)]
pub struct SimObserver {
    pub gates: RefCell<Vec<(Gate, bool)>>,
    /// The step before which the run is cancelled.
    pub cancels: Option<Step>,
    /// The cancel request that exists from the beginning on.
    pub cancel_request: Option<Cancel>,
}

/// Answers that a test leaves for the questions of the agent.
#[derive(Debug, Default)]
pub struct SimAnswers(pub RefCell<BTreeMap<String, QuestionAnswer>>);

impl Answers for SimAnswers {
    fn answer(&self, digest: &str) -> Option<QuestionAnswer> {
        self.0.borrow().get(digest).cloned()
    }

    fn forget(&self, digest: &str) {
        self.0.borrow_mut().remove(digest);
    }
}

impl Observer for SimObserver {
    fn begins(&mut self, _: &State, step: Step) -> ObserverChoice {
        if self.cancels == Some(step) {
            ObserverChoice::Cancel
        } else {
            ObserverChoice::Continue
        }
    }

    fn cancel(&mut self) -> Option<Cancel> {
        self.cancel_request.clone()
    }

    fn judged(&mut self, gate: Gate, verdict: &Verdict) {
        self.gates.borrow_mut().push((gate, verdict.allow));
    }

    fn progressed(&mut self, _: &Progress) -> ObserverChoice {
        ObserverChoice::Continue
    }
}
