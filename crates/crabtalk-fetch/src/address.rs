//! Which addresses are not the public internet.
//!
//! Invariant: an address that carries another one (mapped, translated, tunnelled) is
//! judged as the one that it carries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public internet, by IANA's registry of special
/// addresses.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match carried(v6) {
            Some(v4) => is_public_v4(v4),
            None => is_public_v6(v6),
        },
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let special = match v4.octets() {
        // This network, assignments of the protocol, the relays of old, benchmarks.
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => true,
        // Shared address space.
        [100, second, ..] => (64..128).contains(&second),
        // What is for later, the broadcast included.
        [first, ..] => first >= 240,
    };
    !(special
        || v4.is_loopback()
        || v4.is_private()
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_documentation())
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    match v6.segments() {
        // For texts.
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        // Tunnels and assignments of the protocol; a Teredo address carries one
        // that its server chose.
        [0x2001, second, ..] => second > 0x01ff,
        // All that is given to machines begins with the bits 001.
        [first, ..] => first & 0xe000 == 0x2000,
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
    fn only_public_addresses_are_told_so() {
        let public = [
            "172.32.0.1",
            "100.128.0.1",
            "1.1.1.1",
            "93.184.216.34",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2606:4700:4700::1111",
        ];
        let others = [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "224.0.0.1",
            "192.0.2.1",
            "198.51.100.7",
            "203.0.113.9",
            "198.19.0.1",
            "192.0.0.8",
            "255.255.255.255",
            "240.0.0.1",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "4000::1",
        ];
        for address in public {
            assert!(is_public(address.parse().expect(address)), "{address}");
        }
        for address in others {
            assert!(!is_public(address.parse().expect(address)), "{address}");
        }
    }
}
