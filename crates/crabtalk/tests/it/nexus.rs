//! NEXUS with agents of a real daemon.

mod others;
mod speaker;
mod supervised;
