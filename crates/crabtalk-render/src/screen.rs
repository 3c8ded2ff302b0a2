//! Drawing at the bottom of a terminal, and a message editor.
//!
//! ```text
//! canvas    final lines, and rows that are redrawn
//! ground    detection of a light or dark terminal
//! raw       raw mode and the alternate screen
//! composer  the editor for a message
//! ```
//!
//! Invariants: the terminal is restored at exit; written lines stay in the terminal's
//! own scrollback; this module does not know the protocol, and reads only variables that describe
//! the terminal.

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
