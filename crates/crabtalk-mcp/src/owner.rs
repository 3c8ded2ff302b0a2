//! Whose program listens on a port of the loopback.
//!
//! Invariant: a port of which another user's program listens anywhere it could
//! be answered from is not ours. Where the system does not say whose it is, the
//! loopback has to do; `docs/guide/components.md` says so.

#[cfg(target_os = "linux")]
use crabtalk_component::sockets::{self, Listening};
#[cfg(target_os = "linux")]
use std::collections::HashMap;
use std::collections::{BTreeMap, BTreeSet};
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

/// A port of the loopback, and who is behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// Whose program listens.
    pub listener: Listener,
    /// Which process that is, if it is ours to look at.
    pub process: Option<u32>,
}

/// Who listens on a port of 127.0.0.1. Blocks for a moment.
#[cfg(target_os = "linux")]
pub(crate) fn of(port: u16) -> Listener {
    match all_listeners(|known| known == port) {
        Some(rows) => whose(&rows.iter().map(|row| row.uid).collect::<Vec<_>>()),
        None => Listener::Unknown,
    }
}

#[cfg(target_os = "linux")]
fn whose(uids: &[u32]) -> Listener {
    let own = rustix_uid();
    match uids.iter().find(|uid| Some(**uid) != own) {
        _ if uids.is_empty() => Listener::Nobody,
        Some(uid) if own.is_some() => Listener::Of { uid: *uid },
        Some(_) => Listener::Unknown,
        None => Listener::Ours,
    }
}

/// Whoever listens, those of IPv4 first: what the kernel says when it is asked, else
/// the rows of both its tables; `None` where the system has none.
#[cfg(target_os = "linux")]
fn all_listeners(is_asked: impl Fn(u16) -> bool) -> Option<Vec<Listening>> {
    if let Some(mut rows) = sockets::listening() {
        rows.retain(|row| is_asked(row.port));
        return Some(rows);
    }
    let mut rows = listeners(table("/proc/net/tcp")?, &is_asked);
    if let Some(v6) = table("/proc/net/tcp6") {
        rows.extend(listeners(v6, &is_asked));
    }
    Some(rows)
}

