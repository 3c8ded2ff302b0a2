//! Tests with random input.

mod fuzz;
