//! The store as its users meet it, over a real folder and a failing disk.

mod conversations;
mod support;
