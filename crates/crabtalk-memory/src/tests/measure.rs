//! Measures how well recall ranks: conversations with known answers, and how
//! often an answer is among the first (MEM-3).
//! A change of the ranking is judged by a number.

pub(crate) mod generated;
pub(crate) mod stored;

use std::collections::HashSet;
use std::fmt;
use stored::Stored;

/// Places at which a hit is counted.
pub(crate) const PLACES: [usize; 3] = [1, 5, 10];

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Turn {
    /// The speaker.
    pub(crate) speaker: String,
    /// The text of the turn.
    pub(crate) text: String,
    /// Number of its session, from 0.
    pub(crate) session: u32,
    /// Days since 1970-01-01, if known.
    pub(crate) day: Option<i32>,
}

/// Something that is asked later.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Question {
    /// The question.
    pub(crate) text: String,
    /// Numbers of the turns that answer it.
    pub(crate) evidence: Vec<usize>,
}

/// A conversation with known answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Conversation {
    /// In order.
    pub(crate) turns: Vec<Turn>,
    /// The questions about the dialogue.
    pub(crate) questions: Vec<Question>,
}

/// Shares of questions with an answer among the first of [`PLACES`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Scores {
    /// The turn itself.
    pub(crate) turn: [f64; 3],
    /// Its whole session.
    pub(crate) archive: [f64; 3],
    /// Questions that were asked.
    pub(crate) questions: usize,
}

impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |s: &[f64; 3]| s.map(|s| format!("{s:.3}")).join("/");
        write!(
            f,
            "turn {}  archive {}",
            row(&self.turn),
            row(&self.archive)
        )
    }
}

/// Asks every question of every conversation.
pub(crate) fn measure(
    conversations: &[Conversation],
    ranker: impl Fn(&Conversation) -> Stored,
) -> Scores {
    let mut sums = Scores::default();
    for conversation in conversations {
        let ranker = ranker(conversation);
        for question in &conversation.questions {
            ask(conversation, question, &ranker, &mut sums);
        }
    }
    let all = sums.questions.max(1) as f64;
    let share = |sum: [f64; 3]| sum.map(|sum| sum / all);
    Scores {
        turn: share(sums.turn),
        archive: share(sums.archive),
        questions: sums.questions,
    }
}

fn ask(conversation: &Conversation, question: &Question, ranker: &Stored, sums: &mut Scores) {
    let evidence: HashSet<usize> = question.evidence.iter().copied().collect();
    let sessions: HashSet<u32> = evidence
        .iter()
        .map(|turn| conversation.turns[*turn].session)
        .collect();
    let turns = ranker.turns(&question.text, PLACES[2]);
    let turn = turns.iter().position(|turn| evidence.contains(turn));
    let found = ranker.sessions(&question.text, PLACES[2]);
    let archive = found.iter().position(|session| sessions.contains(session));
    sums.questions += 1;
    for (at, place) in PLACES.iter().enumerate() {
        let hit = |found: Option<usize>| f64::from(u8::from(found.is_some_and(|f| f < *place)));
        sums.turn[at] += hit(turn);
        sums.archive[at] += hit(archive);
    }
}
