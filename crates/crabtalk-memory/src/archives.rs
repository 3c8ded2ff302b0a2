//! Archived turns, indexed when first asked for.
//!
//! Invariants: an archive is read once while its conversation stays indexed.
//! Only what people and agents said is indexed: no tool results or arguments,
//! nothing injected or recalled, and no summary, whose turns are there already.

use crate::Error;
use crate::index::{DocId, Document, Index};
use crate::text::passages;
use crabtalk_domain::storage::{self, ArchiveInfo, Source, Storage};
use crabtalk_domain::{ConversationKey, Message, Role};
use std::collections::HashMap;
use std::ops::Range;

/// Entries read at a time.
const PAGE: usize = 512;
/// Memory for indexed conversations together. Beyond it those that nobody
/// asked for longest are dropped, and read again when somebody does.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Whom a sender is called where nobody chose a name.
const NAMELESS: &str = "user";

/// A turn of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) speaker: String,
    pub(crate) at: String,
    pub(crate) text: String,
}

/// Tells archives apart from those that take their number after a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) index: u32,
    pub(crate) title: String,
    archived_at: String,
    messages: u64,
}

impl Mark {
    fn of(info: &ArchiveInfo) -> Self {
        Self {
            index: info.index,
            title: info.title.clone(),
            archived_at: info.archived_at.clone(),
            messages: info.message_count,
        }
    }
}

/// Archives that were read to bring one conversation up to date.
#[derive(Debug)]
pub(crate) struct Update {
    /// Archives that were indexed already and still exist.
    base: usize,
    news: Vec<(Mark, Vec<Turn>)>,
}

/// Reads what `known` lacks. A conversation without archives has none.
pub(crate) async fn read_new(
    storage: &dyn Storage,
    key: &ConversationKey,
    known: &[Mark],
) -> Result<Update, Error> {
    let infos = match storage.archives(key).await {
        Err(storage::Error::NotFound(_)) => Vec::new(),
        other => other?,
    };
    let marks: Vec<Mark> = infos.iter().map(Mark::of).collect();
    let base = if marks.starts_with(known) {
        known.len()
    } else {
        0
    };
    let mut news = Vec::new();
    for mark in marks.into_iter().skip(base) {
        let turns = read_turns(storage, key, &mark).await?;
        news.push((mark, turns));
    }
    Ok(Update { base, news })
}

async fn read_turns(
    storage: &dyn Storage,
    key: &ConversationKey,
    mark: &Mark,
) -> Result<Vec<Turn>, Error> {
    let source = Source::Archive(key.clone(), mark.index);
    let mut newest_first = Vec::new();
    let mut before = None;
    loop {
        let page = storage.page(&source, before, PAGE).await?;
        before = page.entries.first().map(|entry| entry.index);
        let said = page.entries.iter().rev().filter(|entry| !entry.compact);
        newest_first.extend(said.filter_map(|entry| turn(key, mark, &entry.message)));
        if !page.more || before.is_none() {
            break;
        }
    }
    newest_first.reverse();
    Ok(newest_first)
}

/// What a message adds to memory.
fn turn(key: &ConversationKey, mark: &Mark, message: &Message) -> Option<Turn> {
    if message.auto_injected {
        return None;
    }
    let speaker = match message.role {
        Role::Tool => return None,
        Role::User => key.sender.as_str(),
        Role::Assistant if message.agent.is_empty() => key.agent.as_str(),
        Role::Assistant => &message.agent,
    };
    let text = without_recalled(&message.content);
    if text.trim().is_empty() {
        return None;
    }
    let at = if message.at.is_empty() {
        &mark.archived_at
    } else {
        &message.at
    };
    Some(Turn {
        speaker: speaker.to_owned(),
        at: at.clone(),
        text,
    })
}

