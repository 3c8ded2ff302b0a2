//! The private file system of a command, with only the open
//! paths.
//!
//! Every mount is made from a descriptor that was compared with the judged
//! file, on a new root; then the old root is unmounted.
//! Invariant: everything that is not open for writing is mounted read-only,
//! or the command does not start.

use super::mounts::{
    Make, attach, copy, device, enter, filesystem, folder, mounts, overlay, place, tmpfs,
};
use super::plan::{PRIVATE, Part, Source, is_of_machine, is_opened, may_change, plan};
use super::policy::{Cache, MissingPart, Overlays, PLACEHOLDER, PinnedPath, Right, open};
use super::{Fence, SandboxPolicy};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, mkdirat, openat, renameat_with, unlinkat};
use rustix::mount::{
    MountAttrFlags, MountFlags, MountPropagationFlags, mount_change, mount_remount,
};
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The folder with empty files and folders that cover hidden ones.
const EMPTY: &str = "/run/crabtalk/hidden";

/// Names of missing parts of git directories that are folders.
const FOLDERS: [&str; 3] = ["hooks", "info", "modules"];

/// Devices to which access has no effect.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Links in `/dev` that programs expect.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Size limit of shared memory and of the private home, both in the machine's
/// memory.
const MEMORY: &str = "64m";

/// Size limit of the root, which has only names and links.
const ROOT_BYTES: &str = "4m";

/// The parts of a command's file system.
pub(crate) struct Build<'a> {
    pub(crate) policy: &'a SandboxPolicy,
    /// The folder of temporary files.
    pub(crate) scratch: &'a PinnedPath,
    /// The folders of overlay mounts, if there are caches.
    pub(crate) overlays: Option<&'a Overlays>,
}

/// Moves this process to the new file system and its working folder, and
/// adds the open paths to the landlock ruleset.
pub(crate) fn build(build: &Build<'_>, fence: &mut Fence) -> Result<(), String> {
    let parts = plan(build.policy);
    let builder = Builder {
        parts: &parts,
        build,
    };
    builder.build(fence).map_err(|e| {
        format!("the command was not run, because the sandbox's file system cannot be set up: {e}")
    })
}

struct Builder<'a> {
    parts: &'a [Part<'a>],
    build: &'a Build<'a>,
}

type Done<T = ()> = Result<T, String>;

impl Builder<'_> {
    fn build(&self, fence: &mut Fence) -> Done {
        let policy = self.build.policy;
        let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
        mount_change("/", private).map_err(|e| at("/", e))?;
        let scratch = self.build.scratch;
        let folder = scratch.open().map_err(|e| at(&scratch.path, e))?;
        let temporary = [copy(&folder), copy(&folder)];
        let root = tmpfs("755", ROOT_BYTES).map_err(|e| at("/", e))?;
        attach(&root, &folder).map_err(|e| at("/", e))?;

        fence.list(&root)?;
        kernel(&root, fence)?;
        for (tree, path) in temporary.into_iter().zip(PRIVATE) {
            if is_opened(self.parts, path) {
                continue;
            }
            let tree = tree.map_err(|e| at(path, e))?;
            mount(&root, Path::new(path), &tree, Make::Folder)?;
        }
        fence.open(&folder, true)?;
        for (number, part) in self.parts.iter().enumerate() {
            self.part(&root, part, number, fence)
                .map_err(|e| at(part.path, e))?;
        }
        for link in &policy.links {
            if !is_of_machine(self.parts, &link.path) {
                symlink(&root, &link.path, link.target.as_os_str());
            }
        }
        let cwd = &policy.cwd;
        if !is_of_machine(self.parts, &cwd.path) {
            place(&root, &cwd.path, Some(Make::Folder)).map_err(|e| at(&cwd.path, e))?;
        }
        enter(&root).map_err(|e| at("/", e))?;
        drop(root);
        self.forbid_changes()?;
        self.work_in(cwd)
    }

    /// Mounts one path.
    fn part(
        &self,
        root: &OwnedFd,
        part: &Part<'_>,
        number: usize,
        fence: &mut Fence,
    ) -> io::Result<()> {
        let (tree, make) = match part.source {
            Source::Machine(_) if part.right == Right::Hidden => {
                return hide(root, part.path, number);
            }
            Source::Machine(spot) => {
                let Some(opened) = self.judged(spot, part.right)? else {
                    return Ok(());
                };
                fence
                    .open(&opened, part.may_change())
                    .map_err(io::Error::other)?;
                if part.covered {
                    return Ok(());
                }
                (copy(&opened)?, Make::like(&opened))
            }
            Source::MissingPart(absent) => {
                return stand_in(root, absent);
            }
            Source::Cache(_) | Source::Memory if part.covered => return Ok(()),
            Source::Cache(cache) => (self.cache(cache, number)?, Make::Folder),
            Source::Memory => (tmpfs("700", MEMORY)?, Make::Folder),
        };
        if !matches!(part.source, Source::Machine(_)) {
            fence.open(&tree, true).map_err(io::Error::other)?;
        }
        attach(&tree, &place(root, part.path, Some(make))?)
    }

    /// Opens a judged path. A replaced path is skipped, but the path of a protection
    /// must exist.
    fn judged(&self, spot: &PinnedPath, right: Right) -> io::Result<Option<OwnedFd>> {
        let opened = if *spot == self.build.policy.cwd {
            // The current folder was opened when it was judged, and may have moved since.
            open(Path::new("."))
        } else {
            spot.open()
        };
        match opened {
            Ok(opened) if spot.is(&opened) => Ok(Some(opened)),
            _ if right <= Right::Write => Ok(None),
            Ok(_) => Err(io::Error::other("the file was replaced since the check")),
            Err(e) => Err(e),
        }
    }

    /// Mounts a cache with the project's changes on top or, if the kernel refuses
    /// that, only the project's cache.
    fn cache(&self, cache: &Cache, number: usize) -> io::Result<OwnedFd> {
        let upper = cache.upper.open()?;
        if let (Some(lower), Some(overlays)) = (&cache.lower, self.build.overlays)
            && let Ok(tree) = overlaid(lower, &upper, overlays, number)
        {
            return Ok(tree);
        }
        copy(&upper)
    }

    /// Remounts everything that is not open for changes as read-only, which also
    /// protects modes, times and attributes.
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
            Some(open) => Err(format!("{} is still writable", open.path.display())),
            None => Ok(()),
        }
    }

    /// Enters the working folder if it is the judged one.
    fn work_in(&self, cwd: &PinnedPath) -> Done {
        let folder = if is_of_machine(self.parts, &cwd.path) {
            cwd.open()
        } else {
            open(&cwd.path)
        };
        let folder = folder.map_err(|e| at(&cwd.path, e))?;
        rustix::process::fchdir(folder).map_err(|e| at(&cwd.path, e))
    }
}

