//! Namespaces, which hide the system's processes, mounts, sockets, shared memory and
//! users.
//!
//! Invariant: a process enters them before it has a second thread, and its
//! children have no rights over them.

use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

/// Leaves all namespaces of the system. The next child is the first process
/// of a new pid namespace.
pub(crate) fn leave() -> io::Result<()> {
    let flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP
        | UnshareFlags::NEWNET;
    #[expect(
        deprecated,
        reason = "unsafe only with FILES, which is not among the flags: descriptors stay shared"
    )]
    rustix::thread::unshare(flags)?;
    Ok(())
}

/// The capabilities of the first process: to mount, to bring up the loopback interface,
/// and to set up overlay mounts in folders of the user.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::DAC_OVERRIDE);

/// Lets the next program keep the needed capabilities in the new namespaces, which a
/// program of an ordinary user would lose on exec.
pub(crate) fn pass_on() -> io::Result<()> {
    let sets = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            inheritable: NEEDED,
            ..sets
        },
    )?;
    for capability in NEEDED.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Drops all capabilities. Programs of root gain none either, since landlock sets
/// `no_new_privs`.
pub(crate) fn give_up() -> io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, none)?)
}

/// Maps the ids of a process's new user namespace to themselves. Called from outside by a process
/// with the right to do so.
pub(crate) fn map_ids(process: i32) -> io::Result<()> {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let may = capabilities(None)?.effective;
    if may.contains(CapabilitySet::SETUID | CapabilitySet::SETGID)
        && std::fs::write(folder.join("gid_map"), own_ids("gid_map")?).is_ok()
    {
        return std::fs::write(folder.join("uid_map"), own_ids("uid_map")?);
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // Otherwise the process could drop groups that restrict it.
    std::fs::write(folder.join("setgroups"), "deny")?;
    std::fs::write(folder.join("gid_map"), format!("{group} {group} 1"))?;
    std::fs::write(folder.join("uid_map"), format!("{user} {user} 1"))
}

/// Maps all ids of this namespace to themselves.
fn own_ids(map: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(format!("/proc/self/{map}"))?;
    let mut own = String::new();
    for line in text.lines() {
        let mut numbers = line.split_ascii_whitespace();
        if let (Some(first), _, Some(count)) = (numbers.next(), numbers.next(), numbers.next()) {
            let _ = writeln!(own, "{first} {first} {count}");
        }
    }
    Ok(own)
}
