//! Whose program is at the other end of a connection on the loopback.

use crate::system;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Whether the same user's program connected. Where the system does not say whose
/// it is, the loopback has to do.
pub(crate) fn is_ours(stream: &TcpStream) -> bool {
    let (Ok(here), Ok(there)) = (stream.local_addr(), stream.peer_addr()) else {
        // It is gone already.
        return false;
    };
    match owner(here, there) {
        Some(uid) => system::own_uid().is_none_or(|own| own == uid),
        None => true,
    }
}

/// Who owns the socket at `there` that is connected to `here`.
#[cfg(target_os = "linux")]
fn owner(here: SocketAddr, there: SocketAddr) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    find(&table, here, there)
}

#[cfg(not(target_os = "linux"))]
fn owner(_: SocketAddr, _: SocketAddr) -> Option<u32> {
    None
}

/// Reads the kernel's table of connections: `sl local remote st .. .. .. uid`,
/// addresses in hexadecimal digits of the machine's byte order.
#[cfg(target_os = "linux")]
fn find(table: &str, here: SocketAddr, there: SocketAddr) -> Option<u32> {
    let written = |address: SocketAddr| match address {
        SocketAddr::V4(v4) => {
            let ip = u32::from_ne_bytes(v4.ip().octets());
            Some(format!("{ip:08X}:{:04X}", v4.port()))
        }
        SocketAddr::V6(_) => None,
    };
    let (local, remote) = (written(there)?, written(here)?);
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_it =
            fields.get(1) == Some(&local.as_str()) && fields.get(2) == Some(&remote.as_str());
        is_it.then(|| fields.get(7)?.parse().ok()).flatten()
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
            0: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 1\n   \
            1: 0100007F:D431 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2\n";
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(find(table, address(0x1f90), address(0xd431)), Some(1001));
        assert_eq!(find(table, address(0x1f90), address(0xd432)), None);
    }

    #[tokio::test]
    async fn an_own_connection_is_ours() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("bound");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, from) = accepted.expect("accepted");
        assert!(client.is_ok() && is_ours(&stream));
        assert_eq!(owner(address, from), system::own_uid());
    }
}
