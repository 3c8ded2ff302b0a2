//! Namespaces: other processes, mounts, sockets, shared memory and users are
//! not there at all.
//!
//! Invariant: a process enters them before it has a second thread, and what
//! starts behind it has no power over them.

use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

/// What root keeps over files and processes of the sandbox, so that it may
/// work in folders of others. Nothing of it reaches outside: what is not
/// opened for changes is mounted read-only.
const ROOT_KEEPS: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);

/// Leaves all namespaces of the system but, where it is open, the network's.
/// The next child is the first process of its own namespace of processes.
pub(crate) fn leave(network: bool) -> io::Result<()> {
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if !network {
        flags |= UnshareFlags::NEWNET;
    }
    #[expect(
        deprecated,
        reason = "unsafe only with FILES, which is not among the flags: descriptors stay shared"
    )]
    rustix::thread::unshare(flags)?;
    Ok(())
}

/// Lets the next program keep the right to mount in the new namespaces, which
/// an ordinary user's program would lose when it starts.
pub(crate) fn pass_on() -> io::Result<()> {
    let sets = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            inheritable: CapabilitySet::SYS_ADMIN,
            ..sets
        },
    )?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?;
    Ok(())
}

/// Gives all rights up that the shell must not have.
pub(crate) fn give_up() -> io::Result<()> {
    let keep = if rustix::process::geteuid().is_root() {
        ROOT_KEEPS & capabilities(None)?.permitted
    } else {
        CapabilitySet::empty()
    };
    set_capabilities(
        None,
        CapabilitySets {
            effective: keep,
            permitted: keep,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

/// Tells the kernel who is who in a process's new namespace of users: everybody
/// is who he was. Called from outside, by who may.
pub(crate) fn map_ids(process: i32) -> io::Result<()> {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let may = capabilities(None)?.effective;
    if may.contains(CapabilitySet::SETUID | CapabilitySet::SETGID)
        && std::fs::write(folder.join("gid_map"), own_ids("gid_map")?).is_ok()
    {
        return std::fs::write(folder.join("uid_map"), own_ids("uid_map")?);
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // Groups could otherwise be dropped that forbid something.
    std::fs::write(folder.join("setgroups"), "deny")?;
    std::fs::write(folder.join("gid_map"), format!("{group} {group} 1"))?;
    std::fs::write(folder.join("uid_map"), format!("{user} {user} 1"))
}

/// All that exist here, each as itself.
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
