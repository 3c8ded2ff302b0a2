//! Asks the kernel about TCP sockets (sock_diag(7)).
//!
//! Invariant: only the kernel's own answer counts, and only a whole one; whatever else
//! comes is no answer, and whoever asked reads the tables in `/proc/net`.
//!
//! Those say the same, but the kernel walks over the room of every connection that
//! there might be before it ends one: milliseconds for each look, and both ends
//! of every request to a component look.

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{connect, recv, send, socket_with};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

/// `struct nlmsghdr`: length, type, flags, sequence number, port.
const HEADER: usize = 16;
/// `struct inet_diag_req_v2`: the question.
const QUESTION: usize = 56;
/// `struct inet_diag_msg`: the answer's row.
const ROW: usize = 72;
/// `SOCK_DIAG_BY_FAMILY`, the type of the question and of each row.
const BY_FAMILY: u16 = 20;
/// `NLMSG_DONE`, behind the last row.
const DONE: u16 = 3;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `NLM_F_DUMP`: all rows, and not one.
const DUMP: u16 = 0x300;
/// `NLM_F_DUMP_INTR`: the sockets changed meanwhile, and rows may be missing.
const INTERRUPTED: u16 = 0x10;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// A set with the state `TCP_LISTEN`.
const LISTENS: u32 = 1 << 10;
/// `INET_DIAG_NOCOOKIE`: any socket at the addresses.
const NO_COOKIE: [u8; 8] = [0xff; 8];
/// The largest piece in which the kernel answers.
const PIECE_BYTES: usize = 32 << 10;

/// A socket that takes connections for 127.0.0.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// Its port.
    pub port: u16,
    /// The user who made it.
    pub uid: u32,
    /// Its number among files.
    pub inode: u64,
}

/// The sockets that take connections for 127.0.0.1, those of IPv4 first; `None` where the
/// kernel does not answer such questions.
pub fn listening() -> Option<Vec<Listening>> {
    let kernel = kernel()?;
    let mut found = Vec::new();
    for (family, address_bytes) in [(AddressFamily::INET, 4), (AddressFamily::INET6, 16)] {
        let mut question = question(family, DUMP)?;
        question[HEADER + 4..HEADER + 8].copy_from_slice(&LISTENS.to_ne_bytes());
        send(&kernel, &question, SendFlags::empty()).ok()?;
        while rows(&kernel, |row| found.extend(covering(row, address_bytes)))? {}
    }
    Some(found)
}

/// The user who made the socket at `local` that is connected to `remote`; `None`
/// where there is none, or the kernel does not answer such questions.
pub fn owner(local: SocketAddrV4, remote: SocketAddrV4) -> Option<u32> {
    let kernel = kernel()?;
    let mut question = question(AddressFamily::INET, 0)?;
    let id = &mut question[HEADER + 8..];
    id[..2].copy_from_slice(&local.port().to_be_bytes());
    id[2..4].copy_from_slice(&remote.port().to_be_bytes());
    id[4..8].copy_from_slice(&local.ip().octets());
    id[20..24].copy_from_slice(&remote.ip().octets());
    id[40..48].copy_from_slice(&NO_COOKIE);
    send(&kernel, &question, SendFlags::empty()).ok()?;
    let ports = [local.port().to_be_bytes(), remote.port().to_be_bytes()].concat();
    let mut found = None;
    rows(&kernel, |row| {
        // Where none is connected, the kernel answers with whoever listens there.
        if row.get(4..8) == Some(&ports) {
            found = field(row, 64).map(u32::from_ne_bytes);
        }
    })?;
    found
}

/// A socket to the kernel. What is connected hears of nobody else.
fn kernel() -> Option<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let kernel = socket_with(family, kind, SocketFlags::CLOEXEC, Some(SOCK_DIAG)).ok()?;
    connect(&kernel, &SocketAddrNetlink::new(0, 0)).ok()?;
    Some(kernel)
}

/// A question about TCP whose other fields are nought.
fn question(family: AddressFamily, flags: u16) -> Option<[u8; HEADER + QUESTION]> {
    let mut question = [0; HEADER + QUESTION];
    let length = u32::try_from(question.len()).ok()?;
    question[..4].copy_from_slice(&length.to_ne_bytes());
    question[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    question[6..8].copy_from_slice(&(REQUEST | flags).to_ne_bytes());
    question[HEADER] = u8::try_from(family.as_raw()).ok()?;
    question[HEADER + 1] = TCP;
    Some(question)
}

/// Takes the rows of one piece, and says whether another may follow.
fn rows(kernel: &OwnedFd, mut take: impl FnMut(&[u8])) -> Option<bool> {
    let mut piece = vec![0; PIECE_BYTES];
    let (read, whole) = recv(kernel, &mut piece[..], RecvFlags::TRUNC).ok()?;
    let mut rest = piece.get(..whole).filter(|_| read == whole)?;
    while !rest.is_empty() {
        let length = usize::try_from(u32::from_ne_bytes(field(rest, 0)?)).ok()?;
        let flags = u16::from_ne_bytes(field(rest, 6)?);
        let row = rest.get(HEADER..length)?;
        match u16::from_ne_bytes(field(rest, 4)?) {
            _ if flags & INTERRUPTED != 0 => return None,
            BY_FAMILY => take(row),
            DONE => return Some(false),
            _ => return None,
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(true)
}

/// A row, if it answers for 127.0.0.1.
fn covering(row: &[u8], address_bytes: usize) -> Option<Listening> {
    let row = row.get(..ROW)?;
    let address = row.get(8..8 + address_bytes)?;
    let covers = address.iter().all(|byte| *byte == 0) || address.ends_with(&[127, 0, 0, 1]);
    covers.then_some(Listening {
        port: u16::from_be_bytes(field(row, 4)?),
        uid: u32::from_ne_bytes(field(row, 64)?),
        inode: u32::from_ne_bytes(field(row, 68)?).into(),
    })
}

fn field<const BYTES: usize>(of: &[u8], at: usize) -> Option<[u8; BYTES]> {
    of.get(at..at + BYTES)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_short_is_no_row() {
        let mut row = [0; ROW];
        row[4..6].copy_from_slice(&8080u16.to_be_bytes());
        row[8..12].copy_from_slice(&[127, 0, 0, 1]);
        row[64..68].copy_from_slice(&7u32.to_ne_bytes());
        let found = covering(&row, 4).expect("it listens");
        assert_eq!((found.port, found.uid), (8080, 7));
        assert_eq!(covering(&row[..ROW - 1], 4), None);
        row[8] = 10;
        assert_eq!(covering(&row, 4), None);
    }
}
