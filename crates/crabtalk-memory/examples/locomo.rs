//! Measures recall on LoCoMo: `cargo run --release -p crabtalk-memory --example
//! locomo -- path/to/locomo10.json`. The data is not part of this project.

use crabtalk_memory::index::Features;
use crabtalk_memory::measure::baseline::Plain;
use crabtalk_memory::measure::{Recipe, locomo, measure};
use std::io::{Error, Write, stdout};

fn main() -> Result<(), Error> {
    let Some(path) = std::env::args().nth(1) else {
        return Err(Error::other("give the path of locomo10.json"));
    };
    let all = locomo::parse(&std::fs::read_to_string(path)?).map_err(Error::other)?;
    let turns: usize = all
        .iter()
        .map(|conversation| conversation.turns.len())
        .sum();
    let questions: usize = all
        .iter()
        .map(|conversation| conversation.questions.len())
        .sum();
    let mut out = stdout().lock();
    writeln!(
        out,
        "{} conversations, {turns} turns, {questions} questions; hit@1/5/10",
        all.len()
    )?;
    for (name, speakers, dates) in [
        ("recipe", true, true),
        ("without speakers", false, true),
        ("without dates", true, false),
        ("without both", false, false),
    ] {
        let features = Features { speakers, dates };
        let scores = measure(&all, |own| Recipe::new(own, features));
        writeln!(out, "{name:18} {scores}")?;
    }
    let features = Features {
        speakers: true,
        dates: true,
    };
    writeln!(
        out,
        "{:18} {}",
        "all in one store",
        measure(&all, |own| Recipe::among(&all, own, features))
    )?;
    writeln!(out, "{:18} {}", "plain BM25", measure(&all, Plain::new))?;
    writeln!(
        out,
        "{:18} {}",
        "first eight words",
        measure(&all, Plain::first_eight_words)
    )
}
