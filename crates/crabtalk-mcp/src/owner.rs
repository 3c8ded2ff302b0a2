//! Whose program listens on a port of the loopback.
//!
//! Invariant: a port of which another user's program listens anywhere it could
//! be answered from is not ours. Where the system does not say whose it is, the
//! loopback has to do; `docs/guide/components.md` says so.

/// Whoever listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    /// A program of the user whose daemon this is.
    Ours,
    /// One of another user.
    Of {
        /// Which user.
        uid: u32,
    },
    /// Nobody.
    Nobody,
    /// The system does not say.
    Unknown,
}

/// Who listens on a port of 127.0.0.1. Blocks for a moment.
#[cfg(target_os = "linux")]
pub(crate) fn of(port: u16) -> Listener {
    let Ok(v4) = std::fs::read_to_string("/proc/net/tcp") else {
        return Listener::Unknown;
    };
    let v6 = std::fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let uids: Vec<u32> = rows(&v4, port)
        .chain(rows(&v6, port))
        .map(|row| row.0)
        .collect();
    let own = rustix_uid();
    match uids.iter().find(|uid| Some(**uid) != own) {
        _ if uids.is_empty() => Listener::Nobody,
        Some(uid) if own.is_some() => Listener::Of { uid: *uid },
        Some(_) => Listener::Unknown,
        None => Listener::Ours,
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn of(_: u16) -> Listener {
    Listener::Unknown
}

#[cfg(target_os = "linux")]
fn rustix_uid() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").ok().map(|meta| meta.uid())
}

/// Users and inodes of the sockets that take connections for 127.0.0.1 at a
/// port: `sl local remote st .. .. .. uid .. inode`, addresses in hexadecimal
/// digits of the machine's byte order.
#[cfg(target_os = "linux")]
fn rows(table: &str, port: u16) -> impl Iterator<Item = (u32, u64)> + '_ {
    const LISTENS: &str = "0A";
    let at = format!(":{port:04X}");
    table.lines().skip(1).filter_map(move |line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (local, state) = (*fields.get(1)?, *fields.get(3)?);
        let address = local.strip_suffix(&at)?;
        // Any address that 127.0.0.1 is answered from: itself, all of them, and
        // both as IPv6 writes them.
        let loopback = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
        let covers = address.chars().all(|c| c == '0') || address.ends_with(&loopback);
        let row = (fields.get(7)?.parse().ok()?, fields.get(9)?.parse().ok()?);
        (state == LISTENS && covers).then_some(row)
    })
}

/// The process that listens on a port, if it is ours to look at. Blocks: it
/// looks at the descriptors of every process of this user.
#[cfg(target_os = "linux")]
pub(crate) fn process(port: u16) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let (_, inode) = rows(&table, port).next()?;
    let wanted = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| {
            let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
            open.into_iter().flatten().flatten().any(|fd| {
                std::fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == wanted.as_str())
            })
        })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn process(_: u16) -> Option<u32> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn an_own_listener_is_ours_and_a_free_port_nobodys() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        assert_eq!(of(port), Listener::Ours);
        assert_eq!(process(port), Some(std::process::id()));
        drop(listener);
        assert_eq!(of(port), Listener::Nobody);
    }

    #[test]
    fn whoever_could_answer_is_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid timeout inode\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1\n   \
            1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 12 1\n   \
            2: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1002        0 13 1\n   \
            3: 0200007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 14 1\n";
        assert_eq!(
            rows(table, 0x1f90).collect::<Vec<_>>(),
            [(1000, 11), (1001, 12)]
        );
        let v6 = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1004        0 21 1\n   \
            1: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1005        0 22 1\n";
        assert_eq!(
            rows(v6, 0x1f90).collect::<Vec<_>>(),
            [(1004, 21), (1005, 22)]
        );
    }
}
