//! A network endpoint: a host and a port.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::address::{self, Reach};

/// The longest name of a host in the domain name system.
const LONGEST_NAME: usize = 253;
/// The longest label of a name.
const LONGEST_LABEL: usize = 63;

/// A host and a port: what a contract grants, and what a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Endpoint {
    pub host: Host,
    /// Never 0.
    pub port: u16,
}

/// A host in its canonical spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// The machine that Provost runs on, by its usual name.
    Localhost,
    /// A name that must be resolved: letters, digits, hyphens and dots, in lower case.
    Name(Name),
    Address(IpAddr),
}

/// A host name; it can be passed to a program as an argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("names no port from 1 to 65535; write HOST:PORT")]
    Port,
    #[error("names no host; write HOST:PORT")]
    Host,
    #[error("is more than a host and a port; write HOST:PORT, without scheme and path")]
    More,
    #[error("holds a wildcard; name every host that is to be reached")]
    Wildcard,
    /// Letters beyond ASCII can look like others.
    #[error("holds letters that look like others; write the name in its `xn--` form")]
    Foreign,
    /// Not a valid name of the domain name system.
    #[error("is no name of a host")]
    Name,
    /// Parsers disagree about the meaning of such a name.
    #[error("ends in a number and is no IPv4 address; write the address with four plain numbers")]
    Number,
    #[error("has no IPv6 address between its brackets")]
    Bracket,
    /// The unspecified address, or a multicast address.
    #[error("is an address that stands for no single host")]
    NoHost,
    /// An IPv4 address in an IPv6 form.
    #[error("is an IPv4 address written as IPv6; write it as IPv4")]
    Disguised,
}

impl Endpoint {
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        if text.contains(['/', '@', '?', '#']) {
            return Err(EndpointError::More);
        }
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (inside, after) = rest.split_once(']').ok_or(EndpointError::Bracket)?;
            let port = after.strip_prefix(':').ok_or(EndpointError::Port)?;
            (Host::parse_bracketed(inside)?, port)
        } else {
            let (host, port) = text.rsplit_once(':').ok_or(EndpointError::Port)?;
            (Host::parse(host)?, port)
        };
        Ok(Self {
            host,
            port: parse_port(port)?,
        })
    }

    pub fn parse_with_default(text: &str, port: u16) -> Result<Self, EndpointError> {
        let after_bracket = text.rsplit(']').next().unwrap_or(text);
        if after_bracket.contains(':') {
            return Self::parse(text);
        }
        Self::parse(&format!("{text}:{port}"))
    }
}

impl Host {
    fn parse(text: &str) -> Result<Self, EndpointError> {
        if text.is_empty() {
            return Err(EndpointError::Host);
        }
        if text.contains('*') {
            return Err(EndpointError::Wildcard);
        }
        if !text.is_ascii() {
            return Err(EndpointError::Foreign);
        }
        let text = text.to_ascii_lowercase();
        if text == "localhost" {
            return Ok(Self::Localhost);
        }
        if let Ok(address) = Ipv4Addr::from_str(&text) {
            return Self::of(address.into());
        }
        Name::parse(text).map(Self::Name)
    }

    fn parse_bracketed(text: &str) -> Result<Self, EndpointError> {
        let address = Ipv6Addr::from_str(text).map_err(|_| EndpointError::Bracket)?;
        Self::of(address.into())
    }

    /// The host at `address`, if the address belongs to a single host.
    fn of(address: IpAddr) -> Result<Self, EndpointError> {
        match address::reach(address) {
            Reach::Unspecified | Reach::Multicast => Err(EndpointError::NoHost),
            Reach::Disguised => Err(EndpointError::Disguised),
            Reach::Public
            | Reach::Loopback
            | Reach::Private
            | Reach::LinkLocal
            | Reach::Metadata
            | Reach::Reserved => Ok(Self::Address(address)),
        }
    }

    /// The addresses of the host that need no resolver.
    pub fn known_addresses(&self) -> Option<Vec<IpAddr>> {
        match self {
            Self::Localhost => Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
            Self::Address(address) => Some(vec![*address]),
            Self::Name(_) => None,
        }
    }
}

