//! Distinguishes public internet addresses from special ones.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The public internet.
    Public,
    /// The unspecified address, which a kernel routes to itself.
    Unspecified,
    Loopback,
    /// A private network, including the inner network of a provider.
    Private,
    LinkLocal,
    /// The metadata service of a cloud machine, which hands out its credentials.
    Metadata,
    Multicast,
    /// An IPv4 address, by way of translation.
    Disguised,
    /// Ranges for documentation, benchmarks and future use.
    Reserved,
}

impl fmt::Display for Reach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Public => "public",
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Multicast => "multicast",
            Self::Disguised => "translated",
            Self::Reserved => "reserved",
        })
    }
}

pub fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => of_four(address),
        IpAddr::V6(address) => of_six(address),
    }
}

/// Public only if no rule says otherwise: every special range is listed.
fn of_four(address: Ipv4Addr) -> Reach {
    match address.octets() {
        // Includes the address at which Azure serves its machines, which looks public.
        [169, 254, 169, 254] | [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16] => {
            Reach::Metadata
        }
        [0, ..] => Reach::Unspecified,
        [127, ..] => Reach::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Reach::Private,
        [169, 254, ..] => Reach::LinkLocal,
        [224..=239, ..] | [255, 255, 255, 255] => Reach::Multicast,
        [192, 88, 99, _] => Reach::Disguised,
        [192, 0, 0 | 2, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => Reach::Reserved,
        _ => Reach::Public,
    }
}

/// Public only if it is in the allocated global range, and not an exception there.
fn of_six(address: Ipv6Addr) -> Reach {
    if address == Ipv6Addr::UNSPECIFIED {
        return Reach::Unspecified;
    }
    if address == Ipv6Addr::LOCALHOST {
        return Reach::Loopback;
    }
    match address.segments() {
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] => Reach::Metadata,
        // Mapped, compatible and translated IPv4, NAT64 with both its prefixes, Teredo, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, ..]
        | [0x2001, 0, ..]
        | [0x2002, ..] => Reach::Disguised,
        [0xff00..=0xffff, ..] => Reach::Multicast,
        [0xfe80..=0xfebf, ..] => Reach::LinkLocal,
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Reach::Private,
        [0x2001, 1..=0x1ff | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Reach::Reserved,
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => Reach::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        use Reach as R;
        let cases = [
            ("1.1.1.1", R::Public),
            ("93.184.215.14", R::Public),
            ("172.15.255.255", R::Public),
            ("172.32.0.0", R::Public),
            ("100.63.255.255", R::Public),
            ("100.128.0.0", R::Public),
            ("0.0.0.0", R::Unspecified),
            ("0.1.2.3", R::Unspecified),
            ("127.0.0.1", R::Loopback),
            ("127.255.255.255", R::Loopback),
            ("10.0.0.1", R::Private),
            ("172.16.0.1", R::Private),
            ("172.31.255.255", R::Private),
            ("192.168.1.1", R::Private),
            ("100.64.0.1", R::Private),
            ("100.127.255.255", R::Private),
            ("169.254.1.1", R::LinkLocal),
            ("169.254.169.254", R::Metadata),
            ("100.100.100.200", R::Metadata),
            ("192.0.0.192", R::Metadata),
            ("168.63.129.16", R::Metadata),
            ("224.0.0.1", R::Multicast),
            ("239.255.255.255", R::Multicast),
            ("255.255.255.255", R::Multicast),
            ("192.88.99.1", R::Disguised),
            ("192.0.0.1", R::Reserved),
            ("192.0.2.1", R::Reserved),
            ("198.18.0.1", R::Reserved),
            ("198.51.100.1", R::Reserved),
            ("203.0.113.1", R::Reserved),
            ("240.0.0.1", R::Reserved),
            ("2606:4700:4700::1111", R::Public),
            ("2001:4860:4860::8888", R::Public),
            ("::", R::Unspecified),
            ("::1", R::Loopback),
            ("::ffff:1.1.1.1", R::Disguised),
            ("::ffff:127.0.0.1", R::Disguised),
            ("::127.0.0.1", R::Disguised),
            ("::ffff:0:127.0.0.1", R::Disguised),
            ("64:ff9b::7f00:1", R::Disguised),
            ("64:ff9b:1::7f00:1", R::Disguised),
            ("2001::1", R::Disguised),
            ("2002:7f00:1::", R::Disguised),
            ("fd00:ec2::254", R::Metadata),
            ("fc00::1", R::Private),
            ("fdff::1", R::Private),
            ("fec0::1", R::Private),
            ("fe80::1", R::LinkLocal),
            ("febf::1", R::LinkLocal),
            ("ff02::1", R::Multicast),
            ("2001:db8::1", R::Reserved),
            ("2001:2::1", R::Reserved),
            ("3fff::1", R::Reserved),
            ("100::1", R::Reserved),
            ("4000::1", R::Reserved),
        ];
        for (text, want) in cases {
            assert_eq!(reach(text.parse().unwrap()), want, "{text}");
        }
    }

    proptest! {
        /// The standard library knows some of the ranges on its own.
        #[test]
        fn what_others_call_special_is_not_public(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let special = address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast()
                || address.is_documentation()
                || address.is_unspecified();
            prop_assert!(!special || reach(address.into()) != Reach::Public);
            let mapped = address.to_ipv6_mapped();
            prop_assert_eq!(reach(mapped.into()), Reach::Disguised);
        }
    }
}
