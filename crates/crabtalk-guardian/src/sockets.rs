//! TCP sockets of this machine, as listed in `/proc/net`, and whether an agent's
//! command has the other end of a connection open.
//!
//! Invariant: a local peer that cannot be distinguished from a command is refused.
//!
//! Other processes cannot list the daemon's descriptors, so the search goes
//! the other way: no marked process may have the peer's socket open. A command that passes
//! the descriptor through a queue between two of its processes is not found.

use crate::peer::Peers;
use crate::{mark, processes};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;

/// A row of the kernel's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    /// Its own address.
    pub local: SocketAddr,
    /// The address of the other end; port 0 for a listener.
    pub remote: SocketAddr,
    /// The user who made it.
    pub uid: u32,
    /// Its inode; 0 if no process has it open.
    pub inode: u64,
    listens: bool,
}

/// The reason for refusing a local connection.
#[derive(Debug, thiserror::Error)]
pub enum SocketRefusal {
    /// A command has the other end open.
    #[error("process {0}, which an agent started, may not connect here")]
    Command(i32),
    /// A command hides its descriptors.
    #[error(
        "process {0}, which an agent started, hides its descriptors, so the daemon cannot tell \
         connections of agents from others; end the process"
    )]
    Hidden(i32),
    /// The other end is closed.
    #[error("the connection closed before the daemon found its process")]
    Closed,
    /// The table could not be read.
    #[error("cannot find the process of the connection: {0}")]
    Unreadable(#[from] io::Error),
}

/// The sockets that accept connections to 127.0.0.1, those of IPv4 first.
///
/// # Errors
/// The kernel's table cannot be read.
pub fn listeners() -> io::Result<Vec<Socket>> {
    let covers = |ip: IpAddr| ip.is_unspecified() || ip == IpAddr::V4(Ipv4Addr::LOCALHOST);
    rows(|row| row.listens && covers(row.local.ip()))
}

/// The processes that have one of these sockets open, as far as this process
/// may read their descriptors: pairs of inode and process id.
pub fn holders(inodes: &[u64]) -> Vec<(u64, i32)> {
    let mut found = Vec::new();
    for pid in all_processes() {
        let held = held_by(pid).unwrap_or_default();
        found.extend(
            held.into_iter()
                .filter(|inode| inodes.contains(inode))
                .map(|inode| (inode, pid)),
        );
    }
    found
}

impl Peers {
    /// Judges the peer at `there` of a connection accepted at `here`. Returns the user of the
    /// peer's program, or `None` for another machine.
    ///
    /// Only the mark counts, not the ancestors: a browser that this process opened
    /// may connect. Blocks for about a millisecond.
    ///
    /// # Errors
    /// [`SocketRefusal`] if an agent's command has the other end open, or if that
    /// cannot be determined.
    pub fn judge_socket(
        &self,
        here: SocketAddr,
        there: SocketAddr,
    ) -> Result<Option<u32>, SocketRefusal> {
        let Some(peer) = connected(there, here)? else {
            return match there.ip().to_canonical().is_loopback() {
                true => Err(SocketRefusal::Closed),
                false => Ok(None),
            };
        };
        for pid in all_processes().filter(|pid| self.is_marked(*pid)) {
            match held_by(pid) {
                Ok(held) if held.contains(&peer.inode) => return Err(SocketRefusal::Command(pid)),
                Ok(_) => {}
                Err(_) if acts_for(pid, peer.uid) && shares_network(pid) => {
                    return Err(SocketRefusal::Hidden(pid));
                }
                Err(_) => {}
            }
        }
        // The search may have missed a peer that ended during it.
        match connected(there, here)? {
            Some(still) if still == peer && peer.inode != 0 => Ok(Some(peer.uid)),
            _ => Err(SocketRefusal::Closed),
        }
    }

    fn is_marked(&self, pid: i32) -> bool {
        let limits = processes::limits(pid).ok();
        let limit = limits.and_then(|limits| mark::parse(&limits));
        limit.is_some_and(|limit| limit < self.unmarked())
    }
}

