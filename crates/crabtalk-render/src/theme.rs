//! The styles of everything: of the terminal's own sixteen colours those that
//! read on a light ground and on a dark one.

use anstyle::{AnsiColor, Style};

/// Without any.
pub const PLAIN: Style = Style::new();
/// What is there and need not be read.
pub const DIM: Style = Style::new().dimmed();
/// What stands out.
pub const BOLD: Style = Style::new().bold();
/// Headings.
pub const HEADING: Style = AnsiColor::Cyan.on_default().bold();
/// Code within a line.
pub const CODE: Style = AnsiColor::Cyan.on_default();
/// The text of a link.
pub const LINK: Style = Style::new().underline();
/// What came out well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What went wrong.
pub const BAD: Style = AnsiColor::Red.on_default();
/// What waits for somebody.
pub const ASKS: Style = AnsiColor::Magenta.on_default();
/// A line that comes.
pub const ADDED: Style = AnsiColor::Green.on_default();
/// A line that goes.
pub const REMOVED: Style = AnsiColor::Red.on_default();

/// Comments of code.
pub(crate) const COMMENT: Style = Style::new().dimmed().italic();
/// Strings of code.
pub(crate) const STRING: Style = AnsiColor::Green.on_default();
/// Words of a language.
pub(crate) const KEYWORD: Style = AnsiColor::Magenta.on_default();
/// Numbers and other constants of code.
pub(crate) const CONSTANT: Style = AnsiColor::Cyan.on_default();
/// Names that code gives.
pub(crate) const NAME: Style = Style::new().bold();
