//! Switching conversations and reading archives.

use super::Live;
use super::calls::{self, Pair};
use super::choice::{Choice, Purpose};
use super::picker::{Picked, Picker};
use crate::switch::Place;
use crabtalk_client::Error;
use crabtalk_proto::ArchiveContent;
use crossterm::event::KeyEvent;
use std::path::PathBuf;

/// Messages shown of an archive.
const ARCHIVE_MESSAGES: u32 = 30;

impl Live<'_> {
    /// Handles `/switch`: opens the picker and requests its list.
    pub(super) fn switch_command(&mut self, search: &str) {
        self.picker = Some(Picker::new(Purpose::Switch, search));
        let own = self.learned.sender.clone();
        self.call(calls::switch(self.client.clone(), own));
    }

    pub(super) fn show_places(&mut self, places: Result<Vec<Place>, Error>) {
        let purpose = self.picker.as_ref().map(|picker| picker.purpose);
        let resumes = purpose == Some(Purpose::Resume);
        let choices = places.map(|places| {
            let places = places.into_iter();
            let fitting = places.filter(|place| !resumes || self.is_resumable(place));
            fitting.map(Choice::Place).collect()
        });
        self.fill_picker(&[Purpose::Switch, Purpose::Resume], choices);
    }

    /// Fills the picker if it is open for one of these purposes.
    pub(super) fn fill_picker(
        &mut self,
        purposes: &[Purpose],
        choices: Result<Vec<Choice>, Error>,
    ) {
        let picker = self.picker.as_mut();
        let picker = picker.filter(|picker| purposes.contains(&picker.purpose));
        match (choices, picker) {
            (Ok(choices), Some(picker)) => picker.fill(choices),
            (Ok(_), None) => {}
            (Err(error), picker) => {
                if picker.is_some() {
                    self.picker = None;
                }
                self.transcript.problem(&error.to_string());
            }
        }
    }

    pub(super) fn picker_key(&mut self, key: KeyEvent) {
        let Some(picker) = &mut self.picker else {
            return;
        };
        match picker.key(key) {
            Picked::Not => {}
            Picked::Left => self.picker = None,
            Picked::This(purpose, choice) => {
                self.picker = None;
                match (purpose, *choice) {
                    (Purpose::Switch, Choice::Place(place)) => self.go_to(place),
                    (_, choice) => self.return_to(choice),
                }
            }
        }
    }

    pub(super) fn go_to(&mut self, place: Place) {
        if place.archive.is_some() {
            let said = format!("{}: {}", place.name(), place.about());
            self.transcript.note(&said);
            let client = self.client.clone();
            return self.call(calls::archive(client, place, ARCHIVE_MESSAGES));
        }
        let said = format!("switched to {}", place.name());
        let folder = PathBuf::from(&place.folder);
        // Uses the folder of the other conversation if it exists here.
        if place.sender != self.learned.sender && folder.is_dir() {
            self.context.global.cwd = Some(folder.clone());
            self.cwd = folder;
            self.read_branch();
        }
        self.turn_to(
            Pair {
                agent: place.agent,
                sender: place.sender,
            },
            &said,
        );
    }

    /// Shows an archive without reopening it.
    pub(super) fn show_archive(&mut self, archive: Result<ArchiveContent, Error>) {
        match archive {
            Ok(archive) => {
                self.transcript.entries(&archive.entries);
                let said = "this is an archive: /resume continues it, `crabtalk archives show` prints all of it";
                self.transcript.note(said);
            }
            Err(error) => self.transcript.problem(&error.to_string()),
        }
    }

    /// Switches conversations; active runs continue.
    pub(super) fn turn_to(&mut self, pair: Pair, said: &str) {
        if !self.unsent().is_empty() {
            let why = "messages of this conversation are not sent yet: they wait for the daemon";
            return self.transcript.problem(why);
        }
        if !self.runs.is_empty() {
            self.transcript
                .note("the active run continues; its answer will be in the history");
        }
        self.runs.clear();
        self.asks.clear();
        self.steers = super::Steers::default();
        self.members = super::Members::default();
        self.killing = false;
        self.mode.forget();
        let key = |pair: &Pair| (pair.agent.clone(), pair.sender.clone());
        let from = Pair {
            agent: self.learned.agent.clone(),
            sender: self.learned.sender.clone(),
        };
        self.model.switch(key(&from), &key(&pair));
        self.figures = super::Figures::default();
        self.learned.agent.clone_from(&pair.agent);
        self.learned.sender.clone_from(&pair.sender);
        self.pair = pair;
        let above = self.transcript.take();
        self.transcript = super::Transcript::new(self.size.0);
        self.transcript.keep(above);
        self.transcript.tools.cwd.clone_from(&self.cwd);
        self.transcript.note(said);
        self.learn();
        self.begin();
        // Pending asks may belong to the new conversation.
        self.others.clear();
        self.call(calls::asks(self.client.clone()));
    }
}
