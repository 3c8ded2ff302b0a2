//! What is recorded before a command begins, compared while it runs and after,
//! and put back.
//!
//! Everything here may wait for the disk.

use super::held::{self, Change, Held};
use super::tree::{self, Tree};
use super::{Inner, State};
use crabtalk_domain::{Clock, SystemClock, stamp};
use crabtalk_files::Existing;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// What decides over agents, below the home.
pub(super) const ROOTS: [&str; 2] = ["config", "state/trust.toml"];

/// Refused changes that are kept for a person to look at.
const MAX_REFUSED: usize = 100;

/// Largest note of whose command runs: two names.
const MAX_MARKER_BYTES: u64 = 16 * 1024;

/// Changes that wait at a time: more than anybody looks through.
pub(super) const MAX_HELD: usize = 100;

impl Inner {
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.home.join("state/accepted").join(name)
    }

    pub(super) fn marker(&self) -> PathBuf {
        self.place("open")
    }

    pub(super) fn kept(&self, sha256: &str) -> PathBuf {
        self.place("objects").join(sha256)
    }

    pub(super) fn held(&self) -> PathBuf {
        self.home.join("state/held")
    }

    pub(super) fn refused(&self) -> PathBuf {
        self.home.join("state/refused")
    }

    pub(super) fn scan(&self, before: &Tree, keep: bool) -> io::Result<Tree> {
        let keep = |sha256: &str, bytes: &[u8]| {
            let file = self.kept(sha256);
            if !keep || file.exists() {
                return Ok(());
            }
            // Not synced: what a power cut takes, a restart records anew.
            let unfinished = file.with_extension("part");
            crabtalk_files::create_folder(&self.place("objects"))?;
            // Private: the configuration may hold keys (OPS-5).
            let mut private = fs::OpenOptions::new();
            let private = private.write(true).create(true).truncate(true).mode(0o600);
            private.open(&unfinished)?.write_all(bytes)?;
            fs::rename(&unfinished, &file)
        };
        tree::scan(&self.home, &ROOTS, before, &keep)
    }

    /// Ends a window that the last daemon left open.
    pub(super) fn close_window(&self, state: &mut State) -> io::Result<()> {
        let marker =
            crabtalk_files::if_there(crabtalk_files::read(&self.marker(), MAX_MARKER_BYTES));
        let Some(by) = marker.map_err(io::Error::from)? else {
            return Ok(());
        };
        state.by = serde_json::from_slice(&by).unwrap_or_default();
        let known = crabtalk_files::read(&self.place("tree.json"), u64::MAX);
        let known = known.map_err(io::Error::from)?;
        state.tree = serde_json::from_slice(&known)?;
        self.check(state)?;
        fs::remove_file(self.marker())
    }

    /// Records everything as accepted, before a command begins.
    pub(super) fn record(&self, state: &mut State) -> io::Result<()> {
        let tree = self.scan(&state.tree, true)?;
        if tree != state.tree || !self.place("tree.json").exists() {
            let text = serde_json::to_vec(&tree).map_err(io::Error::other)?;
            crabtalk_files::write(&self.place("tree.json"), &text, Existing::Replace)?;
        }
        state.tree = tree;
        let by = serde_json::to_vec(&state.by).map_err(io::Error::other)?;
        fs::write(self.marker(), by)
    }

    /// Takes what differs out of its place.
    pub(super) fn check(&self, state: &mut State) -> io::Result<()> {
        let now = self.scan(&state.tree, false)?;
        let paths = tree::differences(&state.tree, &now);
        if paths.is_empty() {
            // Stamps that prove something by now.
            state.tree = now;
            return Ok(());
        }
        let change = |path: PathBuf| Change {
            before: state.tree.0.get(&path).cloned(),
            after: now.0.get(&path).cloned(),
            path,
        };
        let (agent, sender) = state.by.clone().unwrap_or_default();
        let clock = SystemClock.now();
        let held = Held {
            id: format!(
                "{:x}-{}",
                clock.as_millisecond(),
                self.next.fetch_add(1, Ordering::Relaxed)
            ),
            agent,
            sender,
            at: stamp(clock),
            changes: paths.into_iter().map(change).collect(),
        };
        held.take(&self.home, &self.held())?;
        held::restore(&self.home, &held.changes, &|sha256| self.kept(sha256))?;
        tracing::warn!(
            target: "security",
            agent = %held.agent,
            sender = %held.sender,
            id = %held.id,
            files = held.changes.len(),
            "a command changed the configuration; it does not count until an owner allows it"
        );
        // Again, since what was put back has new stamps.
        state.tree = self.scan(&state.tree, false)?;
        if held::waiting(&self.held()).len() > MAX_HELD {
            tracing::error!(id = %held.id, "too many changes wait: this one is refused");
            return self.put_aside(&held.id);
        }
        state.unasked.push_back(held);
        self.asks.notify_one();
        Ok(())
    }

    /// Records what lies at some paths as accepted.
    pub(super) fn absorb(
        &self,
        state: &mut State,
        which: &dyn Fn(&Path) -> bool,
    ) -> io::Result<()> {
        let now = self.scan(&state.tree, true)?;
        state.tree.0.retain(|path, _| !which(path));
        let taken = now.0.into_iter().filter(|(path, _)| which(path));
        state.tree.0.extend(taken);
        let text = serde_json::to_vec(&state.tree).map_err(io::Error::other)?;
        crabtalk_files::write(&self.place("tree.json"), &text, Existing::Replace)
    }

    pub(super) fn accept(&self, state: &mut State, id: &str) -> io::Result<()> {
        if state.open > 0 {
            self.check(state)?;
        }
        let folder = self.held();
        let waiting = held::waiting(&folder);
        let held = waiting.iter().find(|held| held.id == id);
        let held = held.ok_or_else(|| io::Error::other("it is gone"))?;
        let now = self.scan(&Tree::default(), false)?;
        let moved = held
            .changes
            .iter()
            .find(|change| now.0.get(&change.path) != change.before.as_ref());
        if let Some(moved) = moved {
            self.put_aside(id)?;
            return Err(io::Error::other(format!(
                "{} was changed since; what was held lies in {}",
                moved.path.display(),
                self.refused().join(id).display()
            )));
        }
        held.put(&self.home, &folder)?;
        if state.open > 0 {
            let paths: Vec<&Path> = held.changes.iter().map(|c| c.path.as_path()).collect();
            self.absorb(state, &|at| paths.contains(&at))?;
        }
        fs::remove_dir_all(folder.join(id))
    }

    pub(super) fn put_aside(&self, id: &str) -> io::Result<()> {
        crabtalk_files::create_folder(&self.refused())?;
        let mut old: Vec<_> = fs::read_dir(self.refused())?.flatten().collect();
        old.sort_by_key(fs::DirEntry::file_name);
        for oldest in old.iter().take((old.len() + 1).saturating_sub(MAX_REFUSED)) {
            fs::remove_dir_all(oldest.path())?;
        }
        fs::rename(self.held().join(id), self.refused().join(id))
    }

    /// Removes contents that nothing refers to any more.
    pub(super) fn sweep(&self, state: &State) {
        let known = |name: &str| {
            let changes = state.unasked.iter().flat_map(|held| &held.changes);
            let before = changes.filter_map(|change| change.before.as_ref());
            let mut items = state.tree.0.values().chain(before);
            items
                .any(|item| matches!(&item.kind, tree::Kind::File { sha256, .. } if sha256 == name))
        };
        for object in fs::read_dir(self.place("objects"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if !object.file_name().to_str().is_some_and(known) {
                // What stays costs room alone.
                let _ = fs::remove_file(object.path());
            }
        }
    }
}
