//! A terminal of which a few rows are drawn, and the line that a person writes
//! there.
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
//! Absent on purpose: what is shown, the protocol, the environment but for how
//! much a terminal can show.

mod canvas;
mod composer;
mod ground;
mod raw;

pub use canvas::{Canvas, Drawing};
pub use composer::{Composer, PROMPT, Typed};
pub use raw::{AlternateScreen, Heard, Raw, ground, is_plain, settle_colors, size, styles};
