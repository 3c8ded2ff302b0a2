//! The programs that listen on loopback ports.
//!
//! Invariant: a port to which another user's program may listen is not ours. If the
//! system does not name the owner of a port, it counts as ours; `docs/guide/components.md`
//! documents this.

use crabtalk_guardian::sockets::{self, Socket};
use std::collections::{BTreeMap, BTreeSet};

/// The user whose program listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    /// The user of this daemon.
    Ours,
    /// Another user.
    Of {
        /// The user id.
        uid: u32,
    },
    /// No program listens.
    Nobody,
    /// The system does not name the owner.
    Unknown,
}

/// A loopback port and the program that listens on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The user whose program listens.
    pub listener: Listener,
    /// The process, if this one may read its descriptors.
    pub process: Option<u32>,
}

/// The user whose program listens on a port of 127.0.0.1. Blocks.
pub(crate) fn of(port: u16) -> Listener {
    let known = rows(&BTreeSet::from([port]));
    known.map_or(Listener::Unknown, |rows| {
        whose(rows.iter().map(|row| row.uid))
    })
}

/// The programs that listen on ports. Blocks: it reads the descriptors of every process of
/// this user once.
pub(crate) fn behind(ports: &BTreeSet<u16>) -> BTreeMap<u16, Behind> {
    let Some(rows) = rows(ports) else {
        return BTreeMap::new();
    };
    let inodes: Vec<u64> = rows.iter().map(|row| row.inode).collect();
    let holders = sockets::holders(&inodes);
    let of = |port: u16| {
        let rows = rows.iter().filter(|row| row.local.port() == port);
        let process = rows.clone().find_map(|row| {
            let held = holders.iter().find(|(inode, _)| *inode == row.inode);
            held.and_then(|(_, pid)| u32::try_from(*pid).ok())
        });
        Behind {
            listener: whose(rows.map(|row| row.uid)),
            process,
        }
    };
    ports.iter().map(|port| (*port, of(*port))).collect()
}

fn rows(ports: &BTreeSet<u16>) -> Option<Vec<Socket>> {
    let mut rows = sockets::listeners().ok()?;
    rows.retain(|row| ports.contains(&row.local.port()));
    Some(rows)
}

fn whose(uids: impl Iterator<Item = u32> + Clone) -> Listener {
    let own = rustix::process::geteuid().as_raw();
    match uids.clone().find(|uid| *uid != own) {
        Some(uid) => Listener::Of { uid },
        None if uids.count() == 0 => Listener::Nobody,
        None => Listener::Ours,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_told_from_closed_ports() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let ours = listener.local_addr().expect("bound").port();
        let closed = crabtalk_testkit::ports::Closed::new();
        let nobodys = closed.address().port();
        assert_eq!(of(ours), Listener::Ours);
        assert_eq!(of(nobodys), Listener::Nobody);
        let behind = behind(&BTreeSet::from([ours, nobodys]));
        assert_eq!(behind[&ours].process, Some(std::process::id()));
        assert_eq!(behind[&nobodys].listener, Listener::Nobody);
    }

    #[test]
    fn one_foreign_listener_makes_a_port_foreign() {
        let own = rustix::process::geteuid().as_raw();
        let other = own + 1;
        for (uids, want) in [
            (&[][..], Listener::Nobody),
            (&[own, own], Listener::Ours),
            (&[own, other], Listener::Of { uid: other }),
        ] {
            assert_eq!(whose(uids.iter().copied()), want, "{uids:?}");
        }
    }
}
