//! A path on the way to where it leads, a name at a time.
//!
//! Invariant: only the link that is to be followed is read, so that the caller
//! decides at each name whether to continue.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Links that one path may lead through, as the system has it.
const MAX_LINKS: usize = 40;

/// One name of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep {
    /// It was `..`: [`Way::at`] is the folder above.
    Up,
    /// It was a name, which is now the last of [`Way::at`].
    Down {
        /// Whether it is the path's own, and not of a link in it.
        own: bool,
    },
}

/// A path that is followed from the root on, as the system would.
#[derive(Debug)]
pub struct Way {
    at: PathBuf,
    /// Names and `..` that are still to come, the last one first.
    waiting: Vec<OsString>,
    /// How many of these are the path's own.
    own: usize,
    links: usize,
}

impl Way {
    /// The way along an absolute path.
    pub fn along(path: &Path) -> Self {
        let waiting = names(path);
        Self {
            at: PathBuf::from("/"),
            own: waiting.len(),
            waiting,
            links: 0,
        }
    }

    /// Where it is now: absolute, and without links but for the last name.
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// Goes on by a name; `None` at the end.
    pub fn step(&mut self) -> Option<PathStep> {
        let name = self.waiting.pop()?;
        let own = self.waiting.len() < self.own;
        self.own = self.own.min(self.waiting.len());
        if name == ".." {
            self.at.pop();
            return Some(PathStep::Up);
        }
        self.at.push(name);
        Some(PathStep::Down { own })
    }

    /// Follows the link that it is at; the names of its target come next.
    ///
    /// # Errors
    /// The link is unreadable, or there were too many; the way is unchanged
    /// then.
    pub fn follow_link(&mut self) -> io::Result<()> {
        if self.links >= MAX_LINKS {
            return Err(ErrorKind::InvalidInput.into());
        }
        let target = fs::read_link(&self.at)?;
        self.links += 1;
        self.at.pop();
        if target.is_absolute() {
            self.at = PathBuf::from("/");
        }
        self.waiting.extend(names(&target));
        Ok(())
    }
}

/// Names and `..` of a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}
