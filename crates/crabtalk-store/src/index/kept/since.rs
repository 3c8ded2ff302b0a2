//! Notes what the daemon changes after the times of logs were kept.
//!
//! Invariants: a log is noted before it is written to, and the folder after it was changed,
//! so that a crash at any instant leaves a note too many, or a state of the folder that
//! no note tells of, which has all logs looked at; where nothing is kept nothing is noted.

use super::{parse_time, time};
use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What notes may take, some five thousand logs: those are remembered by name, too. After
/// more, all logs are looked at again.
const MAX_NOTED: u64 = 256 * 1024;

/// What is noted, and where.
pub(super) struct Since {
    kept: PathBuf,
    path: PathBuf,
    state: State,
}

enum State {
    /// Nobody looked yet whether something is kept.
    Unknown,
    Nothing,
    Noted {
        file: File,
        bytes: u64,
        told: Told,
    },
}

/// What the notes tell.
#[derive(Default, Clone)]
pub(super) struct Told {
    /// Logs that were written to.
    pub(super) logs: HashSet<String>,
    /// In which state we left the folder, if we changed it.
    pub(super) folder: Option<SystemTime>,
}

impl Told {
    /// `None` where that is not what we write.
    fn parse(text: &str) -> Option<Self> {
        let mut told = Self::default();
        let mut notes = text.split('\0');
        // Whole notes end with a separator.
        notes.next_back().filter(|rest| rest.is_empty())?;
        for note in notes {
            match note.split_once(' ')? {
                ("log", name) => drop(told.logs.insert(name.to_owned())),
                ("folder", state) => told.folder = Some(parse_time(state)?),
                _ => return None,
            }
        }
        Some(told)
    }
}

impl Since {
    /// Notes beside what is kept at this path.
    pub(super) fn of(kept: &Path) -> Self {
        Self {
            kept: kept.to_owned(),
            path: kept.with_file_name("since"),
            state: State::Unknown,
        }
    }

    /// What was noted in lives before; `None` where nothing is kept that counts.
    pub(super) fn read(&mut self) -> Option<Told> {
        self.open();
        match &self.state {
            State::Noted { told, .. } => Some(told.clone()),
            State::Unknown | State::Nothing => None,
        }
    }

    pub(super) fn note_log(&mut self, path: &Path) {
        self.open();
        let State::Noted { told, .. } = &mut self.state else {
            return;
        };
        match path.file_name().and_then(|name| name.to_str()) {
            Some(name) if told.logs.contains(name) => {}
            Some(name) => {
                told.logs.insert(name.to_owned());
                self.note(&format!("log {name}\0"));
            }
            None => self.expire(),
        }
    }

    pub(super) fn note_folder(&mut self, state: SystemTime) {
        self.open();
        let State::Noted { told, .. } = &mut self.state else {
            return;
        };
        told.folder = Some(state);
        match time(state) {
            Some(state) => self.note(&format!("folder {state}\0")),
            None => self.expire(),
        }
    }

    /// Takes what is kept away, and the notes with it.
    pub(super) fn expire(&mut self) {
        self.open();
        if !matches!(self.state, State::Nothing) {
            // On a disk where that fails no log is written to either.
            let _ = std::fs::remove_file(&self.kept);
            self.forget();
        }
    }

    /// Begins anew: what is kept is of now.
    pub(super) fn begin(&mut self) {
        self.forget();
        self.state = State::Unknown;
    }

    fn forget(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.state = State::Nothing;
    }

    fn open(&mut self) {
        if !matches!(self.state, State::Unknown) {
            return;
        }
        self.state = State::Nothing;
        if !self.kept.exists() {
            return;
        }
        match self.opened() {
            Some(noted) => self.state = noted,
            None => {
                let _ = std::fs::remove_file(&self.kept);
                self.forget();
            }
        }
    }

    fn opened(&self) -> Option<State> {
        let file = crabtalk_files::open_to_append(&self.path).ok()?;
        let text = crabtalk_files::read(&self.path, MAX_NOTED).ok()?;
        Some(State::Noted {
            file,
            bytes: text.len() as u64,
            told: Told::parse(std::str::from_utf8(&text).ok()?)?,
        })
    }

    fn note(&mut self, note: &str) {
        let State::Noted { file, bytes, .. } = &mut self.state else {
            return;
        };
        *bytes += note.len() as u64;
        if *bytes > MAX_NOTED || file.write_all(note.as_bytes()).is_err() {
            self.expire();
        }
    }
}
