//! NEXUS with agents of a real daemon, and beside them some in a real tmux.

mod day;
mod disk;
mod guide;
mod others;
mod player;
mod proof;
mod speaker;
mod supervised;