/// Mounts `/proc` and `/dev` with the command's own processes and harmless
/// devices.
fn kernel(root: &OwnedFd, fence: &mut Fence) -> Done {
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = filesystem("proc", &[], attributes).map_err(|e| at("/proc", e))?;
    mount(root, Path::new("/proc"), &proc, Make::Folder)?;
    fence.open(&proc, false)?;
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        let device = device(&path).map_err(|e| at(&path, e))?;
        let tree = copy(&device).map_err(|e| at(&path, e))?;
        mount(root, &path, &tree, Make::File)?;
        fence.open(&device, true)?;
    }
    let memory = tmpfs("1777", MEMORY).map_err(|e| at("/dev/shm", e))?;
    mount(root, Path::new("/dev/shm"), &memory, Make::Folder)?;
    fence.open(&memory, true)?;
    for (path, target) in DEVICE_LINKS {
        symlink(root, Path::new(path), target.as_ref());
    }
    let devices = place(root, Path::new("/dev"), Some(Make::Folder)).map_err(|e| at("/dev", e))?;
    fence.open(&devices, false)
}

/// Creates an empty, read-only file or folder. If this user may not create it, the
/// command cannot either.
fn stand_in(root: &OwnedFd, absent: &MissingPart) -> io::Result<()> {
    let parent = place(root, absent.path.parent().unwrap_or(Path::new("/")), None)?;
    let name = absent.path.file_name().unwrap_or_default();
    let made = if FOLDERS.iter().any(|folder| name == *folder) {
        mkdirat(&parent, name, Mode::from_raw_mode(0o755)).map_err(io::Error::from)
    } else {
        let text = if name == "commondir" {
            PLACEHOLDER
        } else {
            b""
        };
        new_file(&parent, name, text)
    };
    match made.map_err(|e| e.kind()) {
        Ok(()) | Err(io::ErrorKind::AlreadyExists) => {}
        Err(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => return Ok(()),
        Err(kind) => return Err(kind.into()),
    }
    let placed = place(root, &absent.path, None)?;
    attach(&copy(&placed)?, &placed)
}

/// Creates a file that has its content before its name appears.
fn new_file(folder: &OwnedFd, name: &OsStr, text: &[u8]) -> io::Result<()> {
    let random = RandomState::new().hash_one(name);
    let new = format!("crabtalk-{random:016x}");
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(folder, &new, flags, Mode::from_raw_mode(0o644))?;
    let named = std::fs::File::from(file).write_all(text).and_then(|()| {
        Ok(renameat_with(
            folder,
            &new,
            folder,
            name,
            RenameFlags::NOREPLACE,
        )?)
    });
    if named.is_err() {
        let _ = unlinkat(folder, &new, AtFlags::empty());
    }
    named
}

/// The overlay mount of a cache.
fn overlaid(
    lower: &PinnedPath,
    upper: &OwnedFd,
    overlays: &Overlays,
    number: usize,
) -> io::Result<OwnedFd> {
    let own = overlays.work.open()?;
    let work = folder(&own, &number.to_string())?;
    if overlays.keep {
        return overlay(&lower.open()?, upper, &work);
    }
    let upper = folder(&own, &format!("{number}-upper"))?;
    overlay(&lower.open()?, &upper, &work)
}

/// Covers a path with an empty file or folder.
fn hide(root: &OwnedFd, path: &Path, number: usize) -> io::Result<()> {
    let Ok(hidden) = place(root, path, None) else {
        // The path was removed since it was judged.
        return Ok(());
    };
    let empty = Path::new(EMPTY).join(number.to_string());
    let empty = place(root, &empty, Some(Make::like(&hidden)))?;
    attach(&copy(&empty)?, &hidden)
}

/// Formats an error with its path.
fn at(path: impl AsRef<Path>, error: impl Into<io::Error>) -> String {
    format!("{}: {}", path.as_ref().display(), error.into())
}

fn mount(root: &OwnedFd, path: &Path, tree: &OwnedFd, make: Make) -> Done {
    place(root, path, Some(make))
        .and_then(|spot| attach(tree, &spot))
        .map_err(|e| at(path, e))
}

/// Creates a link unless an open file or folder is at its path.
fn symlink(root: &OwnedFd, path: &Path, target: &OsStr) {
    if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        && let Ok(folder) = place(root, folder, Some(Make::Folder))
    {
        let _ = rustix::fs::symlinkat(target, &folder, name);
    }
}
