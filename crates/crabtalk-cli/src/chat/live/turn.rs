//! Switching conversations and reading archives.

use super::Live;
use super::calls::Pair;
use super::choice::{Choice, Purpose};
use super::picker::{Picked, Picker};
use crate::switch::{Place, places};
use crabtalk_client::Error;
use crabtalk_proto::{ArchiveContent, GetArchiveMsg};
use crossterm::event::KeyEvent;
use std::path::PathBuf;

/// Messages shown of an archive.
const ARCHIVE_MESSAGES: u32 = 30;

impl Live<'_> {
    /// Opens the picker and requests conversations and archives.
    pub(super) fn pick_place(&mut self, purpose: Purpose, search: &str) {
        self.picker = Some(Picker::new(purpose, search));
        let (client, own) = (self.client.clone(), self.learned.sender.clone());
        let places = async move { places(&client, &own).await };
        self.call(places, |live, places| live.show_places(places));
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
            let request = GetArchiveMsg {
                agent: place.agent,
                sender: place.sender,
                index: place.archive.unwrap_or_default(),
                before: None,
                limit: ARCHIVE_MESSAGES,
            };
            return self.request(request, |live, archive| live.show_archive(archive));
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
    fn show_archive(&mut self, archive: Result<ArchiveContent, Error>) {
        if let Some(archive) = self.answered_by(archive) {
            self.transcript.entries(&archive.entries);
            let said = "this is an archive: /resume continues it, `crabtalk archives show` prints all of it";
            self.transcript.note(said);
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
        self.model.switch(key(&self.learned_pair()), &key(&pair));
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
        self.read_asks();
    }
}
