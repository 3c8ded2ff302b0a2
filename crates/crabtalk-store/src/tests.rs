//! Properties of the whole crate for arbitrary input.

mod fuzz;
