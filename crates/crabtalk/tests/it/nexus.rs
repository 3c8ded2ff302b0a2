//! NEXUS with agents of a real daemon, and beside them some in a real tmux.

mod day;
mod guide;
mod player;
mod speaker;
mod supervised;
