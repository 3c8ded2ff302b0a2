//! Which places do not answer, found out by threads that may be lost there.
//!
//! A **survey** goes the way of a path on which work hangs, link by link. Where it
//! does not come back from, nobody else is sent; it stays there, and when it
//! returns the place answers again.
//!
//! Invariants: no place gets two surveys; a place is a mount, or what lies at one
//! path of the root's own disk, on which everybody else depends.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a step of a survey takes that may not come back. Until that is known
/// nobody else goes there.
const LOST_AFTER: Duration = Duration::from_millis(300);

/// Between two looks of a thread that waits for what a survey finds.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How long a survey is lost in a place that counts as dead, so that who wants to go
/// there is refused at once. A slow disk takes seconds, too.
const DEAD_AFTER: Duration = Duration::from_secs(8);

/// Surveys that may be lost, each a thread that does nothing.
pub(super) const MAX_SURVEYS: usize = 12;

/// What is known of places. Cheap to clone; the clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    known: Mutex<Known>,
    changed: Condvar,
    follow: Follow,
    mounts: fn() -> Mounts,
}

/// Goes the way of a path, and asks before each step.
type Follow = fn(&Path, Before<'_>) -> io::Result<()>;
type Before<'a> = &'a mut dyn FnMut(&Path) -> io::Result<()>;

impl Default for Shared {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            changed: Condvar::new(),
            follow: crabtalk_files::follow,
            mounts: Mounts::read,
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    surveys: Vec<Survey>,
    next: u64,
}

impl Known {
    fn is_looking(&self) -> bool {
        self.surveys.iter().any(|survey| !survey.is_lost())
    }
}

/// A survey that has not come back.
#[derive(Debug)]
struct Survey {
    id: u64,
    /// Where it is, and when it came there.
    at: PathBuf,
    came: Instant,
    mounts: Mounts,
}

/// A place that does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Silent {
    pub(super) path: PathBuf,
    /// The number of the mount, by which another in its place is told.
    mount: Option<u64>,
    /// Since when a survey is there.
    since: Instant,
}

impl Silent {
    fn is_dead(&self) -> bool {
        self.since.elapsed() >= DEAD_AFTER
    }
}

