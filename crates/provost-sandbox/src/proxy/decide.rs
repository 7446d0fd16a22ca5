//! Decides about a request for a network endpoint.

use std::net::IpAddr;

use provost_core::net::address::{Reach, reach};
use provost_core::net::endpoint::Endpoint;

/// Why an endpoint may not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("`{0}` is not granted")]
    NotGranted(Endpoint),
    /// Its name resolves to an address that a name may not resolve to.
    #[error("`{target}` leads to the {reach} address {address}, which is not granted itself")]
    Private {
        /// The requested endpoint.
        target: Endpoint,
        /// The first of its addresses.
        address: IpAddr,
        reach: Reach,
    },
    /// Its name has no address.
    #[error("`{0}` has no address")]
    Nowhere(Endpoint),
}

/// Whether `target` is exactly one of the `grants`.
///
/// This is checked before the name is resolved: a name alone can carry a message to its name
/// server.
pub(super) fn granted(target: &Endpoint, grants: &[Endpoint]) -> Result<(), Refusal> {
    if grants.contains(target) {
        return Ok(());
    }
    Err(Refusal::NotGranted(target.clone()))
}

/// Which of the `addresses` of `target` may be dialled, in their order.
///
/// The caller must dial one of these and not resolve the name again.
pub(super) fn decide(
    target: &Endpoint,
    addresses: &[IpAddr],
    grants: &[Endpoint],
) -> Result<Vec<IpAddr>, Refusal> {
    granted(target, grants)?;
    let literal = target.host.known_addresses();
    let allowed = |address: &IpAddr| {
        let of_target = literal.as_ref().is_some_and(|own| own.contains(address));
        let itself = |grant: &Endpoint| {
            let own = grant.host.known_addresses();
            grant.port == target.port && own.is_some_and(|own| own.contains(address))
        };
        of_target || reach(*address) == Reach::Public || grants.iter().any(itself)
    };
    let dialled: Vec<IpAddr> = addresses.iter().copied().filter(allowed).collect();
    match (dialled.is_empty(), addresses.first()) {
        (false, _) => Ok(dialled),
        (true, None) => Err(Refusal::Nowhere(target.clone())),
        (true, Some(address)) => Err(Refusal::Private {
            target: target.clone(),
            address: *address,
            reach: reach(*address),
        }),
    }
}

/// Whether `target` can be a place of the public internet: a name, whose addresses are judged once
/// they are known, or a public address.
pub(super) fn may_be_public(target: &Endpoint) -> bool {
    let known = target.host.known_addresses().unwrap_or_default();
    known
        .into_iter()
        .all(|address| reach(address) == Reach::Public)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decision as text.
    fn decided(target: &str, addresses: &[&str], grants: &[&str]) -> String {
        let endpoint = |text: &&str| Endpoint::parse(text).unwrap();
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let grants: Vec<Endpoint> = grants.iter().map(endpoint).collect();
        match decide(&endpoint(&target), &addresses, &grants) {
            Ok(dialled) => {
                let words: Vec<String> = dialled.iter().map(IpAddr::to_string).collect();
                words.join(" ")
            }
            Err(Refusal::NotGranted(_)) => "not granted".to_owned(),
            Err(Refusal::Nowhere(_)) => "nowhere".to_owned(),
            Err(Refusal::Private { reach, .. }) => reach.to_string(),
        }
    }

    #[test]
    fn only_exactly_what_was_granted_is_reached() {
        let grants = &["api.example.com:443", "127.0.0.1:8080"];
        let cases = [
            ("api.example.com:443", "1.2.3.4"),
            ("api.example.com:80", "not granted"),
            ("example.com:443", "not granted"),
            ("x.api.example.com:443", "not granted"),
            ("api.example.com.evil.net:443", "not granted"),
            ("1.2.3.4:443", "not granted"),
            ("localhost:8080", "not granted"),
            ("[::1]:8080", "not granted"),
        ];
        for (target, want) in cases {
            assert_eq!(decided(target, &["1.2.3.4"], grants), want, "{target}");
        }
        assert_eq!(decided("a.b:1", &["1.2.3.4"], &[]), "not granted");
        let own = decided("127.0.0.1:8080", &["127.0.0.1"], grants);
        assert_eq!(own, "127.0.0.1");
        let localhost = decided("localhost:1", &["127.0.0.1", "::1"], &["localhost:1"]);
        assert_eq!(localhost, "127.0.0.1 ::1");
    }

    #[test]
    fn any_place_is_a_public_one() {
        for (target, want) in [
            ("api.example.com:443", true),
            ("1.2.3.4:80", true),
            ("localhost:80", false),
            ("127.0.0.1:80", false),
            ("[::1]:80", false),
            ("10.0.0.1:443", false),
            ("169.254.169.254:80", false),
        ] {
            assert_eq!(
                may_be_public(&Endpoint::parse(target).unwrap()),
                want,
                "{target}"
            );
        }
        // A name that was granted as any other still leads to no private machine.
        let name = &["intern.example.com:443"];
        assert_eq!(decided(name[0], &["10.0.0.1"], name), "private");
    }

    #[test]
    fn a_name_does_not_lead_to_private_machines() {
        let cases: &[(&[&str], &[&str], &str)] = &[
            (&[], &[], "nowhere"),
            (&["10.0.0.1"], &[], "private"),
            (&["127.0.0.1"], &[], "loopback"),
            (&["169.254.169.254"], &[], "metadata"),
            (&["::ffff:1.2.3.4"], &[], "translated"),
            (&["64:ff9b::102:304"], &[], "translated"),
            (&["0.0.0.0"], &[], "unspecified"),
            (&["10.0.0.1", "1.2.3.4"], &[], "1.2.3.4"),
            (&["10.0.0.1", "10.0.0.2"], &["10.0.0.2:443"], "10.0.0.2"),
            (&["10.0.0.1"], &["10.0.0.1:80"], "private"),
            (&["127.0.0.1"], &["localhost:443"], "127.0.0.1"),
            (&["127.0.0.1"], &["localhost:80"], "loopback"),
        ];
        for (addresses, further, want) in cases {
            let mut grants = vec!["api.example.com:443"];
            grants.extend(*further);
            let answer = decided("api.example.com:443", addresses, &grants);
            assert_eq!(answer, *want, "{addresses:?} {further:?}");
        }
    }
}
