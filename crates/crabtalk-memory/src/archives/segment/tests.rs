//! A segment is as good as the index that it was written from.

use super::*;
use crate::archives::span::{Named, Span};
use crate::archives::turn::Turn;
use crate::index::{
    Document, Features, Found, Index, Level, Query, Scratch, Shard, search, search_all,
};

use crate::tests::measure::{self, generated};
use crabtalk_domain::ConversationKey;
use std::path::Path;

fn key() -> ConversationKey {
    ConversationKey::new("crab", "ada").unwrap()
}

/// Writes turns as a segment from one place to another.
fn written(folder: &Path, at: u32, turns: &[Turn]) -> Segment {
    let named = Named {
        span: Span {
            from: (at, 0),
            to: (at + 1, 0),
        },
        level: 0,
    };
    let file = folder.join(named.file());
    let session = Session {
        first_doc: 0,
        archive: at,
        title: format!("Archive {at}"),
        archived_at: String::new(),
        messages: turns.len() as u64,
    };
    let part = Part {
        key: &key(),
        named,
        session,
    };
    let numbered = turns
        .iter()
        .enumerate()
        .map(|(n, turn)| (n as u64, turn.clone()));
    Draft::of(numbered).write(folder, &part).unwrap();
    Segment::open(&file, &key()).unwrap()
}

/// Sessions of turns, and what is asked of them.
fn conversation() -> (Vec<Vec<Turn>>, Vec<String>) {
    let data = generated::conversations(7).swap_remove(0);
    let last = data.turns.last().map_or(0, |turn| turn.session);
    let epoch = jiff::civil::date(1970, 1, 1);
    let sessions = (0..=last).map(|session| {
        let own = data.turns.iter().filter(|turn| turn.session == session);
        let turn = |turn: &measure::Turn| Turn {
            speaker: turn.speaker.clone(),
            at: turn.day.map_or(String::new(), |day| {
                (epoch + jiff::Span::new().days(day)).to_string()
            }),
            text: turn.text.clone(),
        };
        own.map(turn).collect()
    });
    let asked = data.questions.iter().map(|q| q.text.clone());
    (sessions.collect(), asked.collect())
}

fn in_memory(sessions: &[Vec<Turn>]) -> Index {
    let mut index = Index::new();
    for (number, turns) in sessions.iter().enumerate() {
        for turn in turns {
            let number = number as u32;
            let document = Document {
                conversation: number,
                session: number,
                speaker: &turn.speaker,
                day: turn.day(),
                text: &turn.text,
            };
            index.append(&document).unwrap();
        }
    }
    index
}

fn of_index(index: &Index, query: &Query) -> Vec<Found> {
    let shard = Shard {
        index,
        level: Level::Document,
        features: Features::ALL,
        keep: &|_| true,
    };
    search(&[shard], query, 10)
}

fn of_segments(segments: &[Segment], query: &Query, scratch: &mut Scratch) -> Vec<Found> {
    let mut disk: Vec<Searched> = segments.iter().cloned().map(Searched::from).collect();
    let search = search_all(&[], &mut disk, query, 10, usize::MAX, scratch);
    assert!(search.broken.is_empty());
    search.found
}

#[test]
fn segments_find_what_the_index_finds_merged_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let (sessions, asked) = conversation();
    let index = in_memory(&sessions);
    let segments: Vec<Segment> = sessions
        .iter()
        .enumerate()
        .map(|(at, turns)| written(folder.path(), at as u32 + 1, turns))
        .collect();
    let file = folder.path().join("merged");
    merge(&segments, folder.path(), &file).unwrap();
    let merged = [Segment::open(&file, &key()).unwrap()];
    assert_eq!(merged[0].sessions().len(), sessions.len());
    assert!(asked.len() > 20, "there is something to ask");
    // Nothing of one search is left for the next.
    let scratch = &mut Scratch::default();
    for text in asked {
        let query = Query::parse(&text, None);
        let want = of_index(&index, &query);
        assert!(!want.is_empty());
        assert_eq!(of_segments(&merged, &query, scratch), want, "{text}");
        // Apart each has its own numbers, and the rest is the same.
        let apart = of_segments(&segments, &query, scratch);
        let place = |found: &Found| {
            let before: usize = sessions[..found.shard].iter().map(Vec::len).sum();
            (before as u32 + found.doc, found.score, found.coverage)
        };
        let apart: Vec<_> = apart.iter().map(place).collect();
        let want: Vec<_> = want.iter().map(|f| (f.doc, f.score, f.coverage)).collect();
        assert_eq!(apart, want, "{text}");
    }
}

#[test]
fn rows_lead_to_passages() {
    let folder = tempfile::tempdir().unwrap();
    let long = "A sentence about otters.\n".repeat(200);
    let turn = |text: &str| Turn {
        speaker: "ada".into(),
        at: "2026-01-05T10:00:00Z".into(),
        text: text.into(),
    };
    let segment = written(folder.path(), 1, &[turn("short"), turn(&long)]);
    assert!(segment.docs() > 3);
    let mut end = 0;
    for doc in 1..segment.docs() {
        let row = segment.row(doc).unwrap();
        assert_eq!((row.entry, row.begin, row.hash), (1, end, text_hash(&long)));
        end = row.begin + row.bytes;
    }
    assert_eq!(end, long.len());
    assert!(segment.row(segment.docs()).is_err());
    let other = ConversationKey::new("crab", "bo").unwrap();
    assert!(Segment::open(segment.path(), &other).is_err());
}
