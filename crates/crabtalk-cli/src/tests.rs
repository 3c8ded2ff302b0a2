//! Doubles: a server behind a real socket, a person at a terminal, a buffer.

mod answers;
mod daemon;
mod person;
mod script;

pub(crate) use daemon::{At, Fake};
use person::Person;
pub(crate) use person::shows;
use script::Script;
