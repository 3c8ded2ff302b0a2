//! The generated benchmark: a change that makes recall worse fails here.

use super::measure::stored::Stored;
use super::measure::{Recipe, Scores, generated, measure};

const SEED: u64 = 2026;

fn recipe(said: bool) -> Scores {
    measure(&generated::conversations(SEED), |c| Recipe::new(c, said))
}

fn at_least(what: &str, got: [f64; 3], want: [f64; 3]) {
    let good = got.iter().zip(want).all(|(got, want)| *got >= want);
    assert!(good, "{what}: {got:.3?}, at least {want:?} is expected");
}

#[test]
fn recall_ranks_as_well_as_it_did() {
    let scores = recipe(true);
    println!("recipe          {scores}");
    assert_eq!(scores.questions, 360);
    at_least("turn", scores.turn, [0.72, 0.95, 0.98]);
    at_least("window", scores.window, [0.72, 0.95, 0.98]);
    at_least("archive", scores.archive, [0.73, 0.97, 0.99]);
    let bare = recipe(false);
    println!("no names, dates {bare}");
    at_least(
        "turn without names and dates",
        bare.turn,
        [0.57, 0.92, 0.96],
    );
}

#[test]
fn recall_from_the_index_ranks_as_in_memory() {
    let all = generated::conversations(SEED);
    let one = measure(&all, |own| Stored::among(std::slice::from_ref(own), own));
    let among = measure(&all, |own| Stored::among(&all, own));
    println!("indexed         {one}\nindexed, all    {among}");
    at_least("turn", one.turn, [0.73, 0.95, 0.98]);
    at_least("archive", one.archive, [0.74, 0.97, 0.99]);
    at_least("turn of all", among.turn, [0.70, 0.95, 0.98]);
}
