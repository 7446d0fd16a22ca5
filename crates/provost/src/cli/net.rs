//! The flags that grant a sandbox parts of the network.

use std::collections::BTreeSet;

use clap::Args;
use provost_core::code::Code;
use provost_core::net::credential::{Credential, DUMMY};
use provost_core::net::endpoint::Endpoint;
use provost_host::machine;
use provost_host::proxy::Outlet;
use provost_host::sandbox::Profile;

use crate::answer::Failure;
use crate::user_consent::Sent;

// What of the network a sandbox may reach.
#[derive(Args, Default)]
pub(super) struct Net {
    /// A place of the network that may be reached, such as api.example.com:443; every other place
    /// is refused. Repeat for more.
    #[arg(long, value_name = "HOST:PORT", help_heading = NETWORK)]
    net: Vec<Endpoint>,

    /// A secret that the proxy adds to requests outside the sandbox, which gets a dummy: the place,
    /// the field and the variable that holds it, or `@claude` or `@codex` for the login file of
    /// that program; see `provost explain network`. Also grants the place.
    #[arg(long, value_name = "URL FIELD: $NAME", help_heading = NETWORK)]
    credential: Vec<Credential>,
}

// The secrets that a resumed run sends, named again.
#[derive(Args)]
pub(super) struct Again {
    /// A variable (or @claude, @codex) that the run sends, and the place that receives it. The user
    /// names it again for each resumed run. Repeat for more.
    #[arg(long, value_name = "NAME@HOST:PORT", help_heading = NETWORK)]
    pub(super) send: Vec<Sent>,
}

const NETWORK: &str = "Network (`provost explain network`)";

impl Net {
    /// Every granted place, once.
    pub(super) fn places(&self) -> Vec<Endpoint> {
        let with_secret = self.credential.iter().map(|one| &one.endpoint);
        let mut places: Vec<Endpoint> = Vec::new();
        for place in self.net.iter().chain(with_secret) {
            if !places.contains(place) {
                places.push(place.clone());
            }
        }
        places
    }

    /// The first place that `--net` grants.
    pub(super) fn named(&self) -> Option<&Endpoint> {
        self.net.first()
    }

    pub(super) fn credentials(&self) -> &[Credential] {
        &self.credential
    }

    /// The flags as arguments, for another call of this program.
    pub(super) fn words(&self) -> Vec<String> {
        let net = self.net.iter();
        let net = net.flat_map(|place| ["--net".to_owned(), place.to_string()]);
        let credential = self.credential.iter();
        let credential = credential.flat_map(|it| ["--credential".to_owned(), it.to_string()]);
        net.chain(credential).collect()
    }

    /// The configuration of the proxy, including the values of the secrets.
    pub(super) fn outlet(&self) -> Result<Outlet, Failure> {
        let mut places = BTreeSet::new();
        for Credential { endpoint, .. } in &self.credential {
            if !places.insert(endpoint.to_string()) {
                let reason = format!("two credentials for `{endpoint}`");
                let failure = Failure::new(Code::UsageError, reason);
                return Err(failure.hint("give each place one credential"));
            }
        }
        Ok(machine::outlet(&self.credential)?)
    }

    /// Grants the places to the sandbox of `profile`.
    pub(super) fn open(&self, profile: &mut Profile) {
        let places = self.places();
        if !places.is_empty() {
            profile.grant(places);
        }
        for name in self.credential.iter().filter_map(|it| it.source.variable()) {
            profile.env.insert(name.to_owned(), DUMMY.to_owned());
        }
    }
}
