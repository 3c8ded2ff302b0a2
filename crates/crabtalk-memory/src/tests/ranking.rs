//! The generated benchmark: a change that makes recall worse fails here.

use super::measure::stored::Stored;
use super::measure::{generated, measure};

const SEED: u64 = 2026;

fn at_least(what: &str, got: [f64; 3], want: [f64; 3]) {
    let good = got.iter().zip(want).all(|(got, want)| *got >= want);
    assert!(good, "{what}: {got:.3?}, at least {want:?} is expected");
}

#[test]
fn recall_ranks_as_well_as_it_did() {
    let all = generated::conversations(SEED);
    let one = measure(&all, |own| Stored::among(std::slice::from_ref(own), own));
    let among = measure(&all, |own| Stored::among(&all, own));
    println!("alone     {one}\namong all {among}");
    assert_eq!(one.questions, 360);
    at_least("turn", one.turn, [0.73, 0.95, 0.98]);
    at_least("archive", one.archive, [0.74, 0.97, 0.99]);
    at_least("turn of all", among.turn, [0.70, 0.95, 0.98]);
}