/// The socket at `local` that is connected to `remote`.
fn connected(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<Socket>> {
    let (local, remote) = (canonical(local), canonical(remote));
    Ok(rows(|row| !row.listens && row.local == local && row.remote == remote)?.pop())
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn rows(is_wanted: impl Fn(&Socket) -> bool) -> io::Result<Vec<Socket>> {
    let mut found = parse(&std::fs::read_to_string("/proc/net/tcp")?, &is_wanted);
    // A kernel without IPv6 has no such file.
    if let Ok(table) = std::fs::read_to_string("/proc/net/tcp6") {
        found.extend(parse(&table, &is_wanted));
    }
    Ok(found)
}

/// Reads a table: `sl local remote st queues timer retransmits uid timeout inode`.
fn parse(table: &str, is_wanted: &impl Fn(&Socket) -> bool) -> Vec<Socket> {
    let row = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let local = address(fields.next()?)?;
        let remote = address(fields.next()?)?;
        let listens = fields.next()? == "0A";
        let uid = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Socket {
            local,
            remote,
            uid,
            inode,
            listens,
        })
    };
    let rows = table.lines().skip(1).filter_map(row);
    rows.filter(is_wanted).collect()
}

/// Parses `0100007F:1F90`: 32-bit words in native byte order.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let mut bytes = Vec::with_capacity(16);
    for word in ip.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(ip) => IpAddr::V4(Ipv4Addr::from(ip)),
        Err(_) => Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).to_canonical(),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

fn all_processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The inodes of the sockets that a process has open.
fn held_by(pid: i32) -> io::Result<Vec<u64>> {
    let mut held = Vec::new();
    for descriptor in std::fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        let link = std::fs::read_link(descriptor.path()).unwrap_or_default();
        let inode = link.to_str().and_then(|link| -> Option<u64> {
            let inode = link.strip_prefix("socket:[")?.strip_suffix(']')?;
            inode.parse().ok()
        });
        held.extend(inode);
    }
    Ok(held)
}

/// Whether sockets created by a process belong to this user.
fn acts_for(pid: i32, uid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let of_files = uids.and_then(|uids| uids.split_ascii_whitespace().nth(3));
    of_files.and_then(|uid| uid.parse().ok()) == Some(uid)
}

/// Whether a process is in this network namespace, by the inode of its
/// namespace.
fn shares_network(pid: i32) -> bool {
    let inode = |of: &str| std::fs::metadata(format!("/proc/{of}/net/tcp")).map(|meta| meta.ino());
    let theirs = inode(&pid.to_string());
    theirs.is_ok_and(|theirs| inode("self").is_ok_and(|own| own == theirs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn table_rows_are_read_in_both_families() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1\n   \
            1: 0100007F:D431 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 12 2\n   \
            2: 0000000000000000FFFF00000100007F:1F91 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1005        0 22 1\n   \
            3: broken\n";
        let rows = parse(table, &|_| true);
        let read: Vec<_> = rows
            .iter()
            .map(|row| (row.local.to_string(), row.listens, row.uid, row.inode))
            .collect();
        assert_eq!(
            read,
            [
                ("127.0.0.1:8080".into(), true, 1000, 11),
                ("127.0.0.1:54321".into(), false, 1001, 12),
                ("127.0.0.1:8081".into(), true, 1005, 22),
            ]
        );
    }

    #[test]
    fn own_sockets_are_found_with_their_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let client = TcpStream::connect(here).unwrap();
        let (_accepted, there) = listener.accept().unwrap();
        let own = rustix::process::getuid().as_raw();

        let listeners = listeners().unwrap();
        let row = listeners.iter().find(|row| row.local == here).unwrap();
        assert_eq!(row.uid, own);
        let me = std::process::id().cast_signed();
        assert!(holders(&[row.inode]).contains(&(row.inode, me)));

        let peers = Peers::new();
        assert_eq!(peers.judge_socket(here, there).unwrap(), Some(own));
        drop(client);
        assert!(matches!(
            peers.judge_socket(here, there),
            Err(SocketRefusal::Closed)
        ));
        let elsewhere = "192.0.2.1:5".parse().unwrap();
        assert_eq!(peers.judge_socket(here, elsewhere).unwrap(), None);
    }
}
