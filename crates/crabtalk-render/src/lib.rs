//! Renders agents' output as styled terminal lines.
//!
//! ```
//! use crabtalk_render::{Line, Markdown};
//!
//! let mut markdown = Markdown::new(40);
//! assert!(markdown.push("Some *wo").is_empty(), "it may go on");
//! let lines = markdown.push("rds*.\n\nMore");
//! assert_eq!(lines[0].text(), "Some words.");
//! assert_eq!(markdown.open()[1].text(), "More");
//! ```
//!
//! ```text
//! line      spans and lines
//! clean     foreign text made safe
//! wrap      line breaking
//! theme     styles
//! code      highlighting
//! table     tables fitted to a width
//! blocks    blocks of Markdown as lines
//! markdown  Markdown that arrives in pieces
//! diff      changes of files
//! figures   short forms of numbers
//! screen    the bottom rows of a terminal: keys, drawing, the composer
//! ```
//!
//! Invariants: no line is wider than requested; no line has a character
//! that moves the cursor, changes the direction of a line, or belongs to the
//! frames with which the terminal marks its own questions; only `screen` touches the
//! terminal. This crate does not know the protocol and defines no colours.

mod blocks;
mod clean;
mod code;
pub mod diff;
mod figures;
mod line;
mod markdown;
pub mod screen;
mod table;
pub mod theme;
mod wrap;

pub use clean::{clean, exact, output};
pub use figures::tokens;
pub use line::{Line, Span};
pub use markdown::{Markdown, render};
pub use wrap::{cut, shorten, wrapped};
