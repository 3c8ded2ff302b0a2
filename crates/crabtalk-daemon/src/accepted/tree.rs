//! What the files that decide over agents are at a moment, with enough kept to
//! put them back.
//!
//! Invariants: two trees are equal exactly if what anybody reads of them is; a
//! file whose stamps prove nothing is read again; links are recorded, not
//! followed.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Entries that are watched over: thousands of memories and skills. With more
/// no command runs outside the sandbox.
const MAX_ENTRIES: usize = 50_000;

/// Largest file that is kept to be put back; skills hold none above.
const MAX_KEPT_BYTES: u64 = 8 * 1024 * 1024;

/// A file that changed so shortly before it was looked at may change again
/// within the same tick of its time stamp.
const YOUNG: Duration = Duration::from_millis(100);

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// A file, by the hash of its content, and whether that is kept.
    File {
        sha256: String,
        kept: bool,
    },
    Link(PathBuf),
    Folder,
    /// A pipe, a socket or a device.
    Other,
}

/// One entry of a tree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    /// By which a change is seen without reading; `None` proves nothing.
    stamp: Option<[i64; 7]>,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        (&self.kind, self.mode) == (&other.kind, other.mode)
    }
}

/// Entries by their path below the home.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tree(pub(super) BTreeMap<PathBuf, Item>);

/// Looks at everything below `roots` of a home. What `before` knows by its
/// stamp is not read again; `keep` is given each content that is new.
pub(super) fn scan(
    home: &Path,
    roots: &[&str],
    before: &Tree,
    keep: &dyn Fn(&str, &[u8]) -> io::Result<()>,
) -> io::Result<Tree> {
    let mut tree = Tree::default();
    let mut waiting: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
    while let Some(path) = waiting.pop() {
        let whole = home.join(&path);
        let metadata = match fs::symlink_metadata(&whole) {
            Ok(metadata) => metadata,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        if tree.0.len() == MAX_ENTRIES {
            let what = format!("it has more than {MAX_ENTRIES} files");
            return Err(io::Error::other(what));
        }
        let stamp = stamp(&metadata);
        let known = before
            .0
            .get(&path)
            .filter(|item| item.stamp.is_some() && item.stamp == stamp && metadata.is_file());
        let kind = if let Some(known) = known {
            known.kind.clone()
        } else if metadata.is_file() {
            file(&whole, &metadata, keep)?
        } else if metadata.is_symlink() {
            // A whole root may lie elsewhere; other links are not followed.
            if roots.iter().any(|root| Path::new(root) == path) && whole.is_dir() {
                below(&whole, &path, &mut waiting)?;
            }
            Kind::Link(fs::read_link(&whole)?)
        } else if metadata.is_dir() {
            below(&whole, &path, &mut waiting)?;
            Kind::Folder
        } else {
            Kind::Other
        };
        let item = Item {
            kind,
            mode: metadata.permissions().mode() & 0o7777,
            stamp,
        };
        tree.0.insert(path, item);
    }
    Ok(tree)
}

fn below(folder: &Path, path: &Path, waiting: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        // Nobody reads a name that is no text, nor an unfinished file.
        if name.to_str().is_some() && !crabtalk_files::is_left_over(&name) {
            waiting.push(path.join(name));
        }
    }
    Ok(())
}

fn file(
    path: &Path,
    metadata: &fs::Metadata,
    keep: &dyn Fn(&str, &[u8]) -> io::Result<()>,
) -> io::Result<Kind> {
    if metadata.len() > MAX_KEPT_BYTES {
        // Nothing that counts is as large; its stamps stand for it.
        let sha256 = format!("large:{:?}", numbers(metadata));
        return Ok(Kind::File {
            sha256,
            kept: false,
        });
    }
    match crabtalk_files::read(path, MAX_KEPT_BYTES) {
        Ok(bytes) => {
            let sha256 = hash(&bytes);
            keep(&sha256, &bytes)?;
            Ok(Kind::File { sha256, kept: true })
        }
        // What the daemon cannot read counts for nothing either.
        Err(error) => Ok(Kind::File {
            sha256: format!("unreadable:{error}"),
            kept: false,
        }),
    }
}

fn hash(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a String takes all");
    }
    text
}

fn numbers(metadata: &fs::Metadata) -> [i64; 7] {
    [
        metadata.dev() as i64,
        metadata.ino() as i64,
        metadata.size() as i64,
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ]
}

fn stamp(metadata: &fs::Metadata) -> Option<[i64; 7]> {
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).ok()?);
    let nanos = Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).ok()?);
    let changed = SystemTime::UNIX_EPOCH.checked_add(seconds + nanos)?;
    let age = SystemTime::now().duration_since(changed).ok()?;
    (age > YOUNG).then(|| numbers(metadata))
}

/// The paths at which two trees differ, deepest first.
pub(super) fn differences(before: &Tree, now: &Tree) -> Vec<PathBuf> {
    let all = before.0.keys().chain(now.0.keys());
    let mut differing: Vec<PathBuf> = all
        .filter(|path| before.0.get(*path) != now.0.get(*path))
        .cloned()
        .collect();
    differing.sort_by(|a, b| b.as_os_str().as_bytes().cmp(a.as_os_str().as_bytes()));
    differing.dedup();
    differing
}
