//! NEXUS with agents of a real daemon, and doubles beside them.

mod day;
#[path = "../../../crabtalk-nexus/tests/it/double.rs"]
mod double;
mod speaker;
mod supervised;
