//! Change service: wires the ports of one repository for controlled changes.

use std::path::{Path, PathBuf};

use provost_change::analysis::run::find;
use provost_change::evidence;
use provost_change::ports::{AnalysisStore as _, ChangeEvidence as _, IntentRegistry};
use provost_change::service::{Ports, Session};
use provost_core::code::Code;
use provost_core::object::sha256;
use provost_engine::ports::Signer as _;
use provost_host::bundle::Directory;
use provost_host::process_owner;
use provost_host::shared_checkout::{RandomNames, SharedCheckout};
use serde::de::DeserializeOwned;

use super::Trouble;
use crate::answer::Failure;
use crate::lens::ChangeLens;
use crate::places::Places;
use crate::session::{KeySigner, SystemClock};
use crate::stores::{self, AnalysisFiles, ChangeFiles};

pub struct ChangeService {
    place: Places,
    checkout: SharedCheckout,
    registry: Box<dyn IntentRegistry + Send>,
    analyses: AnalysisFiles,
    files: ChangeFiles,
    lens: ChangeLens,
    /// Read on first use.
    signer: Option<KeySigner>,
}

impl ChangeService {
    /// The service of the checkout around `directory`; `session` names whose analyses are kept on
    /// disk.
    pub fn open(directory: &Path, session: Option<&str>) -> Result<Self, Trouble> {
        let place = Places::of(directory)?;
        let checkout = SharedCheckout::find(directory).map_err(|error| {
            Failure::of(Code::NotARepository, &error)
                .hint("change to a checkout of a git repository")
        })?;
        place.prepare_changes()?;
        let files = ChangeFiles::open(&place.changes()).map_err(Failure::from)?;
        let analyses = match session {
            Some(name) => AnalysisFiles::of_session(files.clone(), name),
            None => AnalysisFiles::of_process(files.clone()),
        };
        let registry = stores::intent_registry(&place.registry_path()).map_err(Failure::from)?;
        let lens = ChangeLens(crate::lens::of(&place));
        Ok(Self {
            place,
            checkout,
            registry,
            analyses,
            files,
            lens,
            signer: None,
        })
    }

    pub fn top(&self) -> &Path {
        self.checkout.top()
    }

    /// Whether `place` belongs to this checkout and not to one inside of it.
    pub fn is_nearest(&self, place: &Path) -> bool {
        let nearest = place
            .ancestors()
            .find(|directory| directory.join(".git").symlink_metadata().is_ok());
        nearest == Some(self.top())
    }

    /// `place` relative to the top.
    pub fn below(&self, place: &Path) -> Result<String, Trouble> {
        let below = place.strip_prefix(self.top()).ok().and_then(Path::to_str);
        match below {
            Some(below) => Ok(below.to_owned()),
            None => Err(Trouble::Request(
                "`root` lies outside of its checkout".to_owned(),
            )),
        }
    }

    pub fn registry_path(&self) -> PathBuf {
        self.place.registry_path()
    }

    /// Whether `intent` or `run` is known here.
    pub fn knows(&mut self, session: &Session, intent: Option<&str>, run: Option<&str>) -> bool {
        if let Some(id) = intent {
            let known = self.registry.look(Some(id)).unwrap_or_default();
            let mine = |one: &provost_change::intent::Intent| {
                one.intent_id == id && one.owner == session.me
            };
            return known.intents.iter().any(mine);
        }
        let heads = self.analyses.heads().unwrap_or_default();
        run.is_some_and(|run| find(&heads, run).is_ok())
    }

    /// Runs a use case with all ports of the repository.
    pub fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Ports<'_>) -> Result<T, provost_change::service::ChangeError>,
    ) -> Result<T, Trouble> {
        self.signer()?;
        let Some(signer) = &self.signer else {
            return Err(Trouble::Request("there is no key".to_owned()));
        };
        let mut ports = Ports {
            registry: self.registry.as_mut(),
            checkout: &self.checkout,
            lens: &self.lens,
            analyses: &mut self.analyses,
            evidence: &mut self.files,
            signer,
            clock: &SystemClock,
            names: &RandomNames,
            alive: &process_owner::alive,
        };
        Ok(work(&mut ports)?)
    }

    /// The key, made on first use.
    fn signer(&mut self) -> Result<&KeySigner, Trouble> {
        match &mut self.signer {
            Some(signer) => Ok(signer),
            none => Ok(none.insert(KeySigner::of(&self.place)?)),
        }
    }

    /// The document `name` of the change that `key` was noted for.
    pub fn document<T: DeserializeOwned>(
        &mut self,
        key: &str,
        name: &str,
    ) -> Result<Option<(T, String)>, Trouble> {
        match self.registry.intent_of(key)? {
            Some(intent_id) => self.evidence(&intent_id, name),
            None => Ok(None),
        }
    }

    /// The document `name` of a change with its digest, if all of its evidence verifies.
    pub fn evidence<T: DeserializeOwned>(
        &mut self,
        intent_id: &str,
        name: &str,
    ) -> Result<Option<(T, String)>, Trouble> {
        if !self.place.changes().join(intent_id).is_dir() {
            return Ok(None);
        }
        self.require_evidence(intent_id)?;
        let Some(bytes) = self.files.get(intent_id, name)? else {
            return Ok(None);
        };
        let document = provost_core::json::parse_as(&bytes)
            .map_err(|error| Failure::of(Code::EvidenceAltered, &error))?;
        Ok(Some((document, sha256(&bytes))))
    }

    /// Refuses evidence of a change that does not verify as a whole.
    fn require_evidence(&mut self, intent_id: &str) -> Result<(), Trouble> {
        let place = self.place.changes().join(intent_id);
        let directory = Directory::open(&place)
            .map_err(|error| Failure::of(Code::EvidenceIncomplete, &error))?;
        let pin = self.place.pins_of_change(intent_id)?.ledger;
        let report = evidence::verify(&directory, self.signer()?.trusted(), pin.as_ref(), None);
        let code = report.code();
        if !report.holds() {
            let hint = format!("`provost verify {intent_id}` lists everything that is wrong");
            return Err(Failure::new(code, report.verdict().reason)
                .hint(hint)
                .into());
        }
        if report.intent_id.as_deref() != Some(intent_id) {
            let words = format!("the evidence of {intent_id} is that of another change");
            return Err(Failure::new(Code::EvidenceAltered, words).into());
        }
        Ok(())
    }

    /// Drops all analyses of the session.
    pub fn forget_runs(&mut self) -> Result<usize, Trouble> {
        let heads = self.analyses.heads()?;
        let ids: Vec<String> = heads.into_iter().map(|head| head.run_id).collect();
        self.analyses.drop(&ids)?;
        Ok(ids.len())
    }

    /// Removes reports that no evidence refers to.
    pub fn sweep(&self) -> Result<usize, Trouble> {
        let seconds = u64::try_from(provost_change::intent::RETENTION / 1000).unwrap_or(0);
        Ok(self.files.sweep_reports(seconds).map_err(Failure::from)?)
    }
}
