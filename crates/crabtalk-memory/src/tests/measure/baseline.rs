//! What the recipe is compared with: plain BM25, and 0038's rule that a query
//! is the first eight words of a message.

use super::{Conversation, Ranker};
use std::collections::HashMap;

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// 0038: "short enough to avoid noise".
const FIRST_WORDS: usize = 8;

/// BM25 over lower-cased words, without stop words or stemming.
pub(crate) struct Plain {
    turns: Corpus,
    sessions: Corpus,
    first_words: Option<usize>,
}

impl Plain {
    /// BM25 with the whole question.
    pub(crate) fn new(conversation: &Conversation) -> Self {
        let mut sessions: Vec<String> = Vec::new();
        for turn in &conversation.turns {
            sessions.resize(sessions.len().max(turn.session as usize + 1), String::new());
            sessions[turn.session as usize].push_str(&turn.text);
            sessions[turn.session as usize].push('\n');
        }
        Self {
            turns: Corpus::new(conversation.turns.iter().map(|turn| turn.text.as_str())),
            sessions: Corpus::new(sessions.iter().map(String::as_str)),
            first_words: None,
        }
    }

    /// BM25 with the first eight words of the question.
    pub(crate) fn first_eight_words(conversation: &Conversation) -> Self {
        Self {
            first_words: Some(FIRST_WORDS),
            ..Self::new(conversation)
        }
    }

    fn query(&self, question: &str) -> Vec<String> {
        let most = self.first_words.unwrap_or(usize::MAX);
        let first: Vec<&str> = question.split_whitespace().take(most).collect();
        words(&first.join(" "))
    }
}

impl Ranker for Plain {
    fn turns(&self, question: &str, k: usize) -> Vec<usize> {
        self.turns.best(&self.query(question), k)
    }

    fn sessions(&self, question: &str, k: usize) -> Vec<u32> {
        let best = self.sessions.best(&self.query(question), k);
        best.into_iter().map(|session| session as u32).collect()
    }
}

struct Corpus {
    docs: Vec<(usize, HashMap<String, f64>)>,
    df: HashMap<String, f64>,
    mean: f64,
}

impl Corpus {
    fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let (mut docs, mut df): (Vec<_>, HashMap<String, f64>) = (Vec::new(), HashMap::new());
        for text in texts {
            let words = words(text);
            let mut counts: HashMap<String, f64> = HashMap::new();
            for word in &words {
                *counts.entry(word.clone()).or_default() += 1.0;
            }
            for word in counts.keys() {
                *df.entry(word.clone()).or_default() += 1.0;
            }
            docs.push((words.len(), counts));
        }
        let mean = docs.iter().map(|(len, _)| *len as f64).sum::<f64>() / docs.len().max(1) as f64;
        Self { docs, df, mean }
    }

    fn best(&self, query: &[String], k: usize) -> Vec<usize> {
        let all = self.docs.len() as f64;
        let score = |(len, counts): &(usize, HashMap<String, f64>)| -> f64 {
            let length = 1.0 - B + B * *len as f64 / self.mean;
            let term = |word: &String| {
                let (tf, df) = (counts.get(word).copied()?, self.df.get(word).copied()?);
                let idf = (1.0 + (all - df + 0.5) / (df + 0.5)).ln();
                Some(idf * tf * (K1 + 1.0) / (tf + K1 * length))
            };
            query.iter().filter_map(term).sum()
        };
        let mut ranked: Vec<(f64, usize)> = self
            .docs
            .iter()
            .map(score)
            .enumerate()
            .map(|(at, score)| (score, at))
            .collect();
        ranked.retain(|(score, _)| *score > 0.0);
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.into_iter().take(k).map(|(_, at)| at).collect()
    }
}

fn words(text: &str) -> Vec<String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}
