//! What holds of the crate as a whole: a month of it, and input with anything in it.

mod fuzz;
mod simulation;