/// Who is behind each of these ports. Blocks: it looks at the descriptors of every
/// process of this user, once for all of the ports.
#[cfg(target_os = "linux")]
pub(crate) fn behind(ports: &BTreeSet<u16>) -> BTreeMap<u16, Behind> {
    let Some(rows) = all_listeners(|port| ports.contains(&port)) else {
        return BTreeMap::new();
    };
    let mut sockets = HashMap::new();
    for row in rows.iter().rev() {
        sockets.insert(row.inode, row.port);
    }
    let processes = processes(&sockets);
    let of = |port: u16| {
        let uids = rows.iter().filter(|row| row.port == port);
        Behind {
            listener: whose(&uids.map(|row| row.uid).collect::<Vec<_>>()),
            process: processes.get(&port).copied(),
        }
    };
    ports.iter().map(|port| (*port, of(*port))).collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn of(_: u16) -> Listener {
    Listener::Unknown
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn behind(_: &BTreeSet<u16>) -> BTreeMap<u16, Behind> {
    BTreeMap::new()
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

/// The sockets that take connections for 127.0.0.1 at ports that are asked about:
/// `sl local remote st .. .. .. uid .. inode`, addresses in hexadecimal
/// digits of the machine's byte order.
///
/// The kernel lists whoever listens before all others (`proc_net_tcp.rst` of its
/// documentation), so that the rest is read only where that found nobody. The rest
/// is long, and every request to a component asks.
#[cfg(target_os = "linux")]
fn listeners(table: impl BufRead, is_asked: &impl Fn(u16) -> bool) -> Vec<Listening> {
    const LISTENS: &str = "0A";
    /// A connection that is being made: older kernels list it beside its listener.
    const IS_MADE: &str = "03";
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
        let Some((address, port)) = local.split_once(':') else {
            continue;
        };
        let port = u16::from_str_radix(port, 16).ok();
        let Some(port) = port.filter(|port| is_asked(*port)) else {
            continue;
        };
        let covers = address.chars().all(|c| c == '0') || address.ends_with(&loopback);
        let (uid, inode) = (fields.nth(3), fields.nth(1));
        let row = uid
            .and_then(|uid| uid.parse().ok())
            .zip(inode.and_then(|inode| inode.parse().ok()));
        let row = row.map(|(uid, inode)| Listening { port, uid, inode });
        found.extend(row.filter(|_| covers));
    }
    found
}

/// The processes that have these sockets open, by what is known of the socket.
#[cfg(target_os = "linux")]
fn processes(sockets: &HashMap<u64, u16>) -> BTreeMap<u16, u32> {
    let mut found = BTreeMap::new();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in all {
        if found.len() == sockets.len() {
            break;
        }
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let open = std::fs::read_dir(entry.path().join("fd"));
        for fd in open.into_iter().flatten().flatten() {
            let link = std::fs::read_link(fd.path()).unwrap_or_default();
            let inode = link.to_str().and_then(socket);
            if let Some(port) = inode.and_then(|inode| sockets.get(&inode)) {
                found.entry(*port).or_insert(pid);
            }
        }
    }
    found
}

/// `socket:[4711]`
#[cfg(target_os = "linux")]
fn socket(link: &str) -> Option<u64> {
    let inode = link.strip_prefix("socket:[")?.strip_suffix(']')?;
    inode.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn an_own_listener_is_ours_and_a_closed_port_nobodys() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        assert_eq!(of(port), Listener::Ours);
        let closed = crabtalk_testkit::ports::Closed::new();
        let nobodys = closed.address().port();
        assert_eq!(of(nobodys), Listener::Nobody);
        let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let second = other.local_addr().expect("bound").port();
        let behind = behind(&BTreeSet::from([port, nobodys, second]));
        assert_eq!(behind.len(), 3);
        for (port, listener, process) in [
            (port, Listener::Ours, Some(std::process::id())),
            (second, Listener::Ours, Some(std::process::id())),
            (nobodys, Listener::Nobody, None),
        ] {
            assert_eq!(behind[&port], Behind { listener, process });
        }
    }

    #[test]
    fn the_kernel_answers_what_its_tables_say() {
        let asked = sockets::listening();
        println!("the kernel answers: {}", asked.is_some());
        for place in [
            "127.0.0.1:0",
            "0.0.0.0:0",
            "[::]:0",
            "[::1]:0",
            "127.0.0.2:0",
        ] {
            // A machine without IPv6 has no such places.
            let Ok(open) = std::net::TcpListener::bind(place) else {
                continue;
            };
            let port = open.local_addr().expect("bound").port();
            let is_asked = |known| known == port;
            let mut want = listeners(table("/proc/net/tcp").expect("it is told"), &is_asked);
            let v6 = table("/proc/net/tcp6").map(|table| listeners(table, &is_asked));
            want.extend(v6.unwrap_or_default());
            assert_eq!(all_listeners(is_asked), Some(want), "{place}");
        }
    }

    /// Users and inodes of whoever listens on port 8080.
    fn at(table: &str) -> Vec<(u32, u64)> {
        let rows = listeners(table.as_bytes(), &|port| port == 0x1f90);
        rows.into_iter().map(|row| (row.uid, row.inode)).collect()
    }

    #[test]
    fn whoever_could_answer_is_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid timeout inode\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1\n   \
            1: 0100007F:1F90 0100007F:D431 03 00000000:00000000 00:00000000 00000000  1004        0 0 1\n   \
            2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 12 1\n   \
            3: 0200007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 14 1\n   \
            4: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1002        0 13 1\n";
        assert_eq!(at(table), [(1000, 11), (1001, 12)]);
        let v6 = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1004        0 21 1\n   \
            1: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1005        0 22 1\n";
        assert_eq!(at(v6), [(1004, 21), (1005, 22)]);
        assert_eq!(at(""), []);
    }

    #[test]
    fn one_listener_of_another_user_is_enough_to_be_sent_nothing() {
        let own = rustix_uid().expect("it is told");
        let other = own + 1;
        for (uids, want) in [
            (&[][..], Listener::Nobody),
            (&[own], Listener::Ours),
            (&[own, own], Listener::Ours),
            (&[other], Listener::Of { uid: other }),
            (&[own, other], Listener::Of { uid: other }),
        ] {
            assert_eq!(whose(uids), want, "{uids:?}");
        }
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
        let found = listeners(BufReader::new(&mut counted), &|port| port == 0x1f90);
        assert_eq!(found.len(), 1);
        assert!(counted.1 < 64 << 10, "{} bytes were read", counted.1);
        // One that is listed elsewhere is found all the same.
        let late = format!("head\n{}{}", row("06", 0), row("0A", 12));
        assert_eq!(at(&late), [(1000, 12)]);
    }
}
