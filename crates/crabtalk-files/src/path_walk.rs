//! Resolves a path one name at a time.
//!
//! Invariant: only a link that the caller asks to follow is read, so that the caller decides
//! at each name whether to continue.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Maximum links in one path, as in the system.
const MAX_LINKS: usize = 40;

/// One step along a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep {
    /// The name was `..`: [`PathWalk::at`] is the parent folder.
    Up,
    /// The name was appended to [`PathWalk::at`].
    Down {
        /// Whether the name comes from the path, not from the target of a link.
        own: bool,
    },
}

/// A path that is resolved from the root, as the system does.
#[derive(Debug)]
pub struct PathWalk {
    at: PathBuf,
    /// Remaining names and `..`, the last one first.
    waiting: Vec<OsString>,
    /// How many of these come from the path.
    own: usize,
    links: usize,
}

impl PathWalk {
    /// Starts at the root of an absolute path.
    pub fn along(path: &Path) -> Self {
        let waiting = names(path);
        Self {
            at: PathBuf::from("/"),
            own: waiting.len(),
            waiting,
            links: 0,
        }
    }

    /// The current path: absolute, and without links except possibly the last name.
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// Goes to the next name; `None` at the end.
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

    /// Follows the link at the current path; the names of its target come next.
    ///
    /// # Errors
    /// The link is unreadable, or there were too many; the state is unchanged.
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

/// The names and `..` of a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}
