//! What holds of the crate as a whole, whatever it is given.

mod fuzz;
