//! Decides whether an address is on the public internet.
//!
//! Invariant: an address that embeds another one (mapped, translated, tunnelled) is
//! judged by the embedded one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is on the public internet, by IANA's registries of special-purpose
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
        // This network, protocol assignments, former 6to4 relays, benchmarking.
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => true,
        // Shared address space.
        [100, second, ..] => (64..128).contains(&second),
        // Reserved for future use, and broadcast.
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
        // Documentation.
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        // Tunnels and protocol assignments; a Teredo address embeds one
        // chosen by its server.
        [0x2001, second, ..] => second > 0x01ff,
        // Global unicast addresses begin with the bits 001.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// The IPv4 address embedded in an IPv6 address.
fn carried(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = v6.segments();
    let last = || Ipv4Addr::from_bits((u32::from(segments[6]) << 16) | u32::from(segments[7]));
    match segments {
        // Mapped, compatible and translated addresses.
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => Some(last()),
        // NAT64 prefixes: the well-known one and the local one.
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
