//! Drawing at the bottom of a terminal, and a line editor.
//!
//! ```text
//! canvas    lines that stay, rows that are drawn again
//! ground    whether the terminal is light or dark
//! raw       the terminal, key by key; all of it, for a while
//! composer  the text that a person writes
//! ```
//!
//! Invariants: the terminal is restored at exit; written lines stay in the terminal's
//! own scrollback.
//!
//! Must not contain the protocol, or variables beyond the terminal's abilities.

mod canvas;
mod composer;
mod ground;
mod raw;

pub use canvas::{Canvas, Drawing};
pub use composer::{Composer, PROMPT};
pub use raw::{
    AlternateScreen, Heard, Raw, ground, is_plain, settle_colors, size, styles, terminal_size,
    title,
};
