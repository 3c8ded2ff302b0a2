//! Selects the passages to rank, by the rarity of their terms.
//!
//! Invariant: a search reads a bounded number of rows, for common terms the newest,
//! for an index of any size.

use super::layout::Layout;
use crabtalk_domain::records::{Candidate, Candidates, Passage, PassageQuery};
use rusqlite::{Connection, Row, params};
use std::collections::{BTreeSet, HashMap};

/// Rows from which the frequency of a term is estimated.
const SAMPLE: usize = 1_000;

/// Maximum rows of all terms together.
const MAX_ROWS: usize = 20_000;

/// Maximum number of selected passages, without their neighbours.
const CHOSEN: usize = 200;

/// Neighbours on each side of a selected passage.
const NEIGHBOURS: usize = 3;

/// Share of a match's score that a neighbouring passage receives.
const BESIDE: f32 = 0.5;

/// The weight of a day: as much as that of a rare term.
const DAY_WEIGHT: f32 = 7.0;

/// The newest passages with a term, as far as they were read.
struct List {
    places: Vec<usize>,
    /// The id below which more may follow.
    below: Option<i64>,
    /// Number of passages with the term, possibly estimated.
    count: usize,
}

pub(super) fn find(c: &Connection, wanted: &PassageQuery) -> rusqlite::Result<Candidates> {
    let layout = Layout::of(c, &wanted.keys)?;
    let mut lists = Vec::with_capacity(wanted.terms.len());
    for term in &wanted.terms {
        lists.push(sample(c, &layout, term)?);
    }
    let counts = lists.iter().map(|list| list.count as u64).collect();
    let mut by_count: Vec<usize> = (0..lists.len()).collect();
    by_count.sort_by_key(|at| lists[*at].count);
    let (mut scores, mut room) = (HashMap::new(), MAX_ROWS);
    for at in by_count {
        let list = &mut lists[at];
        let rest = room.saturating_sub(list.places.len());
        read_on(c, &layout, &wanted.terms[at], list, rest)?;
        room = room.saturating_sub(list.places.len());
        let (docs, count) = (layout.passages as f32, list.count as f32);
        let weight = (1.0 + (docs - count + 0.5) / (count + 0.5)).ln();
        for place in &list.places {
            *scores.entry(*place).or_insert(0.0) += weight;
        }
    }
    for place in of_days(c, &layout, wanted)? {
        *scores.entry(place).or_insert(0.0) += DAY_WEIGHT;
    }
    Ok(Candidates {
        passages: layout.passages as u64,
        counts,
        found: read(c, &layout, best(&layout, scores))?,
    })
}

/// Reads the newest passages with a term, and estimates the number of all.
fn sample(c: &Connection, layout: &Layout, term: &str) -> rusqlite::Result<List> {
    let mut list = List {
        places: Vec::new(),
        below: None,
        count: 0,
    };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    if let Some((_, last)) = layout.bounds()
        && !term.is_empty()
        && term.bytes().all(is_word)
    {
        list.below = Some(last + 1);
        read_on(c, layout, term, &mut list, SAMPLE)?;
    }
    list.count = match list.places.last() {
        Some(last) if list.below.is_some() => {
            list.places.len() * layout.passages / (layout.passages - last)
        }
        _ => list.places.len(),
    };
    Ok(list)
}

/// Adds up to `most` older passages to a list.
fn read_on(
    c: &Connection,
    layout: &Layout,
    term: &str,
    list: &mut List,
    most: usize,
) -> rusqlite::Result<()> {
    let (Some(below), Some((first, _))) = (list.below, layout.bounds()) else {
        return Ok(());
    };
    let mut rows = c.prepare_cached(
        "SELECT rowid FROM passage_terms WHERE passage_terms MATCH ?1
         AND rowid >= ?2 AND rowid < ?3 ORDER BY rowid DESC",
    )?;
    let mut rows = rows.query(params![format!("\"{term}\""), first, below])?;
    let end = list.places.len() + most;
    while list.places.len() < end {
        let Some(row) = rows.next()? else {
            list.below = None;
            break;
        };
        let id = row.get(0)?;
        list.places.extend(layout.place(id));
        list.below = Some(id);
    }
    Ok(())
}

/// The newest passages of the requested days.
fn of_days(c: &Connection, layout: &Layout, wanted: &PassageQuery) -> rusqlite::Result<Vec<usize>> {
    let (Some(days), Some((first, last))) = (&wanted.days, layout.bounds()) else {
        return Ok(Vec::new());
    };
    let mut rows = c.prepare_cached(
        "SELECT id FROM passage INDEXED BY passage_by_day
         WHERE day BETWEEN ?1 AND ?2 AND id BETWEEN ?3 AND ?4 ORDER BY day DESC, id DESC",
    )?;
    let ids = rows.query_map(params![days.start(), days.end(), first, last], |row| {
        row.get(0)
    })?;
    let places = ids.filter_map(|id| id.map(|id| layout.place(id)).transpose());
    places.take(MAX_ROWS / 4).collect()
}

/// The positions with the highest scores and their neighbours, in order.
fn best(layout: &Layout, scores: HashMap<usize, f32>) -> BTreeSet<usize> {
    let beside = |place: usize| {
        let near = place.saturating_sub(NEIGHBOURS)..=place + NEIGHBOURS;
        let others = near.filter(|other| *other != place);
        others.filter_map(|other| scores.get(&other)).sum::<f32>()
    };
    let mut ranked: Vec<(f32, usize)> = scores
        .iter()
        .map(|(place, score)| (score + BESIDE * beside(*place), *place))
        .collect();
    // Of equal ones, the newer one.
    let better = |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1));
    if ranked.len() > CHOSEN {
        ranked.select_nth_unstable_by(CHOSEN, better);
        ranked.truncate(CHOSEN);
    }
    let near = |place: usize| {
        let last = (place + NEIGHBOURS).min(layout.passages - 1);
        let key = layout.part(place).key;
        let near = place.saturating_sub(NEIGHBOURS)..=last;
        near.filter(move |other| layout.part(*other).key == key)
    };
    ranked
        .into_iter()
        .flat_map(|(_, place)| near(place))
        .collect()
}

fn read(
    c: &Connection,
    layout: &Layout,
    places: BTreeSet<usize>,
) -> rusqlite::Result<Vec<Candidate>> {
    let mut row = c.prepare_cached(
        "SELECT entry, start, bytes, hash, speaker, day, flags, terms FROM passage WHERE id = ?1",
    )?;
    let mut found: Vec<Candidate> = Vec::with_capacity(places.len());
    let mut next = None;
    let mut run = 0;
    for place in places {
        let part = layout.part(place);
        if next != Some((part.key, place)) {
            run += 1;
        }
        next = Some((part.key, place + 1));
        found.push(Candidate {
            key: part.key,
            run,
            archive: part.archive.clone(),
            passage: row.query_row([part.id(place)], passage)?,
        });
    }
    Ok(found)
}

fn passage(row: &Row<'_>) -> rusqlite::Result<Passage> {
    Ok(Passage {
        entry: row.get::<_, i64>(0)?.unsigned_abs(),
        begin: row.get(1)?,
        bytes: row.get(2)?,
        hash: row.get(3)?,
        speaker: row.get(4)?,
        day: row.get(5)?,
        flags: row.get(6)?,
        terms: row.get(7)?,
    })
}
