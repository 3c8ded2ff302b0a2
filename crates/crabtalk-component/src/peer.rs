//! Whose program is at the other end of a connection on the loopback.

#[cfg(target_os = "linux")]
use crate::sockets;
use crate::system;
use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::net::SocketAddrV4;
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
    let (SocketAddr::V4(local), SocketAddr::V4(remote)) = (there, here) else {
        return None;
    };
    sockets::owner(local, remote).or_else(|| {
        let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
        find(&table, local, remote)
    })
}

#[cfg(not(target_os = "linux"))]
fn owner(_: SocketAddr, _: SocketAddr) -> Option<u32> {
    None
}

/// Reads the kernel's table of connections: `sl local remote st .. .. .. uid`,
/// addresses in hexadecimal digits of the machine's byte order.
#[cfg(target_os = "linux")]
fn find(table: &str, local: SocketAddrV4, remote: SocketAddrV4) -> Option<u32> {
    let written = |address: SocketAddrV4| {
        let ip = u32::from_ne_bytes(address.ip().octets());
        format!("{ip:08X}:{:04X}", address.port())
    };
    let (local, remote) = (written(local), written(remote));
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
    use std::net::Ipv4Addr;

    #[test]
    fn the_other_end_is_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
            0: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 1\n   \
            1: 0100007F:D431 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2\n";
        let address = |port: u16| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        assert_eq!(find(table, address(0xd431), address(0x1f90)), Some(1001));
        assert_eq!(find(table, address(0xd432), address(0x1f90)), None);
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
        let table = std::fs::read_to_string("/proc/net/tcp").expect("it is told");
        let (SocketAddr::V4(local), SocketAddr::V4(remote)) = (from, address) else {
            panic!("it is of IPv4");
        };
        assert_eq!(find(&table, local, remote), system::own_uid());
        // A kernel that does not answer is no fault: the table has it.
        let asked = sockets::owner(local, remote);
        assert!(asked.is_none_or(|uid| Some(uid) == system::own_uid()));
        // Whoever listens there is not the other end.
        assert_eq!(
            sockets::owner(remote, SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1)),
            None
        );
    }
}
