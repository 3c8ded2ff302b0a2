//! A file system of the command's own: what is opened to it, and nothing else.
//!
//! Everything is mounted by descriptors of what was judged, on a fresh root
//! that nobody else sees; then the old root is left behind.
//! Invariant: what is not opened for changes is mounted read-only, or nothing
//! is started.

use super::plan::{PRIVATE, Part, is_mounted, is_opened, may_change, plan};
use super::policy::{Spot, open};
use super::{Fence, SandboxPolicy};
use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    mount_change, mount_remount, move_mount, open_tree, unmount,
};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Where a command too long for an argument lies.
pub(crate) const COMMAND: &str = "/run/crabtalk/command";

/// Devices without effect on anything.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Links that programs look for in `/dev`.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Shared memory of the command's own: enough for what test suites and
/// worker pools share. It is memory of the machine, hence a limit.
const SHARED_MEMORY: &str = "64m";

/// The root holds names, links and one command of a megabyte.
const ROOT_BYTES: &str = "16m";

const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Puts the calling process into a file system of its own and into its
/// working folder; opens in the fence what is opened in it.
pub(crate) fn build(
    policy: &SandboxPolicy,
    scratch: &Spot,
    command: Option<&str>,
    fence: &mut Fence,
) -> Result<(), String> {
    let parts = plan(policy);
    let builder = Builder {
        parts: &parts,
        cwd: &policy.cwd,
    };
    builder.build(policy, scratch, command, fence).map_err(|e| {
        format!("the command was not run, because the sandbox's file system cannot be made: {e}")
    })
}

struct Builder<'a> {
    parts: &'a [Part<'a>],
    cwd: &'a Spot,
}

type Done<T = ()> = Result<T, String>;

impl Builder<'_> {
    fn build(
        &self,
        policy: &SandboxPolicy,
        scratch: &Spot,
        command: Option<&str>,
        fence: &mut Fence,
    ) -> Done {
        let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
        mount_change("/", private).map_err(|e| at("/", e))?;
        let folder = scratch.open().map_err(|e| at(&scratch.path, e))?;
        let temporary = [copy(&folder), copy(&folder)];
        let root = tmpfs(&[("mode", "755"), ("size", ROOT_BYTES)]).map_err(|e| at("/", e))?;
        attach(&root, &folder).map_err(|e| at("/", e))?;

        kernel(&root, fence)?;
        for (tree, path) in temporary.into_iter().zip(PRIVATE) {
            if is_opened(self.parts, path) {
                continue;
            }
            let tree = tree.map_err(|e| at(path, e))?;
            mount(&root, Path::new(path), &tree, true)?;
        }
        fence.open(&folder, true)?;
        self.opened(&root, fence)?;
        for link in &policy.links {
            if !is_mounted(self.parts, &link.path) {
                symlink(&root, &link.path, link.target.as_os_str());
            }
        }
        if !is_mounted(self.parts, &policy.cwd.path) {
            spot_on(&root, &policy.cwd.path, true).map_err(|e| at(&policy.cwd.path, e))?;
        }
        if let Some(command) = command {
            keep_command(&root, command, fence).map_err(|e| at(COMMAND, e))?;
        }
        enter(&root).map_err(|e| at("/", e))?;
        drop(root);
        self.forbid_changes()?;
        self.work_in(&policy.cwd)
    }

    /// Mounts what is opened. What is not what was judged any more stays out.
    fn opened(&self, root: &OwnedFd, fence: &mut Fence) -> Done {
        for part in self.parts {
            let opened = if *part.spot == *self.cwd {
                // Held since it was judged, wherever it is by now.
                open(Path::new("."))
            } else {
                part.spot.open()
            };
            let Some(opened) = opened.ok().filter(|opened| part.spot.is(opened)) else {
                continue;
            };
            if !part.covered {
                let tree = copy(&opened).map_err(|e| at(&part.spot.path, e))?;
                mount(root, &part.spot.path, &tree, is_folder(&opened))?;
            }
            fence.open(&opened, part.change)?;
        }
        Ok(())
    }

    /// Everything that is not opened for changes becomes read-only, which
    /// modes, times and attributes of files obey as well.
    fn forbid_changes(&self) -> Done {
        for mounted in mounts()? {
            if mounted.read_only || may_change(self.parts, &mounted.path) {
                continue;
            }
            let flags = mounted.kept | MountFlags::BIND | MountFlags::RDONLY;
            mount_remount(&mounted.path, flags, "").map_err(|e| at(&mounted.path, e))?;
        }
        let open = mounts()?
            .into_iter()
            .find(|m| !m.read_only && !may_change(self.parts, &m.path));
        match open {
            Some(open) => Err(format!("{} stays writable", open.path.display())),
            None => Ok(()),
        }
    }

    /// Enters the working folder, if it is the judged one.
    fn work_in(&self, cwd: &Spot) -> Done {
        let folder = if is_mounted(self.parts, &cwd.path) {
            cwd.open()
        } else {
            open(&cwd.path)
        };
        let folder = folder.map_err(|e| at(&cwd.path, e))?;
        rustix::process::fchdir(folder).map_err(|e| at(&cwd.path, e))
    }
}

