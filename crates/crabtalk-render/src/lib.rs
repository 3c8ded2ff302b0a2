//! What agents say, as styled lines of a terminal.
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
//! clean     text of others made harmless
//! wrap      lines broken by columns
//! theme     styles
//! code      highlighting
//! table     tables fitted to a width
//! blocks    blocks of Markdown as lines
//! markdown  Markdown that comes in pieces
//! diff      changes of files
//! figures   numbers in short
//! screen    the bottom rows of a terminal: keys, drawing, the composer
//! ```
//!
//! Invariants: no line is wider than asked for, and none holds a character
//! that moves the cursor, turns the direction of a line, or belongs to the
//! frames in which a terminal puts its own questions.
//!
//! Only `screen` touches the terminal. Absent: the protocol, colours of our own.

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
