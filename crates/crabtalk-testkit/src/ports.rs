//! Loopback ports for another process, and ports that stay closed.
//!
//! Invariant: the ports are outside the system's range for port 0 and for outgoing connections,
//! in which concurrent tests would soon use them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::net::TcpSocket;

/// The first port to try; common programs use lower ones.
const FIRST: u16 = 20_000;

/// The assumed beginning of the system's range if it is unknown.
const GIVEN_OUT: u16 = 32_768;

/// A port that stays closed while this value exists.
#[derive(Debug)]
pub struct Closed {
    _socket: TcpSocket,
    address: SocketAddr,
}

impl Closed {
    /// Reserves a port that was free.
    ///
    /// # Panics
    ///
    /// The loopback interface is missing.
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(any).expect("a free port");
        Self {
            address: socket.local_addr().expect("bound"),
            _socket: socket,
        }
    }

    /// The closed address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Default for Closed {
    fn default() -> Self {
        Self::new()
    }
}

/// Finds a port for a program that needs a fixed one.
///
/// # Panics
///
/// No port is free.
pub fn free() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let given_out = range
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(GIVEN_OUT);
    let count = u32::from(given_out.saturating_sub(FIRST)).max(1);
    // Other test programs begin at other ports.
    let begin = std::process::id().wrapping_mul(97);
    for _ in 0..count {
        let tried = u32::from(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from(begin.wrapping_add(tried) % count).expect("a port");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port of {count} is free");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::TcpStream;

    #[test]
    fn closed_port_is_unreachable_and_never_reassigned() {
        let closed = Closed::new();
        let refused = TcpStream::connect(closed.address()).expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let taken = TcpListener::bind(closed.address()).expect_err("taken");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn two_free_ports_are_two() {
        let (one, other) = (free(), free());
        assert_ne!(one, other);
        let both = [one, other].map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
        assert!(both.iter().all(Result::is_ok), "{both:?}");
    }
}