/// `/proc` and `/dev`, which show the command's own processes and devices
/// without effect.
fn kernel(root: &OwnedFd, fence: &mut Fence) -> Done {
    let proc = (|| -> io::Result<OwnedFd> {
        let fs = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&fs)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        Ok(fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
    })()
    .map_err(|e| at("/proc", e))?;
    mount(root, Path::new("/proc"), &proc, true)?;
    fence.open(&proc, false)?;
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        let device = openat(CWD, &path, PLACE, Mode::empty()).map_err(|e| at(&path, e))?;
        let tree = copy(&device).map_err(|e| at(&path, e))?;
        mount(root, &path, &tree, false)?;
        fence.open(&device, true)?;
    }
    let memory = tmpfs(&[("mode", "1777"), ("size", SHARED_MEMORY)]);
    let memory = memory.map_err(|e| at("/dev/shm", e))?;
    mount(root, Path::new("/dev/shm"), &memory, true)?;
    fence.open(&memory, true)?;
    for (path, target) in DEVICE_LINKS {
        symlink(root, Path::new(path), target.as_ref());
    }
    let devices = spot_on(root, Path::new("/dev"), true).map_err(|e| at("/dev", e))?;
    fence.open(&devices, false)
}

/// What failed, and on what.
fn at(path: impl AsRef<Path>, error: impl Into<io::Error>) -> String {
    format!("{}: {}", path.as_ref().display(), error.into())
}

fn tmpfs(options: &[(&str, &str)]) -> io::Result<OwnedFd> {
    let fs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&fs, *key, *value)?;
    }
    fsconfig_create(&fs)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// What is mounted at and below something, as a tree that is nowhere yet.
fn copy(opened: &OwnedFd) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if is_folder(opened) {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(opened, "", flags)?)
}

fn attach(tree: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let by_descriptor =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", to, "", by_descriptor)?)
}

fn mount(root: &OwnedFd, path: &Path, tree: &OwnedFd, folder: bool) -> Done {
    spot_on(root, path, folder)
        .and_then(|spot| attach(tree, &spot))
        .map_err(|e| at(path, e))
}

fn is_folder(opened: &OwnedFd) -> bool {
    rustix::fs::fstat(opened)
        .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory)
}

/// A place on the new root, made where it is missing. No link is followed.
fn spot_on(root: &OwnedFd, path: &Path, folder: bool) -> io::Result<OwnedFd> {
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
        match openat(&at, name, PLACE, Mode::empty()) {
            Ok(next) => at = next,
            Err(Errno::NOENT) => {
                make(&at, name, folder || !last)?;
                at = openat(&at, name, PLACE, Mode::empty())?;
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(at)
}

fn make(at: &OwnedFd, name: &OsStr, folder: bool) -> io::Result<()> {
    if folder {
        rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o755))?;
    } else {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        drop(openat(at, name, flags, Mode::from_raw_mode(0o644))?);
    }
    Ok(())
}

/// What stands there already stays: a folder that is opened counts for more
/// than a link to it.
fn symlink(root: &OwnedFd, path: &Path, target: &OsStr) {
    if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        && let Ok(folder) = spot_on(root, folder, true)
    {
        let _ = rustix::fs::symlinkat(target, &folder, name);
    }
}

fn keep_command(root: &OwnedFd, command: &str, fence: &mut Fence) -> io::Result<()> {
    let path = Path::new(COMMAND);
    let place = spot_on(root, path, false)?;
    let folder = spot_on(root, path.parent().unwrap_or(path), true)?;
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = path.file_name().unwrap_or_default();
    let file = openat(&folder, name, flags, Mode::empty())?;
    std::fs::File::from(file).write_all(command.as_bytes())?;
    fence.open(&place, false).map_err(io::Error::other)
}

/// Makes the new root the only one.
fn enter(root: &OwnedFd) -> io::Result<()> {
    rustix::process::fchdir(root)?;
    // The old root lands on top of the new one, from where it is taken away.
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    Ok(())
}

/// A line of `/proc/self/mountinfo`.
struct Mounted {
    path: PathBuf,
    read_only: bool,
    /// What may not be taken from it.
    kept: MountFlags,
}

fn mounts() -> Done<Vec<Mounted>> {
    let lines = std::fs::read("/proc/self/mountinfo").map_err(|e| at("/proc", e))?;
    let lines = lines.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    lines
        .map(|line| mounted(line).ok_or_else(|| "mounts are not understood".to_owned()))
        .collect()
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

/// Blanks and the like are written as three octal digits.
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
    fn a_line_of_mounts_is_understood() {
        let line = br"36 35 98:0 / /mnt/a\040b\134c rw,nosuid,noatime master:1 - ext4 /dev/root rw";
        let mounted = mounted(line).expect("understood");
        assert_eq!(mounted.path, Path::new(r"/mnt/a b\c"));
        assert!(!mounted.read_only);
        assert_eq!(mounted.kept, MountFlags::NOSUID | MountFlags::NOATIME);
    }
}