impl Name {
    fn parse(text: String) -> Result<Self, EndpointError> {
        let is_label = |label: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            !label.is_empty()
                && label.len() <= LONGEST_LABEL
                && label.bytes().all(plain)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if text.len() > LONGEST_NAME || !text.split('.').all(is_label) {
            return Err(EndpointError::Name);
        }
        let last = text.rsplit('.').next().unwrap_or(&text);
        let hexadecimal = last
            .strip_prefix("0x")
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(EndpointError::Number);
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn parse_port(text: &str) -> Result<u16, EndpointError> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse()
        .ok()
        .filter(|_| plain)
        .ok_or(EndpointError::Port)
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Localhost => out.write_str("localhost"),
            Self::Name(name) => out.write_str(name.as_str()),
            Self::Address(IpAddr::V4(address)) => write!(out, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(out, "[{address}]"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Endpoint {
    type Error = EndpointError;

    fn try_from(text: String) -> Result<Self, EndpointError> {
        Self::parse(&text)
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> Self {
        endpoint.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_place_has_one_spelling() {
        let cases = [
            ("api.example.com:443", "api.example.com:443"),
            ("API.Example.COM:443", "api.example.com:443"),
            ("xn--bcher-kva.example:80", "xn--bcher-kva.example:80"),
            ("build_host:8080", "build_host:8080"),
            ("3com.com:1", "3com.com:1"),
            ("LocalHost:65535", "localhost:65535"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("[2606:4700:0:0::1111]:53", "[2606:4700::1111]:53"),
        ];
        for (text, want) in cases {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.to_string(), want, "{text}");
            assert_eq!(Endpoint::parse(want), Ok(endpoint), "{text}");
        }
    }

    #[test]
    fn what_names_no_single_place_is_refused_with_a_reason() {
        use EndpointError as E;
        let long = format!("{}.example:80", "a".repeat(64));
        let cases = [
            ("", E::Port),
            ("example.com", E::Port),
            ("example.com:", E::Port),
            ("example.com:0", E::Port),
            ("example.com:080", E::Port),
            ("example.com:+80", E::Port),
            ("example.com:65536", E::Port),
            ("[::1]", E::Port),
            ("[::1]80", E::Port),
            (":80", E::Host),
            ("https://example.com:443", E::More),
            ("example.com:443/v1", E::More),
            ("user@example.com:443", E::More),
            ("*:443", E::Wildcard),
            ("*.example.com:443", E::Wildcard),
            ("bücher.example:443", E::Foreign),
            ("еxample.com:443", E::Foreign),
            ("example.com.:443", E::Name),
            ("example..com:443", E::Name),
            ("-rf:443", E::Name),
            ("a b:443", E::Name),
            ("a\n:443", E::Name),
            ("example.com:443:443", E::Name),
            ("::1:443", E::Name),
            (&long, E::Name),
            ("2130706433:80", E::Number),
            ("127.1:80", E::Number),
            ("127.0.0.01:80", E::Number),
            ("0x7f000001:80", E::Number),
            ("a.0x:80", E::Number),
            ("1.2.3.4.5:80", E::Number),
            ("[127.0.0.1]:80", E::Bracket),
            ("[fe80::1%eth0]:80", E::Bracket),
            ("[::1:80", E::Bracket),
            ("0.0.0.0:80", E::NoHost),
            ("[::]:80", E::NoHost),
            ("224.0.0.1:80", E::NoHost),
            ("255.255.255.255:80", E::NoHost),
            ("[ff02::1]:80", E::NoHost),
            ("[::ffff:127.0.0.1]:80", E::Disguised),
            ("[64:ff9b::a9fe:a9fe]:80", E::Disguised),
        ];
        for (text, want) in cases {
            assert_eq!(Endpoint::parse(text), Err(want), "{text}");
        }
    }

    #[test]
    fn a_missing_port_is_the_one_of_the_scheme() {
        let parse = |text| Endpoint::parse_with_default(text, 80).unwrap().to_string();
        assert_eq!(parse("example.com"), "example.com:80");
        assert_eq!(parse("example.com:81"), "example.com:81");
        assert_eq!(parse("[::1]"), "[::1]:80");
        assert_eq!(parse("[::1]:81"), "[::1]:81");
        assert!(Endpoint::parse_with_default("example.com:", 80).is_err());
        assert!(Endpoint::parse_with_default("", 80).is_err());
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer_and_what_is_read_is_spelled_the_same(text in ".{0,40}") {
            if let Ok(endpoint) = Endpoint::parse(&text) {
                let spelled = endpoint.to_string();
                prop_assert_eq!(Endpoint::parse(&spelled), Ok(endpoint));
                prop_assert!(spelled.eq_ignore_ascii_case(&text) || text.starts_with('['));
            }
        }
    }
}