impl Places {
    /// Places to which the way is another, with a mount at `/dead`.
    #[cfg(test)]
    pub(super) fn by(follow: Follow) -> Self {
        let mounts = || Mounts(vec![(1, "/".into()), (2, "/dead".into())]);
        Self(Arc::new(Shared {
            follow,
            mounts,
            ..Shared::default()
        }))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Places from which a survey has not come back.
    pub(super) fn silent(&self) -> Vec<Silent> {
        let known = self.known();
        let lost = known.surveys.iter().filter(|survey| survey.is_lost());
        lost.map(Survey::place).collect()
    }

    /// Whether a path lies, as it is written, where nothing answers and nobody
    /// knows yet for how long.
    pub(super) fn in_doubt(&self, path: &Path) -> bool {
        let doubtful = |place: Silent| !place.is_dead() && path.starts_with(place.path);
        self.silent().into_iter().any(doubtful)
    }

    /// Whether a survey is under way, which tells soon where nobody should go.
    pub(super) fn is_looking(&self) -> bool {
        self.known().is_looking()
    }

    /// Begins a survey of the way to `path`, on which work hangs, if another may
    /// begin: one at a time, for it may find what the others want to know.
    pub(super) fn survey(&self, path: &Path) -> bool {
        let mut known = self.known();
        if known.is_looking() || known.surveys.len() == MAX_SURVEYS {
            return false;
        }
        let id = known.next;
        known.next += 1;
        known.surveys.push(Survey {
            id,
            at: PathBuf::new(),
            came: Instant::now(),
            mounts: Mounts::default(),
        });
        drop(known);
        let (begun, path) = (Returns(self.clone(), id), path.to_owned());
        tokio::task::spawn_blocking(move || begun.go(&path));
        true
    }

    /// Waits until it is known whether a path may be touched: for a thread that may
    /// wait.
    ///
    /// # Errors
    /// A text that names the place, where that is dead.
    pub(super) fn check(&self, path: &Path) -> io::Result<()> {
        while let Some(place) = self.on_the_way(path) {
            if place.is_dead() {
                let why = format!(
                    "{} was not touched: {} has not answered for more than {} s; a disk or a \
                     mount does not answer",
                    path.display(),
                    place.path.display(),
                    DEAD_AFTER.as_secs()
                );
                return Err(io::Error::new(ErrorKind::TimedOut, why));
            }
            let waited = self.0.changed.wait_timeout(self.known(), ASK_AGAIN);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
        Ok(())
    }

    /// The first place on the way of a path that does not answer.
    fn on_the_way(&self, path: &Path) -> Option<Silent> {
        let mut silent = self.silent();
        if silent.is_empty() {
            return None;
        }
        let now = (self.0.mounts)();
        // Something else is mounted there by now, or nothing.
        silent.retain(|place| now.at(&place.path).map(|(id, _)| id) == place.mount);
        let mut met = None;
        let mut before = |at: &Path| {
            met = silent.iter().find(|place| at.starts_with(&place.path));
            match met {
                Some(_) => Err(ErrorKind::TimedOut.into()),
                None => Ok(()),
            }
        };
        // Its other errors are for those who go there.
        let _ = (self.0.follow)(path, &mut before);
        met.cloned()
    }
}

impl Survey {
    fn is_lost(&self) -> bool {
        let has_begun = !self.at.as_os_str().is_empty();
        has_begun && self.came.elapsed() >= LOST_AFTER
    }

    fn place(&self) -> Silent {
        let mount = self.mounts.at(&self.at);
        let is_root = |at: &Path| at.parent().is_none();
        Silent {
            path: match mount {
                Some((_, at)) if !is_root(at) => at.to_owned(),
                _ => self.at.clone(),
            },
            mount: mount.map(|(id, _)| id),
            since: self.came,
        }
    }
}

/// Ends its survey when the thread comes back, or never got to it.
struct Returns(Places, u64);

impl Drop for Returns {
    fn drop(&mut self) {
        self.0.known().surveys.retain(|it| it.id != self.1);
        self.0.0.changed.notify_all();
    }
}

impl Returns {
    fn go(&self, path: &Path) {
        let mounts = (self.0.0.mounts)();
        self.update(|survey| survey.mounts = mounts);
        let mut before = |at: &Path| {
            // What is known already needs nobody else.
            let known = self.0.silent();
            if known.iter().any(|place| at.starts_with(&place.path)) {
                return Err(ErrorKind::TimedOut.into());
            }
            self.update(|survey| {
                survey.at = at.to_owned();
                survey.came = Instant::now();
            });
            Ok(())
        };
        if let Err(error) = (self.0.0.follow)(path, &mut before) {
            tracing::debug!(path = %path.display(), %error, "the way was not followed to its end");
        }
    }

    fn update(&self, change: impl FnOnce(&mut Survey)) {
        let mut known = self.0.known();
        if let Some(survey) = known.surveys.iter_mut().find(|it| it.id == self.1) {
            change(survey);
        }
    }
}

/// What is mounted where, by number. Empty where the system does not say.
#[derive(Debug, Default)]
struct Mounts(Vec<(u64, PathBuf)>);

impl Mounts {
    /// Reads what the kernel knows by itself, whatever answers or not.
    fn read() -> Self {
        let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        Self(
            table
                .split(|byte| *byte == b'\n')
                .filter_map(mount)
                .collect(),
        )
    }

    /// The mount on which a path without links lies.
    fn at(&self, path: &Path) -> Option<(u64, &Path)> {
        let above = self.0.iter().filter(|(_, at)| path.starts_with(at));
        // Of several at one place the last one covers the others.
        let nearest = above.max_by_key(|(_, at)| at.components().count());
        nearest.map(|(id, at)| (*id, at.as_path()))
    }
}

/// The number and the place of a line of the kernel's table.
fn mount(line: &[u8]) -> Option<(u64, PathBuf)> {
    use std::os::unix::ffi::OsStringExt;
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let mut left = fields.nth(3)?;
    let mut at = Vec::with_capacity(left.len());
    while let Some((byte, rest)) = left.split_first() {
        left = rest;
        // White space and backslashes are written as three octal digits.
        let octal = (*byte == b'\\').then(|| left.split_at_checked(3)).flatten();
        let decoded = octal.and_then(|(digits, rest)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 8).ok()?, rest))
        });
        match decoded {
            Some((decoded, rest)) => {
                at.push(decoded);
                left = rest;
            }
            None => at.push(*byte),
        }
    }
    Some((id, std::ffi::OsString::from_vec(at).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_tells_where_a_path_lies() {
        let lines: [&[u8]; 3] = [
            b"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw",
            b"63 22 0:39 / /mnt/a\\040b rw,relatime shared:1 - nfs4 host:/x rw",
            b"",
        ];
        let mounts = Mounts(lines.into_iter().filter_map(mount).collect());
        assert_eq!(
            mounts.at(Path::new("/mnt/a b/c")),
            Some((63, Path::new("/mnt/a b")))
        );
        assert_eq!(mounts.at(Path::new("/mnt/a")), Some((22, Path::new("/"))));
    }
}