/// Takes `<recall>` blocks out, should one have come into a message: memory
/// does not remember its own words (MEM-2).
pub(crate) fn without_recalled(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, block)) = rest.split_once("<recall>") {
        out.push_str(before);
        rest = block.split_once("</recall>").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// One conversation's archived turns.
#[derive(Debug, Default)]
pub(crate) struct Indexed {
    pub(crate) index: Index,
    marks: Vec<Mark>,
    turns: Vec<(usize, Turn)>,
    docs: Vec<(usize, Range<usize>)>,
    bytes: usize,
    used: u64,
}

/// Where a document of an archive comes from.
pub(crate) struct Place<'a> {
    /// Number of the turn in its conversation.
    pub(crate) turn_number: usize,
    pub(crate) turn: &'a Turn,
    /// The part of its text.
    pub(crate) passage: Range<usize>,
    pub(crate) archive: &'a Mark,
}

impl Indexed {
    pub(crate) fn of_doc(&self, doc: DocId) -> Option<Place<'_>> {
        let (turn_number, passage) = self.docs.get(doc as usize)?.clone();
        let (archive, turn) = self.turns.get(turn_number)?;
        Some(Place {
            turn_number,
            turn,
            passage,
            archive: self.marks.get(*archive)?,
        })
    }

    fn add(&mut self, mark: Mark, turns: Vec<Turn>) {
        let archive = self.marks.len();
        let session = u32::try_from(archive).unwrap_or(u32::MAX - 1);
        for turn in turns {
            let day = day_of(&turn.at);
            let speaker = if turn.speaker == NAMELESS {
                ""
            } else {
                &turn.speaker
            };
            for passage in passages(&turn.text) {
                let text = &turn.text[passage.clone()];
                let document = Document {
                    conversation: 0,
                    session,
                    speaker,
                    day,
                    text,
                };
                if self.index.append(&document).is_none() {
                    break;
                }
                self.docs.push((self.turns.len(), passage));
            }
            self.bytes += turn.text.len() + turn.speaker.len() + turn.at.len() + 120;
            self.turns.push((archive, turn));
        }
        self.marks.push(mark);
    }

    fn bytes(&self) -> usize {
        self.bytes + self.index.bytes()
    }
}

fn day_of(at: &str) -> Option<i32> {
    at.get(..10)?.parse().ok().map(crate::days)
}

/// Indexed conversations, as many as memory allows.
#[derive(Debug, Default)]
pub(crate) struct Archives {
    by_key: HashMap<ConversationKey, Indexed>,
    clock: u64,
}

impl Archives {
    /// What is indexed of a conversation.
    pub(crate) fn known(&self, key: &ConversationKey) -> Vec<Mark> {
        self.by_key
            .get(key)
            .map(|indexed| indexed.marks.clone())
            .unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &ConversationKey) -> Option<&Indexed> {
        self.by_key.get(key)
    }

    /// Adds what was read. Two readers of the same news add them once.
    pub(crate) fn apply(&mut self, key: &ConversationKey, update: Update) {
        self.clock += 1;
        if update.base == 0 && update.news.is_empty() {
            self.by_key.remove(key);
            return;
        }
        let indexed = self.by_key.entry(key.clone()).or_default();
        indexed.used = self.clock;
        if update.base == 0 && !update.news.iter().map(|(mark, _)| mark).eq(&indexed.marks) {
            *indexed = Indexed {
                used: self.clock,
                ..Indexed::default()
            };
        }
        let done = indexed.marks.len().saturating_sub(update.base);
        if indexed.marks.len() >= update.base {
            for (mark, turns) in update.news.into_iter().skip(done) {
                indexed.add(mark, turns);
            }
        }
    }

    /// Drops what was not used for longest while there is too much, but
    /// nothing that was used since `since`.
    pub(crate) fn shrink(&mut self, since: u64) {
        let mut total: usize = self.by_key.values().map(Indexed::bytes).sum();
        while total > MAX_BYTES {
            let old = self
                .by_key
                .iter()
                .filter(|(_, indexed)| indexed.used <= since);
            let Some(key) = old.min_by_key(|(_, i)| i.used).map(|(key, _)| key.clone()) else {
                break;
            };
            if let Some(indexed) = self.by_key.remove(&key) {
                total -= indexed.bytes();
            }
        }
    }

    pub(crate) fn clock(&self) -> u64 {
        self.clock
    }
}
