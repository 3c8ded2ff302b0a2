//! Whose program listens on a port of the loopback.
//!
//! Invariant: a port of which another user's program listens anywhere it could
//! be answered from is not ours. Where the system does not say whose it is, the
//! loopback has to do; `docs/guide/components.md` says so.

#[cfg(target_os = "linux")]
use std::io::{BufRead, BufReader};

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
    let Some(v4) = table("/proc/net/tcp") else {
        return Listener::Unknown;
    };
    let v6 = table("/proc/net/tcp6").map(|table| listeners(table, port));
    let mut uids = listeners(v4, port);
    uids.extend(v6.unwrap_or_default());
    let own = rustix_uid();
    match uids.iter().find(|(uid, _)| Some(*uid) != own) {
        _ if uids.is_empty() => Listener::Nobody,
        Some((uid, _)) if own.is_some() => Listener::Of { uid: *uid },
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

/// A table of the kernel, which is read in pieces: a machine that closes many
/// connections keeps a row of each for a minute, megabytes of them.
#[cfg(target_os = "linux")]
fn table(path: &str) -> Option<impl BufRead> {
    std::fs::File::open(path).ok().map(BufReader::new)
}

/// Users and inodes of the sockets that take connections for 127.0.0.1 at a
/// port: `sl local remote st .. .. .. uid .. inode`, addresses in hexadecimal
/// digits of the machine's byte order.
///
/// The kernel lists whoever listens before all others (`proc_net_tcp.rst` of its
/// documentation), so that the rest is read only where that found nobody. The rest
/// is long, and every request to a component asks.
#[cfg(target_os = "linux")]
fn listeners(table: impl BufRead, port: u16) -> Vec<(u32, u64)> {
    const LISTENS: &str = "0A";
    /// A connection that is being made: older kernels list it beside its listener.
    const IS_MADE: &str = "03";
    let at = format!(":{port:04X}");
    // Any address that 127.0.0.1 is answered from: itself, all of them, and
    // both as IPv6 writes them.
    let loopback = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
    let mut found = Vec::new();
    for line in table.lines().skip(1).map_while(Result::ok) {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (Some(local), Some(state)) = (fields.next(), fields.nth(1)) else {
            continue;
        };
        if state != LISTENS {
            if state == IS_MADE || found.is_empty() {
                continue;
            }
            break;
        }
        let Some(address) = local.strip_suffix(&at) else {
            continue;
        };
        let covers = address.chars().all(|c| c == '0') || address.ends_with(&loopback);
        let (uid, inode) = (fields.nth(3), fields.nth(1));
        let row = uid
            .and_then(|uid| uid.parse().ok())
            .zip(inode.and_then(|inode| inode.parse().ok()));
        found.extend(row.filter(|_| covers));
    }
    found
}

/// The process that listens on a port, if it is ours to look at. Blocks: it
/// looks at the descriptors of every process of this user.
#[cfg(target_os = "linux")]
pub(crate) fn process(port: u16) -> Option<u32> {
    let (_, inode) = *listeners(table("/proc/net/tcp")?, port).first()?;
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
    fn an_own_listener_is_ours_and_a_closed_port_nobodys() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        assert_eq!(of(port), Listener::Ours);
        assert_eq!(process(port), Some(std::process::id()));
        let closed = crabtalk_testkit::ports::Closed::new();
        assert_eq!(of(closed.address().port()), Listener::Nobody);
    }

    #[test]
    fn whoever_could_answer_is_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid timeout inode\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1\n   \
            1: 0100007F:1F90 0100007F:D431 03 00000000:00000000 00:00000000 00000000  1004        0 0 1\n   \
            2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 12 1\n   \
            3: 0200007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 14 1\n   \
            4: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1002        0 13 1\n";
        assert_eq!(
            listeners(table.as_bytes(), 0x1f90),
            [(1000, 11), (1001, 12)]
        );
        let v6 = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1004        0 21 1\n   \
            1: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1005        0 22 1\n";
        assert_eq!(listeners(v6.as_bytes(), 0x1f90), [(1004, 21), (1005, 22)]);
        assert_eq!(listeners("".as_bytes(), 0x1f90), []);
    }

    /// A reader that counts what is taken from it.
    struct Counted<R>(R, usize);

    impl<R: std::io::Read> std::io::Read for Counted<R> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1 += read;
            Ok(read)
        }
    }

    #[test]
    fn closed_connections_cost_nothing_however_many_there_are() {
        let row = |state: &str, inode: u32| {
            format!(
                "   0: 0100007F:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1\n"
            )
        };
        let mut table = format!("head\n{}", row("0A", 11));
        (0..50_000).for_each(|_| table.push_str(&row("06", 0)));
        let mut counted = Counted(table.as_bytes(), 0);
        let found = listeners(BufReader::new(&mut counted), 0x1f90);
        assert_eq!(found, [(1000, 11)]);
        assert!(counted.1 < 64 << 10, "{} bytes were read", counted.1);
        // One that is listed elsewhere is found all the same.
        let late = format!("head\n{}{}", row("06", 0), row("0A", 12));
        assert_eq!(listeners(late.as_bytes(), 0x1f90), [(1000, 12)]);
    }
}
