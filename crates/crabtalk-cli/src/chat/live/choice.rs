//! Entries of the picker.

use super::transcript::MARGIN;
use crate::switch::Place;
use crate::text::{ago, counted, summary};
use crabtalk_proto::{FileChange, RunChanges};
use crabtalk_render::{Line, shorten, theme};
use jiff::Timestamp;

/// The purpose of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Purpose {
    #[default]
    Switch,
    Resume,
    Rewind,
    /// Decide whether to undo file changes after a rewind.
    Undo,
}

impl Purpose {
    pub(super) fn prompt(self) -> &'static str {
        match self {
            Self::Switch => "switch to: ",
            Self::Resume => "resume: ",
            Self::Rewind => "rewind to: ",
            Self::Undo => "undo these file changes too? ",
        }
    }
}

/// An earlier message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) index: u64,
    pub(super) content: String,
    pub(super) at: String,
}

/// An entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Choice {
    Place(Place),
    Said(Said),
    /// Undoes the changes of these runs.
    Undo(Vec<RunChanges>),
    /// Does not undo file changes.
    Keep,
}

impl Choice {
    /// Whether all words match, ignoring case.
    pub(super) fn fits(&self, search: &str) -> bool {
        let text = match self {
            Self::Place(place) => return place.fits(search),
            Self::Said(said) => said.content.to_lowercase(),
            Self::Undo(_) | Self::Keep => self.about().to_lowercase(),
        };
        let search = search.to_lowercase();
        search.split_whitespace().all(|word| text.contains(word))
    }

    fn about(&self) -> String {
        match self {
            Self::Place(place) => place.about(),
            Self::Said(said) => summary(&said.content),
            Self::Undo(runs) => {
                let files: usize = runs.iter().map(|run| run.files.len()).sum();
                format!("Yes, undo {}", counted(files, "file change"))
            }
            Self::Keep => "No, keep the file changes".to_owned(),
        }
    }

    /// The row: name, age and title of a place, age and text of a message.
    pub(super) fn row(&self, chosen: bool, width: usize, now: Timestamp) -> Line {
        let (mark, style) = match chosen {
            true => ("\u{203a} ", theme::HEADING),
            false => (MARGIN, theme::PLAIN),
        };
        let line = Line::styled(mark, theme::HEADING);
        let line = match self {
            Self::Place(place) => line
                .with(place.name(), style)
                .with(state(place), theme::ASKS)
                .with(format!(" \u{b7} {} \u{b7} ", place.age(now)), theme::DIM),
            Self::Said(said) => line.with(format!("{} \u{b7} ", ago(&said.at, now)), theme::DIM),
            Self::Undo(_) | Self::Keep => line,
        };
        shorten(&line.with(self.about(), style), width)
    }

    /// Details of the selection, at most two rows: folder and messages of a place, the
    /// files of runs.
    pub(super) fn details(&self, width: usize) -> Vec<Line> {
        let said = match self {
            Self::Place(place) => place_details(place),
            Self::Undo(runs) => {
                let files = runs.iter().flat_map(|run| &run.files);
                let told = |file: &FileChange| format!("{} {}", file.kind, file.path);
                vec![files.map(told).collect::<Vec<_>>().join(", ")]
            }
            Self::Said(_) | Self::Keep => Vec::new(),
        };
        let line = |text: String| {
            let text = format!("{MARGIN}{MARGIN}{text}");
            shorten(&Line::styled(text, theme::DIM), width)
        };
        said.into_iter().map(line).collect()
    }
}

/// The state of a topic.
fn state(place: &Place) -> String {
    match place.state {
        "" => String::new(),
        state => format!(" \u{b7} {state}"),
    }
}

/// Folder, first and last message.
fn place_details(place: &Place) -> Vec<String> {
    let mut said = vec![match place.folder.as_str() {
        "" => counted(place.messages, "message"),
        folder => format!("{folder} \u{b7} {}", counted(place.messages, "message")),
    }];
    let ends = match place.archive {
        Some(_) => ("", place.last.as_str()),
        None => (place.first.as_str(), place.last.as_str()),
    };
    let words = match ends {
        ("", "") => String::new(),
        ("", last) => last.to_owned(),
        (first, "") => first.to_owned(),
        (first, last) => format!("{first} \u{2026} {last}"),
    };
    said.extend(Some(words).filter(|words| !words.is_empty()));
    said
}
