//! Mounts by descriptor, and the kernel's list of mounts.

use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
    move_mount, open_tree, unmount,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Opens a path without following a final link.
const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A new kernel file system that is not mounted yet.
pub(super) fn filesystem(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let fs = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            fsconfig_set_flag(&fs, *key)?;
        } else {
            fsconfig_set_string(&fs, *key, *value)?;
        }
    }
    fsconfig_create(&fs)?;
    let attributes =
        attributes | MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

pub(super) fn tmpfs(mode: &str, size: &str) -> io::Result<OwnedFd> {
    let options = [("mode", mode), ("size", size)];
    filesystem("tmpfs", &options, MountAttrFlags::empty())
}

/// Overlays `lower` with `upper`, which takes all changes; the kernel uses `work`
/// while the mount exists.
pub(super) fn overlay(lower: &OwnedFd, upper: &OwnedFd, work: &OwnedFd) -> io::Result<OwnedFd> {
    let [lower, upper, work] = [lower, upper, work].map(by_descriptor);
    let options = [
        ("userxattr", ""),
        // Commands of one project may run concurrently.
        ("index", "off"),
        // The end of a command must not wait for the disk. `work` is used once.
        ("volatile", ""),
        ("lowerdir", lower.as_str()),
        ("upperdir", upper.as_str()),
        ("workdir", work.as_str()),
    ];
    filesystem("overlay", &options, MountAttrFlags::empty())
}

fn by_descriptor(opened: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", opened.as_raw_fd())
}

/// Clones the mounts at and below a path.
pub(super) fn copy(opened: &OwnedFd) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if is_folder(opened) {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(opened, "", flags)?)
}

pub(super) fn attach(tree: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let by_descriptor =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", to, "", by_descriptor)?)
}

pub(super) fn is_folder(opened: &OwnedFd) -> bool {
    rustix::fs::fstat(opened)
        .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory)
}

/// Clones a device of the machine.
pub(super) fn device(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, PLACE, Mode::empty())?)
}

/// Opens a folder below another, creating it if missing.
pub(super) fn folder(at: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(at, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(openat(at, name, PLACE, Mode::empty())?),
        Err(e) => Err(e.into()),
    }
}

/// Opens a path on the new root, creating it if `make` says so. Does not follow
/// links.
pub(super) fn place(root: &OwnedFd, path: &Path, make: Option<Make>) -> io::Result<OwnedFd> {
    let mut at = root.try_clone()?;
    let mut names = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => None,
        })
        .peekable();
    while let Some(name) = names.next() {
        let last = names.peek().is_none();
        at = match (openat(&at, name, PLACE, Mode::empty()), make) {
            (Ok(next), _) => next,
            (Err(Errno::NOENT), Some(kind)) => {
                create(&at, name, if last { kind } else { Make::Folder })?;
                openat(&at, name, PLACE, Mode::empty())?
            }
            (Err(e), _) => return Err(e.into()),
        };
    }
    Ok(at)
}

/// The kind of object to create.
#[derive(Clone, Copy)]
pub(super) enum Make {
    File,
    Folder,
}

impl Make {
    /// The kind of an open object.
    pub(super) fn like(opened: &OwnedFd) -> Self {
        if is_folder(opened) {
            Self::Folder
        } else {
            Self::File
        }
    }
}

fn create(at: &OwnedFd, name: &OsStr, make: Make) -> io::Result<()> {
    match make {
        Make::Folder => rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o755))?,
        Make::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            drop(openat(at, name, flags, Mode::from_raw_mode(0o644))?);
        }
    }
    Ok(())
}

/// Makes a new root the only root.
pub(super) fn enter(root: &OwnedFd) -> io::Result<()> {
    rustix::process::fchdir(root)?;
    // The old root is mounted on top of the new one, and is then detached.
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    Ok(())
}

/// A line of `/proc/self/mountinfo`.
pub(super) struct Mounted {
    pub(super) path: PathBuf,
    pub(super) read_only: bool,
    /// Flags that a remount must keep.
    pub(super) kept: MountFlags,
}

/// All visible mounts; of several at one path only the top one.
pub(super) fn mounts() -> Result<Vec<Mounted>, String> {
    let lines = std::fs::read("/proc/self/mountinfo").map_err(|e| format!("/proc: {e}"))?;
    let lines = lines.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    let mut on_top = BTreeMap::new();
    for line in lines {
        let mounted = mounted(line).ok_or("cannot parse /proc/self/mountinfo")?;
        on_top.insert(mounted.path.clone(), mounted);
    }
    Ok(on_top.into_values().collect())
}

fn mounted(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|b| *b == b' ').skip(4);
    let path = unescape(fields.next()?);
    let options = std::str::from_utf8(fields.next()?).ok()?;
    let mut kept = MountFlags::empty();
    let mut read_only = false;
    for option in options.split(',') {
        match option {
            "ro" => read_only = true,
            "nosuid" => kept |= MountFlags::NOSUID,
            "nodev" => kept |= MountFlags::NODEV,
            "noexec" => kept |= MountFlags::NOEXEC,
            "noatime" => kept |= MountFlags::NOATIME,
            "nodiratime" => kept |= MountFlags::NODIRATIME,
            "relatime" => kept |= MountFlags::RELATIME,
            _ => {}
        }
    }
    Some(Mounted {
        path: OsStr::from_bytes(&path).to_owned().into(),
        read_only,
        kept,
    })
}

/// Decodes white space, which is written as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        if let (
            b'\\',
            [
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                after @ ..,
            ],
        ) = (*first, tail)
        {
            plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = after;
        } else {
            plain.push(*first);
            rest = tail;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_mounts_is_understood() {
        let line = br"36 35 98:0 / /mnt/a\040b\134c rw,nosuid,noatime master:1 - ext4 /dev/root rw";
        let mounted = mounted(line).expect("understood");
        assert_eq!(mounted.path, Path::new(r"/mnt/a b\c"));
        assert!(!mounted.read_only);
        assert_eq!(mounted.kept, MountFlags::NOSUID | MountFlags::NOATIME);
    }
}
