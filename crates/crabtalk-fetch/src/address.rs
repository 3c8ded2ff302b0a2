//! Which addresses are not the public internet.
//!
//! Invariant: an address that carries another one (mapped, translated, tunnelled) is
//! judged as the one that it carries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is, if it is not a public one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This machine.
    Loopback,
    /// A private network, shared address space included.
    Private,
    /// The link, where machines of the cloud tell their secrets.
    LinkLocal,
    /// Many at once.
    Multicast,
    /// For texts and benchmarks.
    Documentation,
    /// No address, or one for later.
    Reserved,
}

impl Kind {
    /// For a person.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Multicast => "a multicast address",
            Self::Documentation => "an address for documentation",
            Self::Reserved => "a reserved address",
        }
    }
}

/// What an address is; `None` for a public one.
#[must_use]
pub fn judge(address: IpAddr) -> Option<Kind> {
    match address {
        IpAddr::V4(v4) => of_v4(v4),
        IpAddr::V6(v6) => of_v6(v6),
    }
}

/// By IANA's registry of special addresses.
fn of_v4(v4: Ipv4Addr) -> Option<Kind> {
    let [a, b, c, _] = v4.octets();
    match (a, b, c) {
        (127, ..) => Some(Kind::Loopback),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Some(Kind::Private),
        (169, 254, _) => Some(Kind::LinkLocal),
        (224..=239, ..) => Some(Kind::Multicast),
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) | (198, 18..=19, _) => {
            Some(Kind::Documentation)
        }
        // This network, assignments of the protocol, the relays of old, and what
        // is for later, the broadcast included.
        (0, ..) | (192, 0, 0) | (192, 88, 99) | (240..=255, ..) => Some(Kind::Reserved),
        _ => None,
    }
}

fn of_v6(v6: Ipv6Addr) -> Option<Kind> {
    if v6.is_loopback() {
        return Some(Kind::Loopback);
    }
    if let Some(v4) = carried(v6) {
        return of_v4(v4);
    }
    let [a, b, ..] = v6.segments();
    match (a, b) {
        (0xfc00..=0xfdff, _) => Some(Kind::Private),
        // With the site-local ones of old.
        (0xfe80..=0xfeff, _) => Some(Kind::LinkLocal),
        (0xff00..=0xffff, _) => Some(Kind::Multicast),
        (0x2001, 0xdb8) | (0x3fff, 0..=0x0fff) => Some(Kind::Documentation),
        // Tunnels and assignments of the protocol; a Teredo address carries one
        // that its server chose.
        (0x2001, 0..=0x01ff) => Some(Kind::Reserved),
        // All that is given to machines begins with the bits 001.
        (0x2000..=0x3fff, _) => None,
        _ => Some(Kind::Reserved),
    }
}

/// The older address within a newer one.
fn carried(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = v6.segments();
    let last = || Ipv4Addr::from_bits((u32::from(segments[6]) << 16) | u32::from(segments[7]));
    match segments {
        // Mapped, compatible and translated ones.
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => Some(last()),
        // Prefixes of translators to IPv4: the public one and the local one.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => Some(last()),
        // 6to4.
        [0x2002, high, low, ..] => Some(Ipv4Addr::from_bits(
            (u32::from(high) << 16) | u32::from(low),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_public_addresses_are_classified() {
        use Kind::*;
        for (address, kind) in [
            ("127.0.0.1", Some(Loopback)),
            ("127.255.255.254", Some(Loopback)),
            ("0.0.0.0", Some(Reserved)),
            ("0.1.2.3", Some(Reserved)),
            ("10.0.0.1", Some(Private)),
            ("172.16.0.1", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("172.32.0.1", None),
            ("192.168.1.1", Some(Private)),
            ("100.64.0.1", Some(Private)),
            ("100.128.0.1", None),
            ("169.254.169.254", Some(LinkLocal)),
            ("224.0.0.1", Some(Multicast)),
            ("192.0.2.1", Some(Documentation)),
            ("198.51.100.7", Some(Documentation)),
            ("203.0.113.9", Some(Documentation)),
            ("198.19.0.1", Some(Documentation)),
            ("192.0.0.8", Some(Reserved)),
            ("255.255.255.255", Some(Reserved)),
            ("240.0.0.1", Some(Reserved)),
            ("1.1.1.1", None),
            ("93.184.216.34", None),
            ("::1", Some(Loopback)),
            ("::", Some(Reserved)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("::ffff:10.0.0.1", Some(Private)),
            ("::ffff:1.1.1.1", None),
            ("::127.0.0.1", Some(Loopback)),
            ("::ffff:0:127.0.0.1", Some(Loopback)),
            ("64:ff9b::a9fe:a9fe", Some(LinkLocal)),
            ("64:ff9b::1.1.1.1", None),
            ("64:ff9b:1::7f00:1", Some(Loopback)),
            ("2002:7f00:1::", Some(Loopback)),
            ("2002:c0a8:101::1", Some(Private)),
            ("2001::1", Some(Reserved)),
            ("2001:db8::1", Some(Documentation)),
            ("3fff::1", Some(Documentation)),
            ("fc00::1", Some(Private)),
            ("fd12:3456::1", Some(Private)),
            ("fe80::1", Some(LinkLocal)),
            ("fec0::1", Some(LinkLocal)),
            ("ff02::1", Some(Multicast)),
            ("100::1", Some(Reserved)),
            ("4000::1", Some(Reserved)),
            ("2606:4700:4700::1111", None),
        ] {
            let parsed: IpAddr = address.parse().expect(address);
            assert_eq!(judge(parsed), kind, "{address}");
        }
    }
}
