//! Archived turns, indexed bit by bit, the newest first.
//!
//! Invariants: one recall reads a bounded part of what is not indexed yet,
//! however much is archived (STORE-3), and the next one goes on there; nothing
//! is read twice while its conversation stays indexed.
//! Only what people and agents said is indexed: no tool results or arguments,
//! nothing injected or recalled, and no summary, whose turns are there already.

use crate::Error;
use crate::index::{DocId, Document, Index};
use crate::text::passages;
use crabtalk_domain::storage::{self, ArchiveInfo, Source, Storage};
use crabtalk_domain::{ConversationKey, Message, Role};
use std::collections::HashMap;
use std::ops::Range;

/// Entries read at a time: few, since each may be large.
const PAGE: usize = 16;
/// Bytes that an entry is counted with beside its text.
const ENTRY_BYTES: usize = 64;
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

/// What is indexed of a conversation, and what is left to read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Changes whenever something is added.
    version: u64,
    marks: Vec<Mark>,
    /// Archives that are not wholly read, the next one last: its number and
    /// the entry before which to go on.
    todo: Vec<(usize, Option<u64>)>,
}

/// What was read to bring one conversation further.
#[derive(Debug)]
pub(crate) struct Update {
    known: Known,
    /// Whether what was indexed is another conversation's by now.
    afresh: bool,
    /// Turns in order, each lot with its archive.
    lots: Vec<(usize, Vec<Turn>)>,
}

/// Reads some of what is not indexed yet, at most about `room` bytes of it. A
/// conversation without archives has none.
pub(crate) async fn read_more(
    storage: &dyn Storage,
    key: &ConversationKey,
    known: Known,
    room: &mut usize,
) -> Result<Update, Error> {
    let infos = match storage.archives(key).await {
        Err(storage::Error::NotFound(_)) => Vec::new(),
        other => other?,
    };
    let marks: Vec<Mark> = infos.iter().map(Mark::of).collect();
    let afresh = !marks.starts_with(&known.marks);
    let (base, mut todo) = match afresh {
        true => (0, Vec::new()),
        false => (known.marks.len(), known.todo),
    };
    todo.extend((base..marks.len()).map(|archive| (archive, None)));
    let mut lots = Vec::new();
    while *room > 0
        && let Some((archive, before)) = todo.pop()
    {
        let (turns, rest) = read_turns(storage, key, &marks[archive], before, room).await?;
        todo.extend(rest.map(|before| (archive, Some(before))));
        lots.push((archive, turns));
    }
    let known = Known {
        version: known.version,
        marks,
        todo,
    };
    Ok(Update {
        known,
        afresh,
        lots,
    })
}

/// Reads turns of an archive backwards until there is no room, and says
/// before which entry to go on.
async fn read_turns(
    storage: &dyn Storage,
    key: &ConversationKey,
    mark: &Mark,
    mut before: Option<u64>,
    room: &mut usize,
) -> Result<(Vec<Turn>, Option<u64>), Error> {
    let source = Source::Archive(key.clone(), mark.index);
    let mut newest_first = Vec::new();
    loop {
        let page = storage.page(&source, before, PAGE).await?;
        before = page.entries.first().map(|entry| entry.index);
        for entry in page.entries.iter().rev().filter(|entry| !entry.compact) {
            *room = room.saturating_sub(entry.message.content.len() + ENTRY_BYTES);
            newest_first.extend(turn(key, mark, &entry.message));
        }
        let rest = before.filter(|_| page.more);
        if rest.is_none() || *room == 0 {
            newest_first.reverse();
            return Ok((newest_first, rest));
        }
    }
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
    known: Known,
    /// Lots of turns that were read together; neighbours share one.
    lots: u32,
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
            archive: self.known.marks.get(*archive)?,
        })
    }

    fn add(&mut self, archive: usize, turns: Vec<Turn>) {
        let lot = self.lots;
        self.lots = self.lots.saturating_add(1);
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
                    conversation: lot,
                    session: lot,
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
    pub(crate) fn known(&self, key: &ConversationKey) -> Known {
        self.by_key
            .get(key)
            .map(|indexed| indexed.known.clone())
            .unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &ConversationKey) -> Option<&Indexed> {
        self.by_key.get(key)
    }

    /// Adds what was read. Of two readers of the same, the first one counts.
    pub(crate) fn apply(&mut self, key: &ConversationKey, update: Update) {
        self.clock += 1;
        if update.known.marks.is_empty() {
            self.by_key.remove(key);
            return;
        }
        let indexed = self.by_key.entry(key.clone()).or_default();
        indexed.used = self.clock;
        if update.known.version != indexed.known.version {
            return;
        }
        if update.afresh {
            *indexed = Indexed {
                used: self.clock,
                ..Indexed::default()
            };
        }
        for (archive, turns) in update.lots {
            indexed.add(archive, turns);
        }
        indexed.known = Known {
            version: update.known.version + 1,
            ..update.known
        };
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
